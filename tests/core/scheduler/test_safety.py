"""What must never happen, whatever comes in whatever order: Hypothesis drives a whole scheduler."""

from __future__ import annotations

import itertools
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from scheduler_core.ports import NotFound
from scheduler_core.records import PermitDecision, Verdict
from scheduler_core.testing.builders import make_node, make_pod, make_pod_group
from scheduler_core.testing.harness import Harness

GANG_PROFILE = {
    "plugins": {
        "queueSort": {"enabled": [{"name": "Coscheduling"}], "disabled": [{"name": "*"}]},
        "multiPoint": {"enabled": [{"name": "Coscheduling"}]},
        "permit": {"enabled": [{"name": "ManualApproval"}]},
    },
    "pluginConfig": [{"name": "Coscheduling", "args": {"permitWaitingTimeSeconds": 30}}],
}


class SchedulerMachine(RuleBasedStateMachine):
    """Nodes and pods come, change and go, people decide, time passes, the worker restarts."""

    def __init__(self) -> None:
        super().__init__()
        self.h = Harness(profile=GANG_PROFILE)
        self.numbers = itertools.count()
        self.nodes: set[str] = set()
        self.pods: dict[str, str] = {}
        self.bound: dict[str, str] = {}

    def _settle(self) -> None:
        self.h.settle()

    @rule(cpu=st.integers(1, 8))
    def add_node(self, cpu: int) -> None:
        name = f"n{next(self.numbers)}"
        self.nodes.add(name)
        self.h.create("Node", make_node(name).capacity(cpu=str(cpu), memory="8Gi", pods="4"))
        self._settle()

    @precondition(lambda self: self.nodes)
    @rule(data=st.data())
    def remove_node(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.nodes)))
        self.nodes.discard(name)
        self.h.cluster.delete("Node", "", name)
        self._settle()

    @rule(cpu=st.integers(0, 5), ask=st.booleans())
    def add_pod(self, cpu: int, ask: bool) -> None:
        self._create(make_pod(f"p{next(self.numbers)}").req(cpu=str(cpu)), ask)
        self._settle()

    @rule(size=st.integers(1, 3), missing=st.integers(0, 1), ask=st.booleans())
    def add_gang(self, size: int, missing: int, ask: bool) -> None:
        group = f"g{next(self.numbers)}"
        self.h.create("PodGroup", make_pod_group(group).min_member(size + missing))
        for _ in range(size):
            pod = make_pod(f"p{next(self.numbers)}").req(cpu="1").pod_group(group)
            self._create(pod, ask)
        self._settle()

    def _create(self, builder: Any, ask: bool) -> None:
        if ask:
            builder = builder.label(**{"kubesched.io/approval": "required"})
        raw = self.h.cluster.create("Pod", builder.raw())
        self.pods[raw["metadata"]["name"]] = raw["metadata"]["uid"]

    @precondition(lambda self: self.pods)
    @rule(data=st.data())
    def delete_pod(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.pods)))
        del self.pods[name]
        self.h.cluster.delete("Pod", "default", name, grace_period_seconds=0)
        self._settle()

    @precondition(lambda self: self.pods)
    @rule(data=st.data(), verdict=st.sampled_from(Verdict))
    def decide(self, data: st.DataObject, verdict: Verdict) -> None:
        name = data.draw(st.sampled_from(sorted(self.pods)))
        number = next(self.numbers)
        self.h.decide(PermitDecision(number, self.pods[name], verdict, "alice"))

    @rule(seconds=st.sampled_from([0.5, 2.0, 11.0, 31.0, 301.0, 901.0]))
    def pass_time(self, seconds: float) -> None:
        self.h.advance(seconds)

    @rule()
    def restart(self) -> None:
        waits = {w.pod.uid: w for w in self.h.observer.waiting}
        for ended in self.h.observer.resolved:
            waits.pop(ended.pod.uid, None)
        self.h = Harness(
            cluster=self.h.cluster,
            clock=self.h.clock,
            profile=GANG_PROFILE,
            waiting=waits.values(),
        )
        self._settle()

    @invariant()
    def no_node_is_over_committed(self) -> None:
        for info in self.h.scheduler.snapshot.nodes:
            assert info.requested.get("cpu", 0) <= info.allocatable.get("cpu", 0)
            assert len(info.pods) <= info.allowed_pod_number

    @invariant()
    def a_bound_pod_stays_where_it_is(self) -> None:
        for name, uid in self.pods.items():
            try:
                pod = self.h.cluster.get("Pod", "default", name)
            except NotFound:
                continue
            node = pod["spec"].get("nodeName", "")
            known = self.bound.setdefault(uid, node) if node else self.bound.get(uid, "")
            assert node == known

    @invariant()
    def no_pod_is_lost(self) -> None:
        scheduler = self.h.scheduler
        waiting = {w.pod.uid for w in scheduler.waiting_pods}
        for name, uid in self.pods.items():
            pod = self.h.cluster.get("Pod", "default", name)
            if pod["spec"].get("nodeName"):
                continue
            queued = scheduler.queue.get(f"default/{name}") is not None
            assert queued != (uid in waiting), f"{name} is in {'two places' if queued else 'none'}"


SchedulerMachine.TestCase.settings = settings(
    max_examples=60,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
TestScheduler = SchedulerMachine.TestCase
