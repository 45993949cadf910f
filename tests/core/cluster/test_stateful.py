"""Whatever is asked of a sandbox in whatever order: watchers, lists and restarts agree."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from scheduler_core.clock import VirtualClock
from scheduler_core.cluster.kubelet import RUN_SECONDS, SandboxKubelet
from scheduler_core.cluster.sandbox import SandboxCluster
from scheduler_core.cluster.watch import StreamEvent
from scheduler_core.ports import ApiError, PodCondition
from tests.contract.support import Recorder, pod

Json = dict[str, Any]
names = st.sampled_from(["a", "b", "c", "d"])
labels = st.sampled_from(["x", "y", None])
graces = st.sampled_from([None, 0, 1, 30])
uids = st.sampled_from(["", "", "", "other"])


class Sandbox(RuleBasedStateMachine):
    """Clients that ask for all kinds of things, right and wrong."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = VirtualClock(1_800_000_000.0)
        self.cluster = SandboxCluster(self.clock, rng=random.Random(1), events_kept=3)
        self.snapshot = self.cluster.snapshot()
        self.kubelet = SandboxKubelet(self.cluster, keep_terminal=1)
        self.refused: set[int] = set()
        self.watchers: list[Recorder] = []
        self.selected: list[tuple[str, list[StreamEvent]]] = []
        self.cluster.create("Node", {"metadata": {"name": "n1"}})
        self.watch()

    def ask(self, request: Any) -> None:
        before = self.cluster.resource_version
        try:
            request()
        except ApiError as error:
            self.refused.add(error.code)
            written = self.cluster.resource_version - before
            if written:
                raise AssertionError("a refused request wrote something") from error

    @rule()
    def watch(self) -> None:
        sink = Recorder()
        self.watchers.append(sink)
        self.cluster.list_watch("Pod", sink)

    @precondition(lambda self: len(self.selected) < 5)
    @rule(label=st.sampled_from(["app=x", "app!=x", ""]))
    def watch_selection(self, label: str) -> None:
        """Somebody who has seen nothing yet resumes from the beginning."""
        events: list[StreamEvent] = []
        version = self.snapshot.resource_version
        self.cluster.watch_from("Pod", version, events.append, label_selector=label)
        self.selected.append((label, events))

    @rule(name=names, label=labels, seconds=st.sampled_from([None, 0, 5]), gated=st.booleans())
    def create(self, name: str, label: str | None, seconds: int | None, gated: bool) -> None:
        manifest = pod(name)
        manifest["metadata"]["labels"] = {} if label is None else {"app": label}
        if seconds is not None:
            manifest["metadata"]["annotations"] = {RUN_SECONDS: str(seconds)}
        if gated:
            manifest["spec"]["schedulingGates"] = [{"name": "example.com/wait"}]
        self.ask(lambda: self.cluster.create("Pod", manifest))

    @rule(name=names, label=labels)
    def relabel(self, name: str, label: str | None) -> None:
        patch = {"metadata": {"labels": {"app": label}}}
        self.ask(lambda: self.cluster.patch("Pod", "default", name, patch))

    @rule(name=names)
    def open_gate(self, name: str) -> None:
        patch = {"spec": {"schedulingGates": None}}
        self.ask(lambda: self.cluster.patch("Pod", "default", name, patch))

    @rule(name=names, uid=uids)
    def bind(self, name: str, uid: str) -> None:
        self.ask(lambda: self.cluster.bind("default", name, uid, "n1"))

    @rule(
        name=names, status=st.sampled_from(["True", "False"]), nominated=st.sampled_from(["", "n1"])
    )
    def condition(self, name: str, status: Any, nominated: str) -> None:
        said = PodCondition("PodScheduled", status, "Reason", "message")
        self.ask(
            lambda: self.cluster.patch_pod_status(
                "default", name, "", condition=said, nominated_node_name=nominated
            )
        )

    @rule(name=names, grace=graces, uid=uids)
    def delete(self, name: str, grace: int | None, uid: str) -> None:
        self.ask(
            lambda: self.cluster.delete("Pod", "default", name, uid=uid, grace_period_seconds=grace)
        )

    @rule(chosen=st.lists(names, min_size=1, max_size=3))
    def create_all(self, chosen: list[str]) -> None:
        self.ask(lambda: self.cluster.create_all([pod(name) for name in chosen]))

    @rule(name=names)
    def tell(self, name: str) -> None:
        self.cluster.emit_event(
            {"kind": "Pod", "namespace": "default", "name": name},
            type="Normal",
            reason="Told",
            action="Telling",
            note="something",
            reporting_controller="test",
        )

    @rule(seconds=st.sampled_from([0.0, 0.5, 2.0, 40.0]))
    def time_passes(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.kubelet.tick(self.clock.now())

    @invariant()
    def watchers_hold_what_the_list_says(self) -> None:
        found = {
            f"default/{obj['metadata']['name']}": obj for obj in self.cluster.list("Pod").items
        }
        for sink in self.watchers:
            assert sink.objects == found

    @invariant()
    def selections_hold_what_the_list_says(self) -> None:
        for label, events in self.selected:
            held: dict[str, Json] = {}
            for event in events:
                name = event.object.get("metadata", {}).get("name", "")
                if event.type == "DELETED":
                    assert name in held, "deleted, but never seen"
                    del held[name]
                elif event.type != "BOOKMARK":
                    assert (name in held) == (event.type == "MODIFIED")
                    held[name] = event.object
            items = self.cluster.list("Pod", label_selector=label).items
            assert held == {obj["metadata"]["name"]: obj for obj in items}

    @invariant()
    def a_restart_finds_the_same(self) -> None:
        writes = self.writes_since_the_start()
        again = SandboxCluster.restore(self.snapshot, writes, self.clock)
        assert again.snapshot() == self.cluster.snapshot()
        halfway = again.snapshot()
        assert SandboxCluster.restore(halfway, writes, self.clock).snapshot() == halfway

    @invariant()
    def refusals_have_a_reason(self) -> None:
        assert self.refused <= {403, 404, 409, 422}

    @invariant()
    def events_stay_few(self) -> None:
        assert len(self.cluster.list("Event").items) <= 3

    def writes_since_the_start(self) -> list[Any]:
        """What a journal would have been given."""
        store = self.cluster._store
        kinds = ("Pod", "Node", "Event", "Namespace", "PriorityClass")
        found = [
            change.write
            for kind in kinds
            for change in store.changes_after(kind, self.snapshot.resource_version)
        ]
        return sorted(found, key=lambda write: write.resource_version)


Sandbox.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestSandbox = Sandbox.TestCase
