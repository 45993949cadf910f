"""NodeVolumeLimits, rule by rule (kube-scheduler 1.36)."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_core.api import Pod
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.events import (
    ASSIGNED_POD_DELETE,
    ActionType,
    ClusterEvent,
    EventResource,
)
from scheduler_core.framework.status import SUCCESS, Code, Status, unresolvable, unschedulable
from scheduler_core.plugins.node_volume_limits import NodeVolumeLimits
from scheduler_core.testing.builders import make_node, make_pod
from tests.plugins.storage import (
    BY_HAND,
    DRIVER,
    attachment,
    claim,
    csi_node,
    storage_class,
    volume,
)
from tests.plugins.support import FakeHandle, filter_both, hint

FULL = unschedulable("node(s) exceed max volume count")
EBS = "ebs.csi.aws.com"


def world(*objects: Any, pods: tuple[Pod, ...] = (), nodes: int = 1) -> FakeHandle:
    handle = FakeHandle([make_node(f"n{i}").obj() for i in range(nodes)], pods)
    handle.watch(*objects)
    return handle


def answer(handle: FakeHandle, pod: Pod) -> list[Status]:
    return filter_both(NodeVolumeLimits({}, handle), pod, handle.nodes)


def bound(*names: str) -> list[Any]:
    """Claims that are bound to volumes of their own."""
    pairs = [(claim(n, bound=f"pv-{n}"), volume(f"pv-{n}", claim=n)) for n in names]
    return [obj for pair in pairs for obj in pair]


OWN = make_pod("own").pvc("mine").obj()


def there(*claims: str, name: str = "there", node: str = "n0") -> Pod:
    return make_pod(name).node(node).pvc(*claims).obj()


class TestCounting:
    @pytest.mark.parametrize("limit, status", [(2, FULL), (3, SUCCESS)])
    def test_volumes_of_pods_and_its_own(self, limit: int, status: Status) -> None:
        objects = [*bound("mine", "a", "b"), csi_node("n0", {DRIVER: limit})]
        assert answer(world(*objects, pods=(there("a", "b"),)), OWN) == [status]

    def test_a_volume_that_two_pods_use_counts_once(self) -> None:
        objects = [*bound("mine", "a"), csi_node("n0", {DRIVER: 2})]
        pods = (there("a"), there("a", name="too"))
        assert answer(world(*objects, pods=pods), OWN) == [SUCCESS]

    def test_a_volume_that_is_there_already_is_not_new(self) -> None:
        objects = [*bound("mine", "a"), csi_node("n0", {DRIVER: 2})]
        assert answer(world(*objects, pods=(there("a", "mine"),)), OWN) == [SUCCESS]

    def test_nothing_new_fits_where_there_is_too_much_already(self) -> None:
        objects = [*bound("mine", "a", "b"), csi_node("n0", {DRIVER: 1})]
        assert answer(world(*objects, pods=(there("a", "b", "mine"),)), OWN) == [SUCCESS]

    @pytest.mark.parametrize(
        "node, status",
        [
            pytest.param(None, SUCCESS, id="no CSINode"),
            pytest.param({}, SUCCESS, id="no drivers"),
            pytest.param({DRIVER: None}, SUCCESS, id="a driver without limit"),
            pytest.param({"other": 0}, SUCCESS, id="another driver's limit"),
            pytest.param({DRIVER: 0}, FULL, id="no room for any"),
        ],
    )
    def test_limits(self, node: dict[str, int | None] | None, status: Status) -> None:
        objects = bound("mine") + ([] if node is None else [csi_node("n0", node)])
        assert answer(world(*objects), OWN) == [status]

    def test_attachments_beside_the_pods(self) -> None:
        """One for a pod's volume is no other volume; one for the own volume counts twice."""
        objects = [*bound("mine", "a", "lost"), csi_node("n0", {DRIVER: 2})]
        handle = world(*objects, attachment("va-a", "n0", "pv-a"), pods=(there("a"),))
        assert answer(handle, OWN) == [SUCCESS]
        handle.watch(attachment("va-lost", "n0", "pv-lost"))
        assert answer(handle, OWN) == [FULL]
        alone = world(*bound("mine"), csi_node("n0", {DRIVER: 1}))
        alone.watch(attachment("va", "n0", "pv-mine"))
        assert answer(alone, OWN) == [FULL]

    @pytest.mark.parametrize(
        "of_node",
        [
            pytest.param(attachment("va", "n1", "pv-a"), id="another node"),
            pytest.param(attachment("va", "n0", "gone"), id="no such volume"),
            pytest.param(attachment("va", "n0", ""), id="an inline volume"),
            pytest.param(attachment("va", "n0", "pv-a", driver="other"), id="another driver"),
        ],
    )
    def test_attachments_that_do_not_count(self, of_node: Any) -> None:
        handle = world(*bound("mine", "a"), of_node, csi_node("n0", {DRIVER: 1}))
        assert answer(handle, OWN) == [SUCCESS]

    @pytest.mark.parametrize(
        "objects, status",
        [
            pytest.param([claim("mine", cls="c"), storage_class("c")], FULL, id="not bound yet"),
            pytest.param(
                [claim("mine", bound="gone", cls="c"), storage_class("c")], FULL, id="volume gone"
            ),
            pytest.param(
                [claim("mine", cls="c"), storage_class("c", BY_HAND)], SUCCESS, id="another driver"
            ),
            pytest.param([claim("mine", cls="c")], SUCCESS, id="no such class"),
            pytest.param([claim("mine", cls=None)], SUCCESS, id="no class"),
            pytest.param(
                [
                    claim("mine", bound="pv"),
                    volume("pv", claim="mine", source={"nfs": {"server": "s", "path": "/"}}),
                ],
                SUCCESS,
                id="no CSI volume",
            ),
        ],
    )
    def test_what_a_claim_stands_for(self, objects: list[Any], status: Status) -> None:
        assert answer(world(*objects, csi_node("n0", {DRIVER: 0})), OWN) == [status]

    def test_an_unbound_claim_that_two_pods_use_counts_once(self) -> None:
        objects = [claim("mine", cls="c"), claim("a", cls="c"), storage_class("c")]
        handle = world(*objects, csi_node("n0", {DRIVER: 1}), pods=(there("mine"),))
        assert answer(handle, OWN) == [SUCCESS]
        assert answer(handle, make_pod("own").pvc("a").obj()) == [FULL]

    def test_a_claim_of_a_pod_there_that_is_gone_is_left_out(self) -> None:
        handle = world(*bound("mine"), csi_node("n0", {DRIVER: 1}), pods=(there("gone"),))
        assert answer(handle, OWN) == [SUCCESS]


