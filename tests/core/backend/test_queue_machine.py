"""Whatever happens, no pod is lost and none is in two places."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from scheduler_core.api import Pod
from scheduler_core.backend.cache import Cache
from scheduler_core.framework.events import (
    NODE_ADD,
    NODE_DELETE,
    WILDCARD_EVENT,
    ActionType,
    EventResource,
    QueueingHint,
)
from scheduler_core.framework.types import NominatingInfo, QueuedPodInfo
from scheduler_core.testing.builders import make_pod
from scheduler_core.testing.invariants import validate
from tests.core.backend.harness import Bench, Gate, registered

A, R = ActionType, EventResource
NAMES = st.sampled_from([f"p{n}" for n in range(8)])
PLUGINS = st.sets(st.sampled_from(["P", "Q", "Gate"]), max_size=2)


class QueueMachine(RuleBasedStateMachine):
    """The model: which pods exist, and which of them are in flight."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = Gate()
        self.answer = QueueingHint.QUEUE
        hint = lambda pod, old, new: self.answer  # noqa: E731
        self.bench = Bench(
            {
                "P": [registered(R.NODE, A.ADD, hint), registered(R.POD, A.UPDATE, hint)],
                "Q": [registered(R.NODE, A.DELETE, hint)],
                "Gate": [registered(R.POD, A.UPDATE_POD_LABEL)],
            },
            [self.gate],
        )
        self.queue = self.bench.queue
        self.pods: dict[str, Pod] = {}
        self.flying: dict[str, QueuedPodInfo] = {}

    @rule(name=NAMES, priority=st.integers(0, 2), held=st.booleans())
    def add(self, name: str, priority: int, held: bool) -> None:
        if name in self.pods:
            return
        builder = make_pod(name).priority(priority)
        if held:
            builder.label(held="yes")
        self.pods[name] = builder.obj()
        self.bench.pods.set(self.pods[name])
        self.queue.add(self.pods[name])

    @rule(name=NAMES, priority=st.integers(0, 2), held=st.booleans(), node=st.booleans())
    def update(self, name: str, priority: int, held: bool, node: bool) -> None:
        if name not in self.pods:
            return
        builder = make_pod(name).priority(priority)
        if held:
            builder.label(held="yes")
        if node:
            builder.nominated("n1")
        old, new = self.pods[name], builder.obj()
        self.pods[name] = new
        self.bench.pods.set(new)
        self.queue.update(old, new)

    @rule(name=NAMES)
    def delete(self, name: str) -> None:
        if name not in self.pods:
            return
        pod = self.pods.pop(name)
        self.bench.pods.delete(pod.key)
        self.queue.delete(pod)
        if name in self.flying:
            # As the failure handler does for a pod that is gone.
            self.queue.done(self.flying.pop(name).pod.uid)

    @rule()
    def pop(self) -> None:
        expected = [p.pod.name for p in self.queue.list_pods().active]
        info = self.queue.pop()
        if info is None:
            assert not expected
            return
        if expected:
            assert info.pod.name == expected[0]
        assert info.pod is self.pods[info.pod.name]
        self.flying[info.pod.name] = info

    @precondition(lambda self: self.flying)
    @rule(data=st.data(), plugins=PLUGINS, pending=PLUGINS)
    def fail(self, data: st.DataObject, plugins: set[str], pending: set[str]) -> None:
        name = data.draw(st.sampled_from(sorted(self.flying)))
        info = self.flying.pop(name)
        info.pod = self.pods[name]
        info.unschedulable_plugins, info.pending_plugins = set(plugins), set(pending)
        assert self.queue.add_unschedulable_if_not_present(info)

    @precondition(lambda self: self.flying)
    @rule(data=st.data())
    def bind(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.flying)))
        self.queue.done(self.flying.pop(name).pod.uid)
        pod = self.pods.pop(name)
        self.bench.pods.delete(pod.key)
        self.queue.delete(pod)

    @rule(event=st.sampled_from([NODE_ADD, NODE_DELETE, WILDCARD_EVENT]), skip=st.booleans())
    def event(self, event, skip: bool) -> None:  # type: ignore[no-untyped-def]
        self.answer = QueueingHint.SKIP if skip else QueueingHint.QUEUE
        self.queue.move_all_to_active_or_backoff_queue(event)

    @rule(shut=st.booleans())
    def turn_gate(self, shut: bool) -> None:
        self.gate.shut = shut

    @rule(names=st.sets(NAMES))
    def activate(self, names: set[str]) -> None:
        self.queue.activate([self.pods[name] for name in sorted(names) if name in self.pods])

    @rule(name=NAMES)
    def nominate(self, name: str) -> None:
        if name in self.pods:
            self.queue.nominator.add(self.pods[name], NominatingInfo("n2", override=True))

    @rule(seconds=st.floats(0.01, 400.0))
    def pass_time(self, seconds: float) -> None:
        self.bench.clock.advance(seconds)
        self.queue.flush()

    @rule()
    def sleep_until_the_deadline(self) -> None:
        """Waking up at the deadline, and not before, is enough: then something does happen."""
        deadline = self.queue.next_deadline()
        if deadline is None:
            return
        before = self.queue.version
        if deadline > self.bench.clock.now():
            self.bench.clock.set(deadline)
        self.queue.flush()
        assert self.queue.version > before

    @invariant()
    def every_pod_is_in_exactly_one_place(self) -> None:
        validate(Cache(), self.queue)
        queued = sorted(info.pod.name for info in self.queue)
        assert sorted([*queued, *self.flying]) == sorted(self.pods)
        assert set(self.queue.in_flight()) == {i.pod.uid for i in self.flying.values()}

    @invariant()
    def every_pod_is_the_latest_version(self) -> None:
        for info in self.queue:
            assert info.pod is self.pods[info.pod.name]

    def teardown(self) -> None:
        """Left alone, every pod that no gate holds is tried again sooner or later."""
        self.gate.shut = False
        for info in self.flying.values():
            self.queue.done(info.pod.uid)
        waiting = {i.pod.name for i in self.queue if not i.gated}
        tried = set(self.bench.pop_names())
        while (deadline := self.queue.next_deadline()) is not None:
            self.bench.clock.set(max(deadline, self.bench.clock.now()))
            self.queue.flush()
            tried |= set(self.bench.pop_names())
        assert tried >= {name for name in waiting if "held" not in self.pods[name].labels}


QueueMachine.TestCase.settings = settings(max_examples=80, stateful_step_count=40)
TestQueueMachine = QueueMachine.TestCase
