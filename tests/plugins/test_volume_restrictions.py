"""VolumeRestrictions, rule by rule (kube-scheduler 1.36)."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_core.api import Pod
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.events import (
    ASSIGNED_POD_DELETE,
    NODE_ADD,
    ActionType,
    ClusterEvent,
    EventResource,
)
from scheduler_core.framework.status import SUCCESS, Status, unresolvable, unschedulable
from scheduler_core.plugins.volume_restrictions import VolumeRestrictions
from scheduler_core.testing.builders import make_node, make_pod
from tests.plugins.storage import claim
from tests.plugins.support import FakeHandle, filter_both, hint

NO_DISK = unschedulable("node(s) had no available disk")
IN_USE = unschedulable(
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already "
    "in-use by another pod"
)
EXCLUSIVE = ("ReadWriteOncePod",)


def statuses(handle: FakeHandle, pod: Pod, state: CycleState | None = None) -> list[Status]:
    plugin = VolumeRestrictions({}, handle)
    state = state or CycleState()
    _, status = plugin.pre_filter(state, pod, handle.nodes)
    assert status.is_success, status
    return filter_both(plugin, pod, handle.nodes, state)


GCE = {"pdName": "disk"}
EBS = {"volumeID": "vol-1"}
ISCSI = {"iqn": "iqn.1", "targetPortal": "10.0.0.1", "lun": 0}
RBD = {"monitors": ["a", "b"], "image": "img", "pool": "p"}


@pytest.mark.parametrize(
    "kind, own, other, conflict",
    [
        pytest.param("gcePersistentDisk", GCE, GCE, True, id="GCE: the same disk"),
        pytest.param("gcePersistentDisk", GCE, {"pdName": "x"}, False, id="GCE: another disk"),
        pytest.param(
            "gcePersistentDisk",
            {**GCE, "readOnly": True},
            {**GCE, "readOnly": True},
            False,
            id="GCE: both only read",
        ),
        pytest.param(
            "gcePersistentDisk", {**GCE, "readOnly": True}, GCE, True, id="GCE: one of them writes"
        ),
        pytest.param(
            "awsElasticBlockStore",
            {**EBS, "readOnly": True},
            {**EBS, "readOnly": True},
            True,
            id="EBS: even if both only read",
        ),
        pytest.param("awsElasticBlockStore", EBS, {"volumeID": "vol-2"}, False, id="EBS: another"),
        pytest.param(
            "iscsi", ISCSI, {**ISCSI, "lun": 1}, True, id="iSCSI: the same IQN whatever the LUN"
        ),
        pytest.param("iscsi", ISCSI, {**ISCSI, "iqn": "iqn.2"}, False, id="iSCSI: another IQN"),
        pytest.param(
            "iscsi",
            {**ISCSI, "readOnly": True},
            {**ISCSI, "readOnly": True},
            False,
            id="iSCSI: both only read",
        ),
        pytest.param("rbd", RBD, {**RBD, "monitors": ["b", "c"]}, True, id="RBD: a monitor shared"),
        pytest.param("rbd", RBD, {**RBD, "monitors": ["c"]}, False, id="RBD: no monitor shared"),
        pytest.param("rbd", RBD, {**RBD, "image": "x"}, False, id="RBD: another image"),
        pytest.param("rbd", RBD, {**RBD, "pool": "x"}, False, id="RBD: another pool"),
        pytest.param(
            "rbd",
            {"monitors": ["a"], "image": "img"},
            {"monitors": ["a"], "image": "img", "pool": "rbd"},
            True,
            id="RBD: the pool is rbd unless it says otherwise",
        ),
        pytest.param(
            "rbd",
            {**RBD, "readOnly": True},
            {**RBD, "readOnly": True},
            False,
            id="RBD: both only read",
        ),
    ],
)
def test_disks(kind: str, own: dict[str, Any], other: dict[str, Any], conflict: bool) -> None:
    there = make_pod("there").node("n1").volume("v", **{kind: other}).obj()
    handle = FakeHandle([make_node("n1").obj(), make_node("n2").obj()], [there])
    pod = make_pod("own").volume("v", **{kind: own}).obj()
    assert statuses(handle, pod) == [NO_DISK if conflict else SUCCESS, SUCCESS]


def test_kinds_of_disks_do_not_mix() -> None:
    there = make_pod("there").node("n1").volume("v", gcePersistentDisk={"pdName": "x"}).obj()
    handle = FakeHandle([make_node("n1").obj()], [there])
    pod = make_pod("own").volume("v", awsElasticBlockStore={"volumeID": "x"}).obj()
    assert statuses(handle, pod) == [SUCCESS]


class TestOnePodClaims:
    def handle(self, *pods: Pod) -> FakeHandle:
        handle = FakeHandle([make_node("n1").obj(), make_node("n2").obj()], pods)
        handle.watch(claim("solo", modes=EXCLUSIVE), claim("shared"))
        return handle

    def test_one_that_is_used_anywhere_rules_every_node_out(self) -> None:
        handle = self.handle(make_pod("there").node("n1").pvc("solo").obj())
        assert statuses(handle, make_pod("own").pvc("solo").obj()) == [IN_USE, IN_USE]

    def test_the_disk_comes_first(self) -> None:
        there = make_pod("there").node("n1").pvc("solo").volume("d", gcePersistentDisk=GCE).obj()
        pod = make_pod("own").pvc("solo").volume("d", gcePersistentDisk=GCE).obj()
        assert statuses(self.handle(there), pod) == [NO_DISK, IN_USE]

    @pytest.mark.parametrize(
        "there, own",
        [
            pytest.param(make_pod("there").node("n1"), ["solo"], id="nobody uses it"),
            pytest.param(
                make_pod("there").node("n1").pvc("shared"), ["shared"], id="may be shared"
            ),
            pytest.param(
                make_pod("there").namespace("other").node("n1").pvc("solo"),
                ["solo"],
                id="a namesake in another namespace",
            ),
            pytest.param(make_pod("there").node("n1").pvc("solo"), [], id="no claims at all"),
            pytest.param(
                make_pod("solo").node("n1").volume("v", ephemeral={}),
                ["solo-v"],
                id="claims of ephemeral volumes do not count",
            ),
        ],
    )
    def test_skip(self, there: Any, own: list[str]) -> None:
        handle = self.handle(there.obj())
        handle.watch(claim("solo-v", modes=EXCLUSIVE))
        pod = make_pod("own").pvc(*own).obj() if own else make_pod("own").obj()
        _, status = VolumeRestrictions({}, handle).pre_filter(CycleState(), pod, handle.nodes)
        assert status.is_skip

    def test_a_claim_that_is_missing(self) -> None:
        handle = self.handle()
        pod = make_pod("own").pvc("solo", "nope").obj()
        _, status = VolumeRestrictions({}, handle).pre_filter(CycleState(), pod, handle.nodes)
        assert status == unresolvable('persistentvolumeclaim "nope" not found')

    def test_preemption_counts_claims_by_name_whatever_the_namespace(self) -> None:
        there = make_pod("there").node("n1").pvc("solo").obj()
        namesake = make_pod("x").namespace("other").node("n1").pvc("solo").obj()
        handle = self.handle(there, namesake)
        plugin, pod = VolumeRestrictions({}, handle), make_pod("own").pvc("solo").obj()
        state = CycleState()
        plugin.pre_filter(state, pod, handle.nodes)
        extensions = plugin.pre_filter_extensions()
        without = state.clone()
        assert extensions.remove_pod(without, pod, namesake, handle.nodes[0]).is_success
        assert plugin.filter(without, pod, handle.nodes[0]).is_success
        assert plugin.filter(state, pod, handle.nodes[0]) == IN_USE
        assert extensions.add_pod(without, pod, there, handle.nodes[0]).is_success
        assert plugin.filter(without, pod, handle.nodes[0]) == IN_USE


OWN = make_pod("own").pvc("data").volume("d", gcePersistentDisk=GCE).obj()
CLAIM_ADD = ClusterEvent(EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD)


@pytest.mark.parametrize(
    "event, old, new, answer",
    [
        pytest.param(NODE_ADD, None, make_node("n").obj(), "Queue", id="node added"),
        pytest.param(
            ASSIGNED_POD_DELETE,
            make_pod("x").node("n").pvc("data").obj(),
            None,
            "Queue",
            id="pod with the claim gone",
        ),
        pytest.param(
            ASSIGNED_POD_DELETE,
            make_pod("x").node("n").volume("d", gcePersistentDisk=GCE).obj(),
            None,
            "Queue",
            id="pod with the disk gone",
        ),
        pytest.param(
            ASSIGNED_POD_DELETE,
            make_pod("x").node("n").pvc("other").obj(),
            None,
            "Skip",
            id="pod with another claim gone",
        ),
        pytest.param(
            ASSIGNED_POD_DELETE,
            make_pod("x").namespace("other").node("n").pvc("data").obj(),
            None,
            "Skip",
            id="pod of another namespace gone",
        ),
        pytest.param(CLAIM_ADD, None, claim("data"), "Queue", id="own claim added"),
        pytest.param(CLAIM_ADD, None, claim("other"), "Skip", id="another claim added"),
        pytest.param(
            CLAIM_ADD, None, claim("data", namespace="other"), "Skip", id="namesake's claim added"
        ),
        pytest.param(
            ClusterEvent(EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.UPDATE),
            claim("data"),
            claim("data"),
            "Unregistered",
            id="claim changed",
        ),
    ],
)
def test_hints(event: ClusterEvent, old: Any, new: Any, answer: str) -> None:
    assert hint(VolumeRestrictions({}, FakeHandle()), event, OWN, old, new) == answer