class TestEphemeralVolumes:
    POD = make_pod("own").volume("v", ephemeral={}).obj()

    def test_its_claim_counts(self) -> None:
        objects = [claim("own-v", cls="c", owner=self.POD), storage_class("c")]
        assert answer(world(*objects, csi_node("n0", {DRIVER: 0})), self.POD) == [FULL]

    def test_a_namesake_is_an_error(self) -> None:
        handle = world(claim("own-v"))
        (status,) = answer(handle, self.POD)
        assert status.code is Code.ERROR
        assert status.message == (
            "PVC default/own-v was not created for pod default/own (pod is not owner)"
        )

    def test_a_namesake_of_a_pod_there_is_an_error_on_nodes_with_limits(self) -> None:
        pods = (make_pod("x").node("n0").volume("v", ephemeral={}).obj(),)
        handle = world(*bound("mine"), claim("x-v"), pods=pods)
        assert answer(handle, OWN) == [SUCCESS]
        handle.watch(csi_node("n0", {DRIVER: 5}))
        (status,) = answer(handle, OWN)
        assert status.code is Code.ERROR


class TestMigratedVolumes:
    def test_an_in_tree_volume_counts_as_its_drivers(self) -> None:
        own = make_pod("own").volume("v", awsElasticBlockStore={"volumeID": "vol-1"}).obj()
        handle = world(csi_node("n0", {EBS: 0}), nodes=2)
        assert answer(handle, own) == [FULL, SUCCESS]

    def test_the_same_disk_by_claim_and_directly(self) -> None:
        own = make_pod("own").volume("v", awsElasticBlockStore={"volumeID": "aws://a/vol-1"}).obj()
        source = {"awsElasticBlockStore": {"volumeID": "vol-1"}}
        objects = [claim("a", bound="pv"), volume("pv", claim="a", source=source)]
        handle = world(*objects, csi_node("n0", {EBS: 1}), pods=(there("a"),))
        assert answer(handle, own) == [SUCCESS]

    def test_a_disk_without_a_sensible_name_is_an_error(self) -> None:
        own = make_pod("own").volume("v", awsElasticBlockStore={"volumeID": "aws://a/b"}).obj()
        (with_, without) = answer(world(csi_node("n0", {}), nodes=2), own)
        assert with_.code is Code.ERROR
        assert "converting volume(v) from inline to csi: failed to translate" in with_.message
        assert without.is_success

    def test_an_in_tree_provisioner_stands_for_its_driver(self) -> None:
        objects = [claim("mine", cls="c"), storage_class("c", "kubernetes.io/aws-ebs")]
        handle = world(*objects, csi_node("n0", {EBS: 0}), nodes=2)
        assert answer(handle, OWN) == [FULL, SUCCESS]

    @pytest.mark.parametrize(
        "source, driver",
        [
            ({"gcePersistentDisk": {"pdName": "d"}}, "pd.csi.storage.gke.io"),
            ({"azureDisk": {"diskName": "d", "diskURI": "/d"}}, "disk.csi.azure.com"),
            ({"cinder": {"volumeID": "d"}}, "cinder.csi.openstack.org"),
            ({"portworxVolume": {"volumeID": "d"}}, "pxd.portworx.com"),
        ],
    )
    def test_drivers(self, source: dict[str, Any], driver: str) -> None:
        handle = world(csi_node("n0", {driver: 0}))
        assert answer(handle, make_pod("own").volume("v", **source).obj()) == [FULL]


