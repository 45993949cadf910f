"""Claims find, get and lose their volumes; ephemeral volumes get their claims."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from scheduler_core.clock import VirtualClock
from scheduler_core.cluster.ephemeral_claims import EphemeralClaimController
from scheduler_core.cluster.sandbox import SandboxCluster
from scheduler_core.cluster.volume_controller import VolumeController
from tests.contract.support import node, pod

Json = dict[str, Any]
ZONE = "topology.kubernetes.io/zone"


class World:
    """A sandbox with the two controllers, ticked until they rest."""

    def __init__(self) -> None:
        self.cluster = SandboxCluster(VirtualClock(1_800_000_000.0))
        self.parts = [EphemeralClaimController(self.cluster), VolumeController(self.cluster)]

    def settle(self) -> None:
        for _ in range(50):
            due = [part for part in self.parts if part.next_deadline() is not None]
            if not due:
                return
            for part in due:
                part.tick(self.cluster.clock.now())
        raise AssertionError("the controllers do not come to rest")

    def storage_class(self, name: str, provisioner: str, mode: str, **more: Any) -> None:
        body = {"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": mode}
        self.cluster.create("StorageClass", {**body, **more})

    def volume(self, name: str, size: str = "1Gi", **spec: Any) -> None:
        body = {
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": size},
            "storageClassName": "manual",
            "local": {"path": "/data"},
            **spec,
        }
        self.cluster.create("PersistentVolume", {"metadata": {"name": name}, "spec": body})

    def claim(self, name: str, size: str = "1Gi", **spec: Any) -> None:
        body = {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": size}},
            "storageClassName": "manual",
            **spec,
        }
        self.cluster.create("PersistentVolumeClaim", {"metadata": {"name": name}, "spec": body})

    def get(self, kind: str, name: str) -> Json:
        """As it is once the controllers rest."""
        self.settle()
        return dict(self.cluster.get(kind, "default", name))

    def phase(self, kind: str, name: str) -> str:
        return str(self.get(kind, name)["status"]["phase"])

    def volume_of(self, claim: str) -> str:
        """The name of the volume that a claim is bound to, in both directions; "" if it is not."""
        found = self.get("PersistentVolumeClaim", claim)
        name = found["spec"].get("volumeName", "")
        if not name or found["status"]["phase"] != "Bound":
            return ""
        volume = self.get("PersistentVolume", name)
        assert volume["status"]["phase"] == "Bound"
        assert volume["spec"]["claimRef"]["uid"] == found["metadata"]["uid"]
        assert found["metadata"]["annotations"]["pv.kubernetes.io/bind-completed"] == "yes"
        assert found["status"]["capacity"] == volume["spec"]["capacity"]
        return str(name)

    def annotate(self, claim: str, annotations: Mapping[str, str]) -> None:
        patch = {"metadata": {"annotations": dict(annotations)}}
        self.cluster.patch("PersistentVolumeClaim", "default", claim, patch)


@pytest.fixture
def world() -> World:
    return World()


def test_a_volume_without_a_claim_is_available(world: World) -> None:
    world.volume("pv")
    assert world.phase("PersistentVolume", "pv") == "Available"


@pytest.mark.parametrize("volumes_first", [True, False])
def test_an_immediate_claim_takes_the_smallest_that_fits(world: World, volumes_first: bool) -> None:
    if not volumes_first:
        world.claim("data", "2Gi")
        world.settle()
    world.volume("large", "10Gi")
    world.volume("right", "3Gi")
    world.volume("small", "1Gi")
    if volumes_first:
        world.settle()
        world.claim("data", "2Gi")
        assert world.volume_of("data") == "right"
    else:
        assert world.volume_of("data") in ("large", "right")


@pytest.mark.parametrize(
    ("volume", "claim"),
    [
        pytest.param({}, {"storageClassName": "other"}, id="another class"),
        pytest.param({}, {"accessModes": ["ReadWriteMany"]}, id="access modes"),
        pytest.param({"volumeMode": "Block"}, {}, id="volume mode"),
        pytest.param({}, {"selector": {"matchLabels": {"a": "b"}}}, id="selector"),
        pytest.param({}, {"resources": {"requests": {"storage": "2Gi"}}}, id="size"),
        pytest.param(
            {"claimRef": {"namespace": "default", "name": "another"}}, {}, id="kept for another"
        ),
    ],
)
def test_what_does_not_fit_is_not_taken(world: World, volume: Json, claim: Json) -> None:
    world.volume("pv", **volume)
    world.claim("data", **claim)
    assert world.volume_of("data") == ""
    assert world.phase("PersistentVolumeClaim", "data") == "Pending"


def test_two_claims_never_share_a_volume(world: World) -> None:
    world.claim("a")
    world.claim("b")
    world.volume("pv")
    assert sorted([world.volume_of("a"), world.volume_of("b")]) == ["", "pv"]


def test_a_claim_that_names_its_volume_gets_it(world: World) -> None:
    world.volume("pv")
    world.claim("data", volumeName="pv")
    assert world.volume_of("data") == "pv"


def test_a_volume_that_its_user_keeps_for_a_claim_goes_to_it(world: World) -> None:
    world.volume("kept", "5Gi", claimRef={"namespace": "default", "name": "data"})
    world.volume("smaller", "1Gi")
    world.claim("data")
    assert world.volume_of("data") == "kept"
    annotations = world.get("PersistentVolume", "kept")["metadata"].get("annotations") or {}
    assert "pv.kubernetes.io/bound-by-controller" not in annotations


def test_a_waiting_claim_takes_only_what_the_scheduler_keeps_for_it(world: World) -> None:
    world.storage_class("local", "kubernetes.io/no-provisioner", "WaitForFirstConsumer")
    world.volume("pv", storageClassName="local")
    world.claim("data", storageClassName="local")
    assert world.volume_of("data") == ""
    uid = world.get("PersistentVolumeClaim", "data")["metadata"]["uid"]
    reference = {"kind": "PersistentVolumeClaim", "namespace": "default", "name": "data"}
    patch = {"spec": {"claimRef": {**reference, "uid": uid}}}
    world.cluster.patch("PersistentVolume", "", "pv", patch)
    assert world.volume_of("data") == "pv"


def test_an_immediate_claim_of_a_class_with_provisioner_gets_a_new_volume(world: World) -> None:
    world.storage_class("fast", "csi.example.com", "Immediate")
    world.claim("data", "7Gi", storageClassName="fast")
    name = world.volume_of("data")
    uid = world.get("PersistentVolumeClaim", "data")["metadata"]["uid"]
    assert name == f"pvc-{uid}"
    spec = world.get("PersistentVolume", name)["spec"]
    assert spec["capacity"] == {"storage": "7Gi"}
    assert spec["csi"] == {"driver": "csi.example.com", "volumeHandle": name}
    assert spec["persistentVolumeReclaimPolicy"] == "Delete"
    assert "nodeAffinity" not in spec


def test_a_class_may_come_after_its_claims(world: World) -> None:
    world.claim("data", storageClassName="fast")
    assert world.volume_of("data") == ""
    world.storage_class("fast", "csi.example.com", "Immediate")
    assert world.volume_of("data").startswith("pvc-")


def test_a_waiting_claim_gets_a_volume_where_its_node_is(world: World) -> None:
    world.cluster.create("Node", node("n1", **{ZONE: "b"}))
    world.storage_class("slow", "csi.example.com", "WaitForFirstConsumer")
    world.claim("data", storageClassName="slow")
    assert world.volume_of("data") == ""
    world.annotate("data", {"volume.kubernetes.io/selected-node": "n1"})
    volume = world.get("PersistentVolume", world.volume_of("data"))
    term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["b"]}]}
    assert volume["spec"]["nodeAffinity"] == {"required": {"nodeSelectorTerms": [term]}}


def test_the_class_says_which_labels_matter(world: World) -> None:
    world.cluster.create("Node", node("n1", **{ZONE: "b", "rack": "r7"}))
    topologies = [{"matchLabelExpressions": [{"key": "rack", "values": ["r1", "r7"]}]}]
    world.storage_class(
        "rack", "csi.example.com", "WaitForFirstConsumer", allowedTopologies=topologies
    )
    world.claim("data", storageClassName="rack")
    world.annotate("data", {"volume.kubernetes.io/selected-node": "n1"})
    terms = world.get("PersistentVolume", world.volume_of("data"))["spec"]["nodeAffinity"]
    wanted = {"key": "rack", "operator": "In", "values": ["r7"]}
    assert terms == {"required": {"nodeSelectorTerms": [{"matchExpressions": [wanted]}]}}


def test_a_node_that_went_has_to_be_chosen_anew(world: World) -> None:
    world.storage_class("slow", "csi.example.com", "WaitForFirstConsumer")
    world.claim("data", storageClassName="slow")
    world.annotate("data", {"volume.kubernetes.io/selected-node": "gone"})
    claim = world.get("PersistentVolumeClaim", "data")
    assert not claim["metadata"].get("annotations")


def test_a_made_volume_goes_with_its_claim(world: World) -> None:
    world.storage_class("fast", "csi.example.com", "Immediate")
    world.claim("data", storageClassName="fast")
    assert world.volume_of("data")
    world.cluster.delete("PersistentVolumeClaim", "default", "data")
    world.settle()
    assert world.cluster.list("PersistentVolume").items == []


@pytest.mark.parametrize("policy", ["Retain", "Delete"])
def test_a_volume_that_a_user_made_is_released(world: World, policy: str) -> None:
    world.volume("pv", persistentVolumeReclaimPolicy=policy)
    world.claim("data")
    assert world.volume_of("data") == "pv"
    world.cluster.delete("PersistentVolumeClaim", "default", "data")
    assert world.phase("PersistentVolume", "pv") == "Released"
    world.claim("data")
    assert world.volume_of("data") == ""


def test_a_claim_whose_volume_went_is_lost(world: World) -> None:
    world.volume("pv")
    world.claim("data")
    assert world.volume_of("data") == "pv"
    world.cluster.delete("PersistentVolume", "", "pv")
    assert world.phase("PersistentVolumeClaim", "data") == "Lost"


def test_it_goes_on_after_a_restart(world: World) -> None:
    world.volume("pv")
    world.claim("data")
    for part in world.parts:
        part.stop()
    world.parts = [EphemeralClaimController(world.cluster), VolumeController(world.cluster)]
    assert world.volume_of("data") == "pv"


def _with_scratch(name: str) -> Json:
    template = {
        "metadata": {"labels": {"app": "x"}},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": "fast",
        },
    }
    volume = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}
    return pod(name, volumes=[volume])


def test_an_ephemeral_volume_lives_as_long_as_its_pod(world: World) -> None:
    world.storage_class("fast", "csi.example.com", "Immediate")
    world.cluster.create("Pod", _with_scratch("web"))
    assert world.volume_of("web-scratch")
    claim = world.get("PersistentVolumeClaim", "web-scratch")
    owner = claim["metadata"]["ownerReferences"][0]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("Pod", "web", True)
    assert claim["metadata"]["labels"] == {"app": "x"}
    world.cluster.delete("Pod", "default", "web")
    world.settle()
    assert world.cluster.list("PersistentVolumeClaim").items == []
    assert world.cluster.list("PersistentVolume").items == []


def test_a_namesake_of_an_ephemeral_claim_is_left_alone(world: World) -> None:
    world.claim("web-scratch", "3Gi")
    world.cluster.create("Pod", _with_scratch("web"))
    world.settle()
    world.cluster.delete("Pod", "default", "web")
    claim = world.get("PersistentVolumeClaim", "web-scratch")
    assert claim["spec"]["resources"]["requests"]["storage"] == "3Gi"
    assert "ownerReferences" not in claim["metadata"]


def test_a_claim_that_the_server_refuses_does_not_hold_up_others(world: World) -> None:
    bad = _with_scratch("a")
    bad["spec"]["volumes"][0]["ephemeral"]["volumeClaimTemplate"]["metadata"]["labels"] = {"-": "x"}
    world.cluster.create("Pod", bad)
    world.cluster.create("Pod", _with_scratch("b"))
    world.settle()
    assert "b-scratch" in [
        claim["metadata"]["name"] for claim in world.cluster.list("PersistentVolumeClaim").items
    ]
