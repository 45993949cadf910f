"""Watch events to informers, cache, queue and cluster events (4.4, 5.1)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from scheduler_core.api import KubeObject, Pod
from scheduler_core.backend.cache import Cache
from scheduler_core.backend.informers import Informers
from scheduler_core.backend.queue import SchedulingQueue
from scheduler_core.backend.snapshot import Snapshot
from scheduler_core.clock import VirtualClock
from scheduler_core.eventhandlers import EventHandlers
from scheduler_core.framework.events import ActionType, EventResource, QueueingHint
from scheduler_core.framework.types import QueuedPodInfo
from scheduler_core.ports import WatchEvent
from scheduler_core.testing.builders import (
    ObjectBuilder,
    make_namespace,
    make_node,
    make_pod,
    make_pod_group,
)
from scheduler_core.testing.invariants import validate
from tests.core.backend.harness import PROFILE, priority_sort, registered


class Desk:
    """Event handlers with everything they write to, and a witness: a pod that plugin "All" has
    rejected hears every event that is fired."""

    def __init__(self) -> None:
        self.fired: list[tuple[str, Any, Any]] = []
        self.told_deleted: list[str] = []
        self.waiting: set[str] = set()
        self.invalid: list[tuple[str, str, str]] = []
        self.cache = Cache()
        self.informers = Informers()
        self.clock = VirtualClock(0.0)
        hints = [
            registered(resource, ActionType.ALL, self._hint_for(resource))
            for resource in EventResource
            if resource not in (EventResource.WILDCARD, EventResource.POD)
        ]
        self.queue = SchedulingQueue(
            priority_sort,
            self.clock,
            hints={PROFILE: {"All": hints}},
            pods=self.informers.informer("Pod"),
        )
        self.handlers = EventHandlers(
            self.cache,
            self.queue,
            self.informers,
            [PROFILE],
            on_waiting_pod_deleted=self._deleted,
            on_invalid=lambda *fault: self.invalid.append(fault),
        )
        self.added(make_pod("witness").priority(100))
        witness = self.queue.pop()
        assert witness is not None
        self._reject(witness)
        self.fired.clear()

    def added(self, builder: ObjectBuilder[Any]) -> None:
        self.send("ADDED", builder)

    def modified(self, builder: ObjectBuilder[Any]) -> None:
        self.send("MODIFIED", builder)

    def deleted(self, builder: ObjectBuilder[Any]) -> None:
        self.send("DELETED", builder)

    def send(self, type_: Any, builder: ObjectBuilder[Any]) -> None:
        self.handlers.handle(WatchEvent(type_, builder.kind, builder.raw()))

    def events(self) -> list[str]:
        return [label for label, _, _ in self.fired]

    def get(self, kind: str, key: str) -> Any:
        return self.informers.informer(kind).get(key)

    def assume(self, name: str, node: str) -> None:
        """What a scheduling cycle does with the next pod."""
        info = self.queue.pop()
        assert info is not None
        assert info.pod.name == name
        self.cache.assume_pod(info.pod.with_node_name(node))

    def _reject(self, info: QueuedPodInfo) -> None:
        info.unschedulable_plugins = {"All"}
        self.queue.add_unschedulable_if_not_present(info)

    def _hint_for(self, resource: EventResource) -> Any:
        def hint(pod: Pod, old: KubeObject | None, new: KubeObject | None) -> QueueingHint:
            what = "Add" if old is None else "Delete" if new is None else "Update"
            self.fired.append((f"{resource}{what}", old, new))
            return QueueingHint.SKIP

        return hint

    def _deleted(self, pod: Pod) -> bool:
        self.told_deleted.append(pod.name)
        return pod.name in self.waiting


@pytest.fixture
def desk() -> Iterator[Desk]:
    desk = Desk()
    yield desk
    validate(desk.cache, desk.queue, Snapshot())


class TestPendingPods:
    def test_a_new_pod_is_queued_and_told_to_others(self, desk: Desk) -> None:
        desk.added(make_pod("p"))
        assert desk.queue.place_of("default/p") == "active"
        assert desk.events() == ["UnschedulablePodAdd"]
        assert desk.get("Pod", "default/p") is not None

    def test_a_pod_of_another_scheduler_is_not_queued(self, desk: Desk) -> None:
        desk.added(make_pod("p").scheduler_name("other"))
        desk.modified(make_pod("p").scheduler_name("other").label(a="b"))
        assert desk.queue.place_of("default/p") == ""
        assert desk.events() == []
        assert desk.get("Pod", "default/p").labels == {"a": "b"}

    def test_a_pod_without_scheduler_name_belongs_to_the_default_one(self, desk: Desk) -> None:
        raw = make_pod("p").raw()
        del raw["spec"]["schedulerName"]
        desk.handlers.handle(WatchEvent("ADDED", "Pod", raw))
        assert desk.queue.place_of("default/p") == "active"

    def test_an_update_reaches_the_queue(self, desk: Desk) -> None:
        desk.added(make_pod("p"))
        desk.modified(make_pod("p").label(a="b"))
        info = desk.queue.get("default/p")
        assert info is not None
        assert info.pod.labels == {"a": "b"}

    def test_an_update_with_the_same_resource_version_is_ignored(self, desk: Desk) -> None:
        desk.added(make_pod("p").resource_version("7"))
        version = desk.queue.version
        desk.added(make_pod("p").resource_version("7").label(a="b"))
        assert desk.queue.version == version
        assert desk.get("Pod", "default/p").labels == {}

    def test_a_modified_pod_that_was_never_seen_is_added(self, desk: Desk) -> None:
        desk.modified(make_pod("p"))
        assert desk.queue.place_of("default/p") == "active"

    def test_an_update_of_an_assumed_pod_does_not_queue_it_again(self, desk: Desk) -> None:
        desk.added(make_pod("p"))
        desk.assume("p", "n1")
        desk.queue.done(desk.get("Pod", "default/p").uid)
        desk.modified(make_pod("p").label(a="b"))
        assert desk.queue.place_of("default/p") == ""

    def test_a_deleted_pod_leaves_the_queue(self, desk: Desk) -> None:
        desk.added(make_pod("p"))
        desk.fired.clear()
        desk.deleted(make_pod("p"))
        assert desk.queue.place_of("default/p") == ""
        assert desk.get("Pod", "default/p") is None
        assert desk.events() == []
        assert desk.told_deleted == ["p"]  # an approval may be kept for its next attempt

    def test_a_namesake_with_another_uid_is_another_pod(self, desk: Desk) -> None:
        desk.added(make_pod("p").uid("one"))
        desk.modified(make_pod("p").uid("two"))
        info = desk.queue.get("default/p")
        assert info is not None
        assert (info.pod.uid, info.attempts) == ("two", 0)

    def test_deleting_an_unknown_pod_changes_nothing(self, desk: Desk) -> None:
        version = desk.queue.version
        desk.deleted(make_pod("p"))
        assert desk.queue.version == version


class TestBoundPods:
    def test_it_counts_on_its_node_whoever_scheduled_it(self, desk: Desk) -> None:
        desk.added(make_node("n1"))
        desk.added(make_pod("p").scheduler_name("other").node("n1").req(cpu="1"))
        info = desk.cache.node_info("n1")
        assert info is not None
        assert info.requested == {"cpu": 1000}
        assert desk.events() == ["NodeAdd", "AssignedPodAdd"]

    def test_binding_confirms_the_assumed_pod(self, desk: Desk) -> None:
        desk.added(make_pod("p"))
        desk.assume("p", "n1")
        desk.fired.clear()
        desk.modified(make_pod("p").node("n1"))
        assert not desk.cache.is_assumed_pod(make_pod("p").obj())
        assert desk.cache.pod_count == 1
        assert desk.events() == ["AssignedPodAdd"]

    def test_a_pod_that_another_scheduler_bound_leaves_the_queue(self, desk: Desk) -> None:
        desk.added(make_pod("p"))
        desk.modified(make_pod("p").node("n1"))
        assert desk.queue.place_of("default/p") == ""
        assert desk.cache.pod_count == 1

    def test_a_nominated_pod_that_is_bound_is_no_longer_nominated(self, desk: Desk) -> None:
        desk.added(make_pod("p").nominated("n1"))
        desk.modified(make_pod("p").nominated("n1").node("n1"))
        assert len(desk.queue.nominator) == 0

    def test_its_changes_are_fired_by_kind(self, desk: Desk) -> None:
        desk.added(make_pod("p").node("n1").req(cpu="2"))
        desk.fired.clear()
        desk.modified(make_pod("p").node("n1").req(cpu="1").label(a="b"))
        assert desk.events() == ["AssignedPodUpdate", "AssignedPodUpdate"]
        info = desk.cache.node_info("n1")
        assert info is not None
        assert info.requested == {"cpu": 1000}

    def test_its_deletion_makes_room(self, desk: Desk) -> None:
        desk.added(make_pod("p").node("n1"))
        desk.fired.clear()
        desk.deleted(make_pod("p").node("n1"))
        assert desk.events() == ["AssignedPodDelete"]
        assert desk.cache.pod_count == 0

    @pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
    def test_one_that_ended_leaves_as_if_deleted(self, desk: Desk, phase: str) -> None:
        desk.added(make_pod("p").node("n1"))
        desk.fired.clear()
        desk.modified(make_pod("p").node("n1").phase(phase))
        assert desk.events() == ["AssignedPodDelete"]
        assert (desk.cache.pod_count, desk.get("Pod", "default/p")) == (0, None)
        desk.modified(make_pod("p").node("n1").phase(phase).label(a="b"))
        desk.deleted(make_pod("p").node("n1").phase(phase))
        assert desk.events() == ["AssignedPodDelete"]

    def test_one_that_had_ended_before_never_counts(self, desk: Desk) -> None:
        desk.added(make_pod("p").node("n1").phase("Succeeded"))
        assert (desk.cache.pod_count, desk.events()) == (0, [])

    def test_one_that_turns_up_on_another_node_is_counted_there_alone(self, desk: Desk) -> None:
        desk.added(make_pod("p").node("n1"))
        desk.modified(make_pod("p").node("n2"))
        known = desk.cache.get_pod(make_pod("p").obj())
        assert known is not None
        assert (known.node_name, desk.cache.pod_count) == ("n2", 1)


class TestDeletedWhileAssumed:
    def test_a_waiting_pod_is_told_and_others_hear_of_the_room(self, desk: Desk) -> None:
        desk.added(make_pod("p"))
        desk.assume("p", "n1")
        desk.waiting.add("p")
        desk.fired.clear()
        desk.deleted(make_pod("p"))
        assert desk.told_deleted == ["p"]
        assert desk.cache.is_assumed_pod(make_pod("p").obj())  # its binding cycle forgets it
        [(label, old, new)] = desk.fired
        assert (label, old.node_name, new) == ("AssignedPodDelete", "n1", None)

    def test_one_that_does_not_wait_is_forgotten_at_once(self, desk: Desk) -> None:
        desk.added(make_pod("p"))
        desk.assume("p", "n1")
        desk.fired.clear()
        desk.deleted(make_pod("p"))
        assert desk.cache.pod_count == 0
        assert desk.events() == ["AssignedPodDelete"]


class TestNominatedPods:
    """A nominated pod that goes makes room for pods of its priority and below."""

    @pytest.mark.parametrize(
        "priority, heard",
        [
            pytest.param(100, ["AssignedPodDelete"], id="witness-of-equal-priority"),
            pytest.param(99, [], id="witness-of-higher-priority"),
        ],
    )
    @pytest.mark.parametrize("how", ["deleted", "nominated elsewhere", "nomination cleared"])
    def test_it_goes(self, desk: Desk, how: str, priority: int, heard: list[str]) -> None:
        desk.added(make_pod("p").priority(priority).nominated("n1"))
        desk.fired.clear()
        if how == "deleted":
            desk.deleted(make_pod("p"))
        elif how == "nominated elsewhere":
            desk.modified(make_pod("p").priority(priority).nominated("n2"))
        else:
            desk.modified(make_pod("p").priority(priority))
        assert desk.events() == heard

    def test_a_first_nomination_makes_no_room(self, desk: Desk) -> None:
        desk.added(make_pod("p"))
        desk.fired.clear()
        desk.modified(make_pod("p").nominated("n1"))
        assert desk.events() == []


class TestNodes:
    def test_one_comes_changes_and_goes(self, desk: Desk) -> None:
        desk.added(make_node("n1"))
        desk.modified(make_node("n1").taint("t").label(a="b"))
        desk.deleted(make_node("n1"))
        assert desk.events() == ["NodeAdd", "NodeUpdate", "NodeUpdate", "NodeDelete"]
        assert desk.cache.node_count == 0
        assert desk.get("Node", "n1") is None

    def test_a_heartbeat_moves_nobody(self, desk: Desk) -> None:
        desk.added(make_node("n1").condition("Ready", "True"))
        desk.fired.clear()
        desk.modified(make_node("n1").condition("Ready", "True").resource_version("2"))
        assert desk.events() == []
        assert desk.get("Node", "n1").resource_version == "2"

    def test_pods_may_come_before_their_node(self, desk: Desk) -> None:
        desk.added(make_pod("p").node("n1").req(cpu="1"))
        desk.added(make_node("n1"))
        info = desk.cache.node_info("n1")
        assert info is not None
        assert (info.name, info.requested) == ("n1", {"cpu": 1000})


class TestOtherKinds:
    def test_a_pod_group_fires_its_events(self, desk: Desk) -> None:
        desk.added(make_pod_group("g", 2))
        desk.modified(make_pod_group("g", 3))
        desk.deleted(make_pod_group("g", 3))
        group = "scheduling.x-k8s.io/PodGroup"
        assert desk.events() == [f"{group}Add", f"{group}Update", f"{group}Delete"]
        assert [new.min_member for _, _, new in desk.fired[:2]] == [2, 3]

    @pytest.mark.parametrize(
        "kind, resource",
        [
            ("PersistentVolume", "PersistentVolume"),
            ("PersistentVolumeClaim", "PersistentVolumeClaim"),
            ("StorageClass", "storage.k8s.io/StorageClass"),
            ("CSINode", "storage.k8s.io/CSINode"),
            ("CSIDriver", "storage.k8s.io/CSIDriver"),
            ("CSIStorageCapacity", "storage.k8s.io/CSIStorageCapacity"),
            ("VolumeAttachment", "storage.k8s.io/VolumeAttachment"),
        ],
    )
    def test_storage_fires_its_events(self, desk: Desk, kind: str, resource: str) -> None:
        first, second = ({"metadata": {"name": "x", "resourceVersion": v}} for v in "12")
        for type_, raw in (
            ("ADDED", first),
            ("ADDED", first),  # a relist shows it again
            ("MODIFIED", second),
            ("DELETED", second),
        ):
            desk.handlers.handle(WatchEvent(type_, kind, raw))
        assert desk.events() == [f"{resource}Add", f"{resource}Update", f"{resource}Delete"]
        versions = [tuple(o and o.resource_version for o in pair) for _, *pair in desk.fired]
        assert versions == [(None, "1"), ("1", "2"), ("2", None)]
        assert list(desk.informers.informer(kind)) == []

    def test_a_namespace_is_only_known(self, desk: Desk) -> None:
        desk.added(make_namespace("team"))
        assert desk.get("Namespace", "team") is not None
        desk.deleted(make_namespace("team"))
        assert desk.get("Namespace", "team") is None
        assert desk.events() == []

    def test_synced_is_remembered_by_kind(self, desk: Desk) -> None:
        desk.handlers.handle(WatchEvent("SYNCED", "Node", {}))
        assert desk.handlers.synced == {"Node"}


class TestMalformedObjects:
    """They never raise out; a good object of the same name stays as it was."""

    def test_the_fault_is_reported_with_kind_key_and_field(
        self, desk: Desk, caplog: pytest.LogCaptureFixture
    ) -> None:
        raw = make_pod("p").raw()
        raw["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "much"}}
        desk.handlers.handle(WatchEvent("ADDED", "Pod", raw))
        [(kind, key, message)] = desk.invalid
        assert (kind, key) == ("Pod", "default/p")
        assert "spec.containers[0].resources.requests" in message
        assert '"much"' in message
        assert "Pod default/p" in caplog.text
        assert desk.get("Pod", "default/p") is None

    def test_the_last_good_version_stays_and_can_be_deleted(self, desk: Desk) -> None:
        desk.added(make_node("n1"))
        raw = make_node("n1").raw()
        raw["status"]["allocatable"] = {"cpu": "-1x"}
        desk.handlers.handle(WatchEvent("MODIFIED", "Node", raw))
        assert desk.get("Node", "n1").allocatable["cpu"] == 4000
        assert desk.invalid[0][:2] == ("Node", "n1")
        desk.handlers.handle(WatchEvent("DELETED", "Node", raw))
        assert desk.cache.node_count == 0

    @pytest.mark.parametrize(
        "kind, raw, key",
        [
            pytest.param("Pod", {}, "", id="no-metadata"),
            pytest.param("Pod", {"metadata": []}, "", id="metadata-is-a-list"),
            pytest.param("Pod", {"metadata": {"name": 5}}, "default/5", id="name-is-a-number"),
            pytest.param("Martian", {"metadata": {"name": "x"}}, "default/x", id="unknown-kind"),
        ],
    )
    def test_nonsense(self, desk: Desk, kind: str, raw: dict[str, Any], key: str) -> None:
        desk.handlers.handle(WatchEvent("ADDED", kind, raw))
        desk.handlers.handle(WatchEvent("DELETED", kind, raw))
        assert [fault[:2] for fault in desk.invalid] == [(kind, key)]

    def test_what_contradicts_the_cache_is_logged_and_the_rest_goes_on(
        self, desk: Desk, caplog: pytest.LogCaptureFixture
    ) -> None:
        desk.cache.add_pod(make_pod("p").node("n1").obj())
        desk.added(make_pod("p").node("n1"))
        assert "was already in added state" in caplog.text
        assert desk.events() == ["AssignedPodAdd"]