def test_a_claim_that_is_missing() -> None:
    reason = 'looking up PVC default/mine: persistentvolumeclaim "mine" not found'
    assert answer(world(csi_node("n0"), nodes=2), OWN) == [unresolvable(reason)] * 2


@pytest.mark.parametrize(
    "pod, skips",
    [
        pytest.param(make_pod("p"), True, id="no volumes"),
        pytest.param(make_pod("p").volume("v", emptyDir={}), True, id="emptyDir"),
        pytest.param(make_pod("p").volume("v", csi={"driver": DRIVER}), True, id="inline CSI"),
        pytest.param(make_pod("p").pvc("a"), False, id="a claim"),
        pytest.param(make_pod("p").volume("v", ephemeral={}), False, id="an ephemeral volume"),
        pytest.param(
            make_pod("p").volume("v", vsphereVolume={"volumePath": "x"}), False, id="in-tree volume"
        ),
    ],
)
def test_pre_filter(pod: Any, skips: bool) -> None:
    handle = world()
    _, status = NodeVolumeLimits({}, handle).pre_filter(CycleState(), pod.obj(), handle.nodes)
    assert status.is_skip is skips


class TestChanges:
    """One plugin sees the world change; its columns follow."""

    def test_everything_it_depends_on(self) -> None:
        handle = world(*bound("mine"), csi_node("n0", {DRIVER: 1}), nodes=2)
        plugin = NodeVolumeLimits({}, handle)

        def now() -> list[bool]:
            handle.refresh()
            return [s.is_success for s in filter_both(plugin, OWN, handle.nodes)]

        assert now() == [True, True]
        handle.bind(there("late"))
        assert now() == [True, True], "a claim that is not there"
        handle.watch(claim("late", bound="pv-late"))
        assert now() == [True, True], "a volume that is not there, of no class"
        handle.watch(volume("pv-late", claim="late"))
        assert now() == [False, True], "the volume has come"
        handle.watch(csi_node("n0", {DRIVER: 2}), csi_node("n1", {DRIVER: 0}))
        assert now() == [True, False], "limits have changed"
        handle.watch(*bound("x"), attachment("va", "n0", "pv-x"))
        assert now() == [False, False], "something was attached"
        handle.watch(attachment("va", "n1", "pv-x"))
        assert now() == [True, False], "it is attached elsewhere"
        handle.informer("CSINode").delete("n1")
        assert now() == [True, True], "no CSINode any more"
        handle.bind(there("mine", name="both"))
        assert now() == [True, True], "the own volume is there"
        handle.informer("PersistentVolume").delete("pv-late")
        handle.cache.add_node(make_node("n2").obj())
        handle.watch(csi_node("n2", {DRIVER: 0}))
        assert sorted(now()) == [False, True, True], "a new node"

    def test_a_class_that_comes_late(self) -> None:
        handle = world(claim("mine", cls="c"), claim("a", cls="c"), csi_node("n0", {DRIVER: 1}))
        handle.bind(there("a"))
        handle.refresh()
        plugin = NodeVolumeLimits({}, handle)
        assert filter_both(plugin, OWN, handle.nodes) == [SUCCESS]
        handle.watch(storage_class("c"))
        assert filter_both(plugin, OWN, handle.nodes) == [FULL]


