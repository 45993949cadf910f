"""VolumeBinding: which claims a pod may have, and on which nodes (kube-scheduler 1.36)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from scheduler_core.api import Pod
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.errors import PluginConfigError
from scheduler_core.framework.events import NODE_ADD, ActionType, ClusterEvent, EventResource
from scheduler_core.framework.status import Code, Status, unresolvable
from scheduler_core.plugins.volume_binding import VolumeBinding
from scheduler_core.testing.builders import make_node, make_pod
from tests.plugins.storage import (
    BY_HAND,
    DRIVER,
    ZONE,
    claim,
    csi_driver,
    csi_node,
    free_space,
    is_in,
    storage_class,
    volume,
)
from tests.plugins.support import FakeHandle, filter_both, hint, score_both

NOT_ADMITTED = "node(s) didn't match PersistentVolume's node affinity"
NOTHING = "node(s) didn't find available persistent volumes to bind"
NO_SPACE = "node(s) did not have enough free storage"
GONE = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"

POD = make_pod("own").pvc("data").obj()
LOCAL = storage_class("local", BY_HAND)
FAST = storage_class("fast")


def world(*objects: Any) -> FakeHandle:
    """n0 in zone a, n1 in zone b, n2 in none."""
    nodes = [make_node("n0").zone("a").obj(), make_node("n1").zone("b").obj()]
    handle = FakeHandle([*nodes, make_node("n2").obj()])
    handle.watch(*objects)
    return handle


def answer(handle: FakeHandle, pod: Pod = POD) -> dict[str, list[str]]:
    """node -> reasons, of the nodes that it may not run on."""
    plugin, state = VolumeBinding({}, handle), CycleState()
    _, status = plugin.pre_filter(state, pod, handle.nodes)
    assert status.is_success, status
    statuses = filter_both(plugin, pod, handle.nodes, state)
    assert {s.code for s in statuses} <= {Code.SUCCESS, Code.UNSCHEDULABLE_AND_UNRESOLVABLE}
    return {
        name: list(status.reasons)
        for name, status in zip(handle.nodes.names, statuses, strict=True)
        if not status.is_success
    }


def all_nodes(reason: str) -> dict[str, list[str]]:
    return {name: [reason] for name in ("n0", "n1", "n2")}


def pre_filter(handle: FakeHandle, pod: Pod = POD) -> Status:
    return VolumeBinding({}, handle).pre_filter(CycleState(), pod, handle.nodes)[1]


EPHEMERAL = make_pod("own").volume("v", ephemeral={}).obj()
UNBOUND = "pod has unbound immediate PersistentVolumeClaims"


@pytest.mark.parametrize(
    "objects, pod, reason",
    [
        pytest.param([], POD, 'persistentvolumeclaim "data" not found', id="no claim"),
        pytest.param(
            [],
            EPHEMERAL,
            'waiting for ephemeral volume controller to create the persistentvolumeclaim "own-v"',
            id="no claim of the ephemeral volume yet",
        ),
        pytest.param(
            [claim("data", bound="pv", phase="Lost")],
            POD,
            'persistentvolumeclaim "data" bound to non-existent persistentvolume "pv"',
            id="a lost claim",
        ),
        pytest.param(
            [claim("data", terminating=True)],
            POD,
            'persistentvolumeclaim "data" is being deleted',
            id="a claim that is going",
        ),
        pytest.param(
            [claim("own-v")],
            EPHEMERAL,
            "PVC default/own-v was not created for pod default/own (pod is not owner)",
            id="a namesake of the ephemeral volume's claim",
        ),
        pytest.param([claim("data", cls=None)], POD, UNBOUND, id="unbound: no class"),
        pytest.param([claim("data", cls="x")], POD, UNBOUND, id="unbound: no such class"),
        pytest.param(
            [claim("data", cls="c"), storage_class("c", waits=False)],
            POD,
            UNBOUND,
            id="unbound: immediate class",
        ),
        pytest.param(
            [claim("data", cls="fast", volumeName="pv"), FAST],
            POD,
            UNBOUND,
            id="unbound: its user chose the volume",
        ),
    ],
)
def test_pre_filter_rejects(objects: list[Any], pod: Pod, reason: str) -> None:
    assert pre_filter(world(*objects), pod) == unresolvable(reason)


def test_pre_filter_skips_pods_without_claims() -> None:
    assert pre_filter(world(), make_pod("own").volume("v", emptyDir={}).obj()).is_skip


def test_a_class_without_a_mode_is_an_error() -> None:
    status = pre_filter(world(claim("data", cls="c"), storage_class("c", mode=None)))
    assert status.code is Code.ERROR
    assert status.message == 'VolumeBindingMode not set for StorageClass "c"'


class TestBoundClaims:
    def test_the_volume_says_where(self) -> None:
        objects = [claim("data", bound="pv"), volume("pv", claim="data", terms=[is_in(ZONE, "a")])]
        assert answer(world(*objects)) == {"n1": [NOT_ADMITTED], "n2": [NOT_ADMITTED]}

    def test_a_volume_without_affinity_is_anywhere(self) -> None:
        assert answer(world(claim("data", bound="pv"), volume("pv", claim="data"))) == {}

    @pytest.mark.parametrize(
        "terms, nodes",
        [
            pytest.param([], "", id="no terms"),
            pytest.param([{}], "", id="an empty term"),
            pytest.param([is_in(ZONE, "a"), is_in(ZONE, "b")], "n0 n1", id="terms are ORed"),
            pytest.param(
                [{"matchExpressions": [{"key": ZONE, "operator": "Bad", "values": ["a"]}]}],
                "",
                id="a term that does not parse",
            ),
            pytest.param(
                [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n0"]}]}],
                "",
                id="a node's name does not count",
            ),
            pytest.param(
                [{"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["x"]}]}],
                "n0 n1 n2",
                id="nor does what it is not",
            ),
        ],
    )
    def test_affinity(self, terms: list[Any], nodes: str) -> None:
        handle = world(claim("data", bound="pv"), volume("pv", claim="data", terms=terms))
        assert set(handle.nodes.names) - set(answer(handle)) == set(nodes.split())

    def test_a_volume_that_is_gone(self) -> None:
        assert answer(world(claim("data", bound="pv"))) == all_nodes(GONE)

    def test_the_first_bad_one_decides(self) -> None:
        pod = make_pod("own").pvc("data", "more").obj()
        objects = [
            claim("data", bound="pv"),
            volume("pv", claim="data", terms=[is_in(ZONE, "a")]),
            claim("more", bound="lost"),
        ]
        reasons = answer(world(*objects), pod)
        assert reasons == {"n0": [GONE], "n1": [NOT_ADMITTED], "n2": [NOT_ADMITTED]}

    def test_reasons_of_bound_and_unbound_claims_come_together(self) -> None:
        pod = make_pod("own").pvc("data", "more").obj()
        objects = [
            claim("data", bound="pv"),
            volume("pv", claim="data", terms=[is_in(ZONE, "a")]),
            claim("more", cls="local"),
            LOCAL,
        ]
        assert answer(world(*objects), pod)["n1"] == [NOT_ADMITTED, NOTHING]


class TestMigratedVolumes:
    """In-tree volumes on nodes whose CSI driver has taken them over."""

    KEY = "topology.ebs.csi.aws.com/zone"
    EBS = {"awsElasticBlockStore": {"volumeID": "vol-1"}}

    def handle(self, **of_volume: Any) -> FakeHandle:
        nodes = [make_node(n).label({self.KEY: "a"}).obj() for n in ("new", "other")]
        handle = FakeHandle([*nodes, make_node("old").zone("a").obj()])
        handle.watch(
            claim("data", bound="pv"),
            volume("pv", claim="data", source=self.EBS, **of_volume),
            csi_node("new", migrated="kubernetes.io/cinder,kubernetes.io/aws-ebs"),
            csi_node("other", migrated="kubernetes.io/cinder"),
        )
        return handle

    def test_zones_are_those_of_the_driver(self) -> None:
        assert set(answer(self.handle(terms=[is_in(ZONE, "a")]))) == {"other"}

    def test_labels_become_affinity(self) -> None:
        assert set(answer(self.handle(labels={ZONE: "b__ a"}))) == set()
        assert set(answer(self.handle(labels={ZONE: "b"}))) == {"new"}

    def test_a_source_that_cannot_be_translated_is_an_error(self) -> None:
        handle = self.handle()
        bad = {"awsElasticBlockStore": {"volumeID": "aws://a/b"}}
        handle.watch(volume("pv", claim="data", source=bad))
        plugin, state = VolumeBinding({}, handle), CycleState()
        plugin.pre_filter(state, POD, handle.nodes)
        statuses = filter_both(plugin, POD, handle.nodes, state)
        assert [s.code for s in statuses] == [Code.ERROR, Code.SUCCESS, Code.SUCCESS]
        assert statuses[0].message.startswith("could not translate pv: failed to translate")


def local(name: str, zone: str = "a", **more: Any) -> Any:
    return volume(name, cls="local", terms=[is_in(ZONE, zone)], **more)


class TestStaticVolumes:
    """Volumes that exist already, for a claim that waits for its first consumer."""

    def test_a_node_that_a_free_volume_admits(self) -> None:
        handle = world(claim("data", cls="local"), LOCAL, local("pv"))
        assert answer(handle) == {"n1": [NOTHING], "n2": [NOTHING]}

    @pytest.mark.parametrize(
        "of_claim, of_volume",
        [
            pytest.param({"size": "20Gi"}, {}, id="too small"),
            pytest.param({"modes": ["ReadWriteMany"]}, {}, id="access modes"),
            pytest.param({"volumeMode": "Block"}, {}, id="volume mode"),
            pytest.param({"volumeAttributesClassName": "gold"}, {}, id="attributes class wanted"),
            pytest.param({}, {"volumeAttributesClassName": "gold"}, id="attributes class there"),
            pytest.param({"selector": {"matchLabels": {"a": "b"}}}, {}, id="selector"),
            pytest.param({}, {"phase": "Pending"}, id="not Available"),
            pytest.param({}, {"phase": "Released"}, id="Released"),
            pytest.param({}, {"terminating": True}, id="going"),
            pytest.param({}, {"claim": "other"}, id="another claim's"),
            pytest.param({}, {"claim": "data", "claim_uid": "old"}, id="an older claim's"),
        ],
    )
    def test_volumes_that_do_not_fit(self, of_claim: Any, of_volume: Any) -> None:
        handle = world(claim("data", cls="local", **of_claim), LOCAL, local("pv", **of_volume))
        assert set(answer(handle)) == {"n0", "n1", "n2"}

    def test_more_than_asked_for_fits(self) -> None:
        wanted = claim("data", cls="local", selector={"matchLabels": {"a": "b"}})
        modes = ["ReadWriteMany", "ReadWriteOnce"]
        handle = world(wanted, LOCAL, local("pv", labels={"a": "b", "c": "d"}, accessModes=modes))
        assert "n0" not in answer(handle)

    def test_another_class_does_not_fit(self) -> None:
        other = volume("pv", cls="other")
        assert set(answer(world(claim("data", cls="local"), LOCAL, other))) == {"n0", "n1", "n2"}

    @pytest.mark.parametrize("reference", ["", "pvc-default-data"], ids=["by name", "by uid"])
    def test_a_volume_kept_for_the_claim_needs_no_phase_selector_or_modes(
        self, reference: str
    ) -> None:
        wanted = claim(
            "data", cls="local", modes=["ReadWriteMany"], selector={"matchLabels": {"a": "b"}}
        )
        kept = local("pv", claim="data", claim_uid=reference, phase="Pending")
        assert "n0" not in answer(world(wanted, LOCAL, kept))

    def test_a_volume_kept_for_the_claim_is_the_only_choice(self) -> None:
        handle = world(
            claim("data", cls="local"), LOCAL, local("free", "b"), local("kept", claim="data")
        )
        assert set(answer(handle)) == {"n1", "n2"}

    def test_a_volume_kept_for_the_claim_that_is_too_small_is_none(self) -> None:
        small = local("kept", claim="data", size="1Mi")
        handle = world(claim("data", cls="local"), LOCAL, local("free", "b"), small)
        assert set(answer(handle)) == {"n0", "n2"}

    def test_claims_do_not_share_volumes(self) -> None:
        pod = make_pod("own").pvc("data", "more").obj()
        claims = [claim("data", cls="local"), claim("more", cls="local"), LOCAL]
        one_each = [local("a1"), local("b1", "b"), local("b2", "b")]
        assert set(answer(world(*claims, *one_each), pod)) == {"n0", "n2"}

    def test_small_claims_take_small_volumes_first(self) -> None:
        pod = make_pod("own").pvc("large", "small").obj()
        claims = [claim("large", cls="local", size="5Gi"), claim("small", cls="local"), LOCAL]
        fits = [local("v1", size="10Gi"), local("v2", size="2Gi")]
        assert "n0" not in answer(world(*claims, *fits), pod)

    def test_a_claim_that_is_named_twice_needs_two_volumes(self) -> None:
        pod = make_pod("own").pvc("data", "data").obj()
        assert "n0" in answer(world(claim("data", cls="local"), LOCAL, local("v1")), pod)


class TestProvisioning:
    def test_a_class_with_a_provisioner_makes_one_anywhere(self) -> None:
        assert answer(world(claim("data", cls="fast"), FAST)) == {}

    @pytest.mark.parametrize("provisioner", ["", BY_HAND])
    def test_a_class_without_one_makes_none(self, provisioner: str) -> None:
        handle = world(claim("data", cls="c"), storage_class("c", provisioner))
        assert answer(handle) == all_nodes(NOTHING)

    def test_allowed_topologies(self) -> None:
        zones = storage_class("zones", allowed=[{ZONE: ["b", "c"]}, {"rack": ["r1"]}])
        handle = world(claim("data", cls="zones"), zones)
        assert answer(handle) == {"n0": [NOTHING], "n2": [NOTHING]}

    def test_a_volume_that_exists_goes_before_the_topologies(self) -> None:
        zones = storage_class("zones", allowed=[{ZONE: ["b"]}])
        there = volume("pv", cls="zones", terms=[is_in(ZONE, "a")])
        assert set(answer(world(claim("data", cls="zones"), zones, there))) == {"n2"}

    def test_a_selected_node_is_the_only_one(self) -> None:
        handle = world(claim("data", cls="fast", selected="n1"), FAST, volume("pv", cls="fast"))
        assert answer(handle) == {"n0": [NOTHING], "n2": [NOTHING]}

    @pytest.mark.parametrize("selected", ["gone", ""])
    def test_a_selected_node_that_is_not_there(self, selected: str) -> None:
        handle = world(claim("data", cls="fast", selected=selected), FAST)
        assert set(answer(handle)) == {"n0", "n1", "n2"}

    def test_a_selected_node_does_not_take_a_volume_that_exists(self) -> None:
        handle = world(claim("data", cls="local", selected="n0"), LOCAL, local("pv"))
        assert set(answer(handle)) == {"n0", "n1", "n2"}


class TestCapacity:
    """CSIStorageCapacity, where the driver publishes it."""

    @pytest.mark.parametrize(
        "space, nodes",
        [
            pytest.param([], "", id="nothing is known"),
            pytest.param([free_space("s", "fast", "5Gi", labels={ZONE: "a"})], "n0", id="enough"),
            pytest.param([free_space("s", "fast", "1Gi", labels={ZONE: "a"})], "", id="not enough"),
            pytest.param([free_space("s", "fast", "2Gi", labels={ZONE: "a"})], "n0", id="exactly"),
            pytest.param(
                [free_space("s", "fast", "9Gi", largest="1Gi", labels={ZONE: "a"})],
                "",
                id="no volume may be so large",
            ),
            pytest.param(
                [free_space("s", "fast", None, largest="2Gi", labels={ZONE: "a"})],
                "n0",
                id="the largest volume counts",
            ),
            pytest.param(
                [free_space("s", "fast", None, labels={ZONE: "a"})], "", id="neither is known"
            ),
            pytest.param([free_space("s", "fast", "5Gi")], "", id="for no node"),
            pytest.param([free_space("s", "fast", "5Gi", labels={})], "n0 n1 n2", id="for all"),
            pytest.param([free_space("s", "other", "5Gi", labels={})], "", id="of another class"),
        ],
    )
    def test_room(self, space: list[Any], nodes: str) -> None:
        handle = world(claim("data", cls="fast", size="2Gi"), FAST, csi_driver(capacity=True))
        handle.watch(*space)
        reasons = answer(handle)
        assert set(handle.nodes.names) - set(reasons) == set(nodes.split())
        assert all(found == [NO_SPACE] for found in reasons.values())

    def test_a_driver_that_publishes_none_is_not_asked(self) -> None:
        assert answer(world(claim("data", cls="fast"), FAST, csi_driver(capacity=False))) == {}

    def test_topology_is_looked_at_first(self) -> None:
        zones = storage_class("zones", allowed=[{ZONE: ["b"]}])
        handle = world(claim("data", cls="zones"), zones, csi_driver(capacity=True))
        assert answer(handle) == {"n0": [NOTHING], "n1": [NO_SPACE], "n2": [NOTHING]}


def test_it_keeps_a_slot_at_score_and_gives_no_scores() -> None:
    handle = world()
    plugin = VolumeBinding({}, handle)
    assert plugin.pre_score(CycleState(), POD, handle.nodes).is_skip
    assert score_both(plugin, POD, handle.nodes) == [0, 0, 0]


def test_some_nodes_in_an_order_of_their_own() -> None:
    handle = world(claim("data", cls="local"), LOCAL, local("a1"), local("b1", "b"))
    plugin, state = VolumeBinding({}, handle), CycleState()
    plugin.pre_filter(state, POD, handle.nodes)
    some = handle.nodes.subset(np.array([2, 1], dtype=np.intp))
    assert [s.is_success for s in filter_both(plugin, POD, some, state)] == [False, True]


@pytest.mark.parametrize(
    "args, text",
    [
        (
            {"bindTimeoutSeconds": -1},
            "bindTimeoutSeconds: Invalid value: -1: invalid BindTimeoutSeconds, should not be a "
            "negative value",
        ),
        (
            {"shape": [{"utilization": 0, "score": 0}]},
            'shape: Invalid value: [{"score":0,"utilization":0}]: unexpected field `shape`, '
            "remove it or turn on the feature gate StorageCapacityScoring",
        ),
    ],
)
def test_arguments(args: dict[str, Any], text: str) -> None:
    with pytest.raises(PluginConfigError) as caught:
        VolumeBinding(args, FakeHandle())
    assert str(caught.value) == text


def event(resource: EventResource, action: ActionType) -> ClusterEvent:
    return ClusterEvent(resource, action)


ADD, UPDATE = ActionType.ADD, ActionType.UPDATE
CLASS, CLAIM = EventResource.STORAGE_CLASS, EventResource.PERSISTENT_VOLUME_CLAIM
VOLUME, CSI_NODE = EventResource.PERSISTENT_VOLUME, EventResource.CSI_NODE
CSI_DRIVER, CAPACITY = EventResource.CSI_DRIVER, EventResource.CSI_STORAGE_CAPACITY
INLINE = make_pod("own").volume("v", csi={"driver": DRIVER}).obj()


@pytest.mark.parametrize(
    "what, pod, old, new, expected",
    [
        pytest.param(event(CLASS, ADD), POD, None, FAST, "Queue", id="class added"),
        pytest.param(
            event(CLASS, UPDATE),
            POD,
            FAST,
            storage_class("fast", allowed=[{ZONE: ["a"]}]),
            "Queue",
            id="class's topologies changed",
        ),
        pytest.param(event(CLASS, UPDATE), POD, FAST, FAST, "Skip", id="class changed otherwise"),
        pytest.param(event(CLAIM, ADD), POD, None, claim("data"), "Queue", id="own claim added"),
        pytest.param(
            event(CLAIM, UPDATE), POD, claim("data"), claim("data"), "Queue", id="own claim changed"
        ),
        pytest.param(
            event(CLAIM, ADD), EPHEMERAL, None, claim("own-v"), "Queue", id="ephemeral claim added"
        ),
        pytest.param(event(CLAIM, ADD), POD, None, claim("x"), "Skip", id="another claim added"),
        pytest.param(
            event(CLAIM, ADD),
            POD,
            None,
            claim("data", namespace="x"),
            "Skip",
            id="another namespace's claim added",
        ),
        pytest.param(event(VOLUME, ADD), POD, None, volume("pv"), "Queue", id="volume added"),
        pytest.param(
            event(VOLUME, UPDATE), POD, volume("pv"), volume("pv"), "Queue", id="volume changed"
        ),
        pytest.param(NODE_ADD, POD, None, make_node("n").obj(), "Queue", id="node added"),
        pytest.param(
            event(EventResource.NODE, ActionType.UPDATE_NODE_LABEL),
            POD,
            make_node("n").obj(),
            make_node("n").obj(),
            "Queue",
            id="node relabelled",
        ),
        pytest.param(event(CSI_NODE, ADD), POD, None, csi_node("n"), "Queue", id="CSINode added"),
        pytest.param(
            event(CSI_NODE, UPDATE),
            POD,
            csi_node("n"),
            csi_node("n", migrated="kubernetes.io/aws-ebs"),
            "Queue",
            id="migrated plugins changed",
        ),
        pytest.param(
            event(CSI_NODE, UPDATE),
            POD,
            csi_node("n"),
            csi_node("n", {DRIVER: 1}),
            "Skip",
            id="CSINode changed otherwise",
        ),
        pytest.param(
            event(CSI_DRIVER, UPDATE),
            INLINE,
            csi_driver(capacity=True),
            csi_driver(capacity=False),
            "Queue",
            id="driver no longer publishes capacity",
        ),
        pytest.param(
            event(CSI_DRIVER, UPDATE),
            INLINE,
            csi_driver(capacity=False),
            csi_driver(capacity=True),
            "Skip",
            id="driver begins to publish capacity",
        ),
        pytest.param(
            event(CSI_DRIVER, UPDATE),
            POD,
            csi_driver(capacity=True),
            csi_driver(capacity=False),
            "Skip",
            id="driver of no inline volume",
        ),
        pytest.param(
            event(CSI_DRIVER, ADD),
            POD,
            None,
            csi_driver(capacity=True),
            "Unregistered",
            id="driver added",
        ),
        pytest.param(
            event(CAPACITY, ADD), POD, None, free_space("s", "c", "1Gi"), "Queue", id="space added"
        ),
        pytest.param(
            event(CAPACITY, UPDATE),
            POD,
            free_space("s", "c", "1Gi"),
            free_space("s", "c", "2Gi"),
            "Queue",
            id="space grew",
        ),
        pytest.param(
            event(CAPACITY, UPDATE),
            POD,
            free_space("s", "c", None),
            free_space("s", "c", "1Gi"),
            "Queue",
            id="space became known",
        ),
        pytest.param(
            event(CAPACITY, UPDATE),
            POD,
            free_space("s", "c", "2Gi"),
            free_space("s", "c", "2Gi", largest="1Gi"),
            "Skip",
            id="limit shrank",
        ),
    ],
)
def test_hints(what: ClusterEvent, pod: Pod, old: Any, new: Any, expected: str) -> None:
    assert hint(VolumeBinding({}, FakeHandle()), what, pod, old, new) == expected
