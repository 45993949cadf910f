"""VolumeZone, rule by rule (kube-scheduler 1.36)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.events import NODE_ADD, ActionType, ClusterEvent, EventResource
from scheduler_core.framework.status import SUCCESS, unresolvable
from scheduler_core.plugins.volume_zone import VolumeZone
from scheduler_core.testing.builders import make_node, make_pod
from tests.plugins.storage import ZONE, claim, storage_class, volume
from tests.plugins.support import FakeHandle, filter_both, hint

REJECTED = unresolvable("node(s) had no available volume zone")
OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
OLD_REGION = "failure-domain.beta.kubernetes.io/region"
REGION = "topology.kubernetes.io/region"
POD = make_pod("own").pvc("data").obj()


@pytest.mark.parametrize(
    "of_volume, of_node, fits",
    [
        pytest.param({ZONE: "a"}, {ZONE: "a"}, True, id="the zone"),
        pytest.param({ZONE: "a"}, {ZONE: "b"}, False, id="another zone"),
        pytest.param({ZONE: "a"}, {}, True, id="a node without any such label passes"),
        pytest.param({ZONE: "a"}, {"disk": "ssd"}, True, id="other labels are none"),
        pytest.param({ZONE: "a"}, {REGION: "r"}, False, id="the zone is missing on the node"),
        pytest.param({ZONE: "a__ b"}, {ZONE: "b"}, True, id="one of several zones, trimmed"),
        pytest.param({ZONE: "a__b"}, {ZONE: "c"}, False, id="none of several zones"),
        pytest.param(
            {ZONE: "a__", REGION: "r"}, {ZONE: "c", REGION: "r"}, True, id="an empty part: ignored"
        ),
        pytest.param({OLD_ZONE: "a"}, {ZONE: "a"}, True, id="old label, new node"),
        pytest.param({OLD_ZONE: "a"}, {OLD_ZONE: "b", ZONE: "a"}, False, id="old label goes first"),
        pytest.param({ZONE: "a"}, {OLD_ZONE: "a"}, False, id="new label, old node"),
        pytest.param(
            {ZONE: "a", REGION: "r"}, {ZONE: "a", REGION: "s"}, False, id="every label must match"
        ),
        pytest.param({OLD_REGION: "r"}, {REGION: "r"}, True, id="old region, new node"),
    ],
)
def test_filter(of_volume: Mapping[str, str], of_node: Mapping[str, str], fits: bool) -> None:
    handle = FakeHandle([make_node("n1").label(of_node).obj()])
    handle.watch(claim("data", bound="pv"), volume("pv", claim="data", labels=of_volume))
    plugin, state = VolumeZone({}, handle), CycleState()
    _, status = plugin.pre_filter(state, POD, handle.nodes)
    assert status.is_success
    assert filter_both(plugin, POD, handle.nodes, state) == [SUCCESS if fits else REJECTED]


def test_without_prefilter_it_looks_the_volumes_up_in_filter() -> None:
    handle = FakeHandle([make_node("n1").label({ZONE: "b"}).obj()])
    handle.watch(claim("data", bound="pv"), volume("pv", claim="data", labels={ZONE: "a"}))
    plugin = VolumeZone({}, handle)
    assert filter_both(plugin, POD, handle.nodes) == [REJECTED]
    missing = make_pod("own").pvc("nope").obj()
    status = unresolvable('persistentvolumeclaim "nope" not found')
    assert filter_both(plugin, missing, handle.nodes) == [status]


@pytest.mark.parametrize(
    "objects, names, reason",
    [
        pytest.param([], [""], "PersistentVolumeClaim had no name", id="no name"),
        pytest.param([], ["data"], 'persistentvolumeclaim "data" not found', id="no claim"),
        pytest.param(
            [claim("data")],
            ["data"],
            "PersistentVolumeClaim had no pv name and storageClass name",
            id="neither volume nor class",
        ),
        pytest.param(
            [claim("data", cls="c")],
            ["data"],
            'storageclass.storage.k8s.io "c" not found',
            id="no class",
        ),
        pytest.param(
            [claim("data", cls="c"), storage_class("c", mode=None)],
            ["data"],
            'VolumeBindingMode not set for StorageClass "c"',
            id="a class without mode",
        ),
        pytest.param(
            [claim("data", cls="c"), storage_class("c", waits=False)],
            ["data"],
            "PersistentVolume had no name",
            id="unbound, immediate",
        ),
        pytest.param(
            [claim("data", bound="pv")], ["data"], 'persistentvolume "pv" not found', id="no volume"
        ),
    ],
)
def test_pre_filter_rejects(objects: list[Any], names: list[str], reason: str) -> None:
    handle = FakeHandle([make_node("n1").obj()])
    handle.watch(*objects)
    pod = make_pod("own").pvc(*names).obj()
    _, status = VolumeZone({}, handle).pre_filter(CycleState(), pod, handle.nodes)
    assert status == unresolvable(reason)


@pytest.mark.parametrize(
    "objects, pod",
    [
        pytest.param([], make_pod("own"), id="no volumes"),
        pytest.param([], make_pod("own").volume("v", ephemeral={}), id="an ephemeral volume"),
        pytest.param(
            [claim("data", cls="c"), storage_class("c")],
            make_pod("own").pvc("data"),
            id="waits for its first consumer",
        ),
        pytest.param(
            [claim("data", bound="pv"), volume("pv", claim="data", labels={"disk": "ssd"})],
            make_pod("own").pvc("data"),
            id="a volume without such labels",
        ),
    ],
)
def test_pre_filter_skips(objects: list[Any], pod: Any) -> None:
    handle = FakeHandle([make_node("n1").obj()])
    handle.watch(*objects)
    _, status = VolumeZone({}, handle).pre_filter(CycleState(), pod.obj(), handle.nodes)
    assert status.is_skip


def event(resource: EventResource, action: ActionType) -> ClusterEvent:
    return ClusterEvent(resource, action)


CLASS_ADD = event(EventResource.STORAGE_CLASS, ActionType.ADD)
CLAIM_ADD = event(EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD)
CLAIM_UPDATE = event(EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.UPDATE)
VOLUME_ADD = event(EventResource.PERSISTENT_VOLUME, ActionType.ADD)
VOLUME_UPDATE = event(EventResource.PERSISTENT_VOLUME, ActionType.UPDATE)
NODE_LABEL = event(EventResource.NODE, ActionType.UPDATE_NODE_LABEL)
IN_A, IN_B = volume("pv", labels={ZONE: "a"}), volume("pv", labels={ZONE: "b"})


@pytest.mark.parametrize(
    "what, old, new, answer",
    [
        pytest.param(CLASS_ADD, None, storage_class("c"), "Queue", id="class that waits added"),
        pytest.param(
            CLASS_ADD, None, storage_class("c", waits=False), "Skip", id="immediate class added"
        ),
        pytest.param(CLAIM_ADD, None, claim("data"), "Queue", id="own claim added"),
        pytest.param(CLAIM_UPDATE, claim("data"), claim("data"), "Queue", id="own claim changed"),
        pytest.param(CLAIM_ADD, None, claim("other"), "Skip", id="another claim added"),
        pytest.param(
            CLAIM_UPDATE,
            claim("data", namespace="x"),
            claim("data", namespace="x"),
            "Skip",
            id="another namespace's claim changed",
        ),
        pytest.param(VOLUME_ADD, None, IN_A, "Queue", id="volume added"),
        pytest.param(VOLUME_UPDATE, IN_A, IN_B, "Queue", id="volume's zone changed"),
        pytest.param(
            VOLUME_UPDATE,
            IN_A,
            volume("pv", labels={ZONE: "a", "x": "y"}, size="20Gi"),
            "Skip",
            id="volume changed otherwise",
        ),
        pytest.param(NODE_ADD, None, make_node("n").obj(), "Queue", id="node added"),
        pytest.param(
            NODE_LABEL, make_node("n").obj(), make_node("n").obj(), "Queue", id="node relabelled"
        ),
    ],
)
def test_hints(what: ClusterEvent, old: Any, new: Any, answer: str) -> None:
    assert hint(VolumeZone({}, FakeHandle()), what, POD, old, new) == answer