def event(resource: EventResource, action: ActionType) -> ClusterEvent:
    return ClusterEvent(resource, action)


CSI_ADD = event(EventResource.CSI_NODE, ActionType.ADD)
CSI_UPDATE = event(EventResource.CSI_NODE, ActionType.UPDATE)
CLAIM_ADD = event(EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD)
DETACHED = event(EventResource.VOLUME_ATTACHMENT, ActionType.DELETE)
EBS_POD = make_pod("own").volume("v", awsElasticBlockStore={"volumeID": "vol-1"}).obj()
EPHEMERAL = make_pod("own").volume("v", ephemeral={}).obj()


@pytest.mark.parametrize(
    "what, pod, old, new, expected",
    [
        pytest.param(CSI_ADD, OWN, None, csi_node("n"), "Queue", id="CSINode added"),
        pytest.param(
            CSI_UPDATE,
            OWN,
            csi_node("n", {DRIVER: 1}),
            csi_node("n", {DRIVER: 2}),
            "Queue",
            id="limit grew",
        ),
        pytest.param(
            CSI_UPDATE,
            OWN,
            csi_node("n"),
            csi_node("n", {DRIVER: 1}),
            "Queue",
            id="driver with a limit came",
        ),
        pytest.param(
            CSI_UPDATE,
            OWN,
            csi_node("n", {DRIVER: 2}),
            csi_node("n", {DRIVER: 1}),
            "Skip",
            id="limit shrank",
        ),
        pytest.param(
            CSI_UPDATE,
            OWN,
            csi_node("n", {DRIVER: 2}),
            csi_node("n", {DRIVER: None}),
            "Skip",
            id="limit vanished",
        ),
        pytest.param(
            ASSIGNED_POD_DELETE, OWN, there("x"), None, "Queue", id="pod with a claim gone"
        ),
        pytest.param(
            ASSIGNED_POD_DELETE,
            OWN,
            make_pod("x").node("n").volume("v", cinder={"volumeID": "d"}).obj(),
            None,
            "Queue",
            id="pod with a migrated volume gone",
        ),
        pytest.param(
            ASSIGNED_POD_DELETE,
            OWN,
            make_pod("x").node("n").volume("v", ephemeral={}).obj(),
            None,
            "Queue",
            id="pod with an ephemeral volume gone",
        ),
        pytest.param(
            ASSIGNED_POD_DELETE,
            OWN,
            make_pod("x").node("n").volume("v", emptyDir={}).obj(),
            None,
            "Skip",
            id="pod without such volumes gone",
        ),
        pytest.param(
            ASSIGNED_POD_DELETE,
            OWN,
            make_pod("x").pvc("a").obj(),
            None,
            "Skip",
            id="pod without a node gone",
        ),
        pytest.param(
            ASSIGNED_POD_DELETE,
            OWN,
            make_pod("x").nominated("n").pvc("a").obj(),
            None,
            "Queue",
            id="nominated pod gone",
        ),
        pytest.param(CLAIM_ADD, OWN, None, claim("mine"), "Queue", id="own claim added"),
        pytest.param(
            CLAIM_ADD, EPHEMERAL, None, claim("own-v"), "Queue", id="own ephemeral claim added"
        ),
        pytest.param(CLAIM_ADD, OWN, None, claim("other"), "Skip", id="another claim added"),
        pytest.param(
            DETACHED,
            OWN,
            attachment("va", "n", "pv"),
            None,
            "Queue",
            id="detached, pod has a claim",
        ),
        pytest.param(
            DETACHED,
            EBS_POD,
            attachment("va", "n", "pv", EBS),
            None,
            "Queue",
            id="detached, of the migrated volume's driver",
        ),
        pytest.param(
            DETACHED,
            EBS_POD,
            attachment("va", "n", "pv"),
            None,
            "Skip",
            id="detached, of another driver",
        ),
        pytest.param(
            DETACHED,
            EPHEMERAL,
            attachment("va", "n", "pv"),
            None,
            "Skip",
            id="detached, pod has an ephemeral volume alone",
        ),
        pytest.param(
            event(EventResource.NODE, ActionType.ADD),
            OWN,
            None,
            make_node("n").obj(),
            "Unregistered",
            id="node added",
        ),
    ],
)
def test_hints(what: ClusterEvent, pod: Pod, old: Any, new: Any, expected: str) -> None:
    assert hint(NodeVolumeLimits({}, FakeHandle()), what, pod, old, new) == expected
