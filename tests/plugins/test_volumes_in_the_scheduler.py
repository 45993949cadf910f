"""Volumes in the whole scheduler: reserved in memory, written and waited for, given back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from scheduler_core.clock import VirtualClock
from scheduler_core.cluster.ephemeral_claims import EphemeralClaimController
from scheduler_core.cluster.sandbox import ActingView, SandboxCluster
from scheduler_core.cluster.volume_controller import VolumeController
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.interface import PermitPlugin
from scheduler_core.framework.status import Status, unschedulable
from scheduler_core.plugins.volume_binding import VolumeBinding
from scheduler_core.ports import Conflict
from scheduler_core.testing.builders import make_node, make_pod
from scheduler_core.testing.harness import Harness
from tests.plugins.storage import ZONE, is_in

START = 1_000_000.0
SELECTED = "volume.kubernetes.io/selected-node"


class BusyClock(VirtualClock):
    """While somebody sleeps, the rest of the world goes on."""

    def __init__(self) -> None:
        super().__init__(START)
        self.meanwhile: Callable[[], None] = lambda: None

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        self.meanwhile()


class World(Harness):
    """Two nodes, each with its zone; controllers that work while a binding waits."""

    def __init__(self, *, controllers: bool = True, timeout: int = 600, **more: Any) -> None:
        self.time = BusyClock()
        args = {"bindTimeoutSeconds": timeout}
        profile = {"pluginConfig": [{"name": "VolumeBinding", "args": args}], **more}
        plugins = profile.pop("extra", ())
        nodes = [make_node("n0").zone("a"), make_node("n1").zone("b")]
        super().__init__(nodes=nodes, clock=self.time, profile=profile, plugins=plugins)
        make = (EphemeralClaimController, VolumeController) if controllers else ()
        self.controllers = [of(self.cluster) for of in make]
        self.time.meanwhile = self.control

    def control(self) -> None:
        for _ in range(10):
            for part in self.controllers:
                part.tick(self.clock.now())

    def go(self) -> None:
        self.control()
        self.settle()

    def storage_class(self, name: str, provisioner: str, **more: Any) -> None:
        raw = {"metadata": {"name": name}, "provisioner": provisioner, **more}
        self.create("StorageClass", {"volumeBindingMode": "WaitForFirstConsumer", **raw})

    def local_class(self) -> None:
        self.storage_class("local", "kubernetes.io/no-provisioner")

    def local(self, name: str, zone: str, size: str = "1Gi") -> None:
        spec = {
            "capacity": {"storage": size},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "local",
            "local": {"path": "/data"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [is_in(ZONE, zone)]}},
        }
        self.create("PersistentVolume", {"metadata": {"name": name}, "spec": spec})

    def claim(self, name: str, cls: str, size: str = "1Gi") -> None:
        spec = {
            "storageClassName": cls,
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": size}},
        }
        self.create("PersistentVolumeClaim", {"metadata": {"name": name}, "spec": spec})

    def get(self, kind: str, name: str) -> dict[str, Any]:
        return dict(self.cluster.get(kind, "default", name))

    def volume_of(self, claim: str) -> str:
        return str(self.get("PersistentVolumeClaim", claim)["spec"].get("volumeName", ""))

    def failures(self, pod: str) -> list[str]:
        """What each binding of a pod that failed said."""
        bindings = (b for b in self.observer.bindings if b.pod.name == pod)
        return [b.message for b in bindings if not b.bound]


class TestStaticBinding:
    def test_the_pod_runs_where_the_volume_is_and_the_claim_is_bound(self) -> None:
        world = World()
        world.local_class()
        world.local("pv", "b")
        world.claim("data", "local")
        world.create("Pod", make_pod("web").pvc("data"))
        world.go()
        assert world.node_of("web") == "n1"
        assert world.volume_of("data") == "pv"
        volume = world.get("PersistentVolume", "pv")
        assert volume["metadata"]["annotations"] == {"pv.kubernetes.io/bound-by-controller": "yes"}
        assert volume["spec"]["claimRef"]["name"] == "data"
        assert world.clock.now() == START + 1.0  # looked once, a second after the write

    def test_the_smallest_volume_is_taken(self) -> None:
        world = World()
        world.local_class()
        world.local("large", "b", "10Gi")
        world.local("small", "b", "2Gi")
        world.claim("data", "local")
        world.create("Pod", make_pod("web").pvc("data"))
        world.go()
        assert world.volume_of("data") == "small"

    def test_two_pods_never_get_one_volume(self) -> None:
        world = World()
        world.local_class()
        world.local("pv", "a")
        for name in ("x", "y"):
            world.claim(name, "local")
            world.create("Pod", make_pod(name).pvc(name))
        world.go()
        assert sorted([world.node_of("x"), world.node_of("y")]) == ["", "n0"]
        world.local("more", "b")
        world.go()
        world.advance(20.0)
        assert {world.node_of("x"), world.node_of("y")} == {"n0", "n1"}
        assert {world.volume_of("x"), world.volume_of("y")} == {"pv", "more"}

    def test_a_volume_that_comes_wakes_the_pod(self) -> None:
        world = World()
        world.local_class()
        world.claim("data", "local")
        world.create("Pod", make_pod("web").pvc("data"))
        world.go()
        assert world.condition("web")["message"].startswith(
            "0/2 nodes are available: 2 node(s) didn't find available persistent volumes to bind."
        )
        world.local("pv", "a")
        world.go()
        world.advance(2.0)
        assert world.node_of("web") == "n0"


class TestProvisioning:
    def test_the_volume_is_made_where_the_pod_will_run(self) -> None:
        world = World()
        world.storage_class("fast", "csi.example.com")
        world.claim("data", "fast")
        world.create("Pod", make_pod("web").pvc("data").node_selector({ZONE: "b"}))
        world.go()
        assert world.node_of("web") == "n1"
        claim = world.get("PersistentVolumeClaim", "data")
        assert claim["metadata"]["annotations"][SELECTED] == "n1"
        volume = world.get("PersistentVolume", world.volume_of("data"))
        terms = volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
        assert terms == [is_in(ZONE, "b")]

    def test_an_ephemeral_volume(self) -> None:
        world = World()
        world.storage_class("fast", "csi.example.com")
        spec = {
            "storageClassName": "fast",
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        }
        template = {"volumeClaimTemplate": {"spec": spec}}
        world.create("Pod", make_pod("web").volume("scratch", ephemeral=template))
        world.settle()
        waiting = "waiting for ephemeral volume controller to create the persistentvolumeclaim"
        assert f'{waiting} "web-scratch"' in world.condition("web")["message"]
        world.go()
        world.advance(2.0)
        assert world.node_of("web")
        assert world.volume_of("web-scratch")

    def test_a_second_pod_of_the_claim_follows_it(self) -> None:
        world = World()
        world.storage_class("fast", "csi.example.com")
        world.claim("data", "fast")
        world.create("Pod", make_pod("one").pvc("data").node_selector({ZONE: "b"}))
        world.create("Pod", make_pod("two").pvc("data"))
        world.go()
        assert (world.node_of("one"), world.node_of("two")) == ("n1", "n1")


class TestWaiting:
    """Nobody binds the volumes, or somebody undoes it."""

    def world(self, **more: Any) -> World:
        world = World(controllers=False, **more)
        world.storage_class("fast", "csi.example.com")
        world.claim("data", "fast")
        world.create("Pod", make_pod("web").pvc("data").node_selector({ZONE: "a"}))
        return world

    def failure(self, world: World) -> str:
        world.settle()
        assert world.node_of("web") == ""
        prefix = 'running PreBind plugin "VolumeBinding": binding volumes: '
        message = world.failures("web")[0]
        assert message.startswith(prefix), message
        return message.removeprefix(prefix)

    def test_it_looks_every_second_until_the_time_is_over(self) -> None:
        world = self.world(timeout=5)
        looks: list[float] = []
        world.time.meanwhile = lambda: looks.append(world.clock.now() - START)
        assert self.failure(world) == "context deadline exceeded"
        assert looks[:5] == [1.0, 2.0, 3.0, 4.0, 5.0]
        assert world.condition("web")["reason"] == "SchedulerError"

    def test_it_does_not_wait_at_all(self) -> None:
        world = self.world(timeout=0)
        assert self.failure(world) == "context deadline exceeded"
        assert world.clock.now() == START
        claim = world.get("PersistentVolumeClaim", "data")
        assert claim["metadata"]["annotations"] == {SELECTED: "n0"}

    @pytest.mark.parametrize(
        "undo, text",
        [
            pytest.param(
                lambda w: w.cluster.delete("PersistentVolumeClaim", "default", "data"),
                'failed to check provisioning pvc: persistentvolumeclaim "data" not found',
                id="the claim goes",
            ),
            pytest.param(
                lambda w: w.cluster.delete("Pod", "default", "web", grace_period_seconds=0),
                'pod does not exist any more: pod "web" not found',
                id="the pod goes",
            ),
            pytest.param(
                lambda w: w.cluster.delete("Node", "", "n0"),
                'failed to get node "n0": node "n0" not found',
                id="the node goes",
            ),
            pytest.param(
                lambda w: w.cluster.patch(
                    "PersistentVolumeClaim",
                    "default",
                    "data",
                    {"metadata": {"annotations": {SELECTED: None}}},
                ),
                'selectedNode annotation reset for PVC "data"',
                id="the provisioner gives up, nothing else was annotated",
            ),
            pytest.param(
                lambda w: w.cluster.patch(
                    "PersistentVolumeClaim",
                    "default",
                    "data",
                    {"metadata": {"annotations": {SELECTED: "n1"}}},
                ),
                'provisioning failed for PVC "data"',
                id="another node is selected",
            ),
        ],
    )
    def test_what_ends_it(self, undo: Callable[[World], Any], text: str) -> None:
        world = self.world()
        world.time.meanwhile = _once(lambda: undo(world))
        prefix = 'running PreBind plugin "VolumeBinding": binding volumes: '
        while not world.failures("web"):
            world.scheduler.run_once()
        assert world.failures("web")[0] == prefix + text

    def test_a_volume_that_was_made_elsewhere_ends_it(self) -> None:
        world = self.world()
        spec = {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "fast",
            "csi": {"driver": "csi.example.com", "volumeHandle": "h"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [is_in(ZONE, "b")]}},
        }

        def provision() -> None:
            world.create("PersistentVolume", {"metadata": {"name": "pv"}, "spec": spec})
            patch = {"spec": {"volumeName": "pv"}}
            world.cluster.patch("PersistentVolumeClaim", "default", "data", patch)

        world.time.meanwhile = _once(provision)
        assert self.failure(world) == (
            'pv "pv" node affinity doesn\'t match node "n0": no matching NodeSelectorTerms'
        )

    def test_a_scheduler_that_stops_does_not_wait_for_it(self) -> None:
        world = self.world()
        world.time.meanwhile = _once(world.scheduler.stop)
        while not world.failures("web"):
            world.scheduler.run_once()
        assert world.failures("web")[0].endswith("binding volumes: context canceled")
        assert world.clock.now() == START + 1.0

    def test_a_pod_of_higher_priority_does_not_wait_for_it_either(self) -> None:
        world = self.world()
        handle = world.scheduler.profiles["default-scheduler"]
        uid = world.pod("web")["metadata"]["uid"]
        world.time.meanwhile = _once(lambda: handle.cancel_pre_bind(uid, "preempted by me"))
        while not world.failures("web"):
            world.scheduler.run_once()
        assert "preempted by me" in world.failures("web")[0]
        assert world.clock.now() == START + 1.0

    def test_the_next_attempt_finds_the_volume_that_came_late(self) -> None:
        world = self.world(timeout=1)
        world.settle()
        assert world.node_of("web") == ""
        world.controllers = [VolumeController(world.cluster)]
        world.time.meanwhile = world.control
        world.control()
        world.advance(20.0)
        assert world.node_of("web") == "n0"


def _once(work: Callable[[], Any]) -> Callable[[], None]:
    todo: Iterator[Callable[[], Any]] = iter((work,))
    return lambda: next(todo, lambda: None)()


class No(PermitPlugin):
    """Says no as long as it is told to."""

    name = "No"
    says_no = True

    def __init__(self, _args: Any, _handle: Any) -> None:
        """Needs nothing."""

    def permit(self, state: CycleState, pod: Any, node_name: str) -> tuple[Status, float]:
        return (unschedulable("no") if type(self).says_no else Status()), 0.0


def test_a_pod_that_is_turned_down_after_reserve_gives_its_volume_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(plugins={"permit": {"enabled": [{"name": "No"}]}}, extra=[No])
    world.local_class()
    world.local("pv", "a")
    world.claim("x", "local")
    world.claim("y", "local")
    world.control()
    world.create("Pod", make_pod("x").pvc("x"))
    world.settle()
    assert world.node_of("x") == ""
    assert "claimRef" not in world.get("PersistentVolume", "pv")["spec"]
    monkeypatch.setattr(No, "says_no", False)
    world.create("Pod", make_pod("y").pvc("y"))
    world.settle()
    assert (world.node_of("y"), world.volume_of("y")) == ("n0", "pv")


def test_a_refused_write_is_an_error_in_the_servers_words() -> None:
    class Refusing(ActingView):
        def update(self, kind: str, obj: Any) -> Any:
            raise Conflict(f'Operation cannot be fulfilled on {kind} "{obj["metadata"]["name"]}"')

    clock = VirtualClock(START)
    cluster = SandboxCluster(clock)
    harness = Harness(
        nodes=[make_node("n0")], cluster=Refusing(cluster, "kube-scheduler"), clock=clock
    )
    raw = {"metadata": {"name": "fast"}, "provisioner": "csi.example.com"}
    harness.create("StorageClass", {**raw, "volumeBindingMode": "WaitForFirstConsumer"})
    spec = {
        "storageClassName": "fast",
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
    }
    harness.create("PersistentVolumeClaim", {"metadata": {"name": "data"}, "spec": spec})
    harness.create("Pod", make_pod("web").pvc("data"))
    harness.settle()
    assert harness.condition("web")["message"] == (
        'running PreBind plugin "VolumeBinding": Operation cannot be fulfilled on '
        'PersistentVolumeClaim "data"'
    )


def test_volumes_that_are_bound_leave_nothing_to_do_before_binding() -> None:
    world = World()
    world.local("pv", "a")
    world.claim("data", "local")
    world.create("Pod", make_pod("web").pvc("data"))
    world.go()
    world.advance(2.0)
    assert world.volume_of("data") == "pv"  # without a class it is bound at once
    assert world.node_of("web") == "n0"
    plugin = world.scheduler.profiles["default-scheduler"].plugin("VolumeBinding")
    assert isinstance(plugin, VolumeBinding)
    assert "nominatedNodeName" not in world.pod("web")["status"]
