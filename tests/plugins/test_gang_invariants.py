"""Whatever happens to gangs, in whatever order: all members or none."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from scheduler_core.testing.builders import make_pod, make_pod_group
from tests.plugins.gang_loop import GangLoop

SIZES = {"small": 2, "large": 4}
NAMES = [f"{gang}-{i}" for gang, size in SIZES.items() for i in range(size + 1)]


class Gangs(RuleBasedStateMachine):
    """Two gangs with one member more than they need each; every binding succeeds."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = GangLoop({"podGroupBackoffSeconds": 3, "podGroupRejectPercentage": 30})
        for gang, size in SIZES.items():
            self.loop.add(make_pod_group(gang, size).timeout(10 * size).obj())
        self.pods = {name: make_pod(name).pod_group(name.partition("-")[0]).obj() for name in NAMES}
        self.loop.add(*self.pods.values())
        self.released: set[str] = set()

    def idle(self, name: str) -> bool:
        return name not in self.loop.bound and self.loop.waiting(name) is None

    @rule(name=st.sampled_from(NAMES))
    def schedule(self, name: str) -> None:
        if self.idle(name):
            self.loop.schedule(self.pods[name])

    @rule(name=st.sampled_from(NAMES))
    def fit_nowhere(self, name: str) -> None:
        if self.idle(name):
            self.loop.fail_filter(self.pods[name])

    @rule(seconds=st.integers(1, 25))
    def pass_time(self, seconds: int) -> None:
        self.loop.advance(seconds)

    @rule(name=st.sampled_from(NAMES))
    def turn_down(self, name: str) -> None:
        waiting = self.loop.waiting(name)
        if waiting is not None:
            waiting.reject("Other", "somebody else says no")
            self.loop.settle()

    @precondition(lambda self: self.loop.bound)
    @invariant()
    def remember(self) -> None:
        self.released.update(name.partition("-")[0] for name in self.loop.bound)

    @invariant()
    def all_or_none(self) -> None:
        for gang, size in SIZES.items():
            bound = [name for name in self.loop.bound if name.startswith(gang)]
            assert not bound or len(bound) >= size, f"{gang} is bound in part: {bound}"

    @invariant()
    def nobody_waits_for_a_complete_gang(self) -> None:
        for name in self.loop.waiting_names():
            assert name.partition("-")[0] not in self.released

    @invariant()
    def the_memory_agrees_with_who_holds_a_node(self) -> None:
        for gang in SIZES:
            known = self.loop.plugin._gangs.known(f"default/{gang}")
            placed = set(known.placed) if known is not None else set()
            holding = [*self.loop.bound, *self.loop.waiting_names()]
            assert placed == {self.pods[n].uid for n in holding if n.startswith(gang)}


TestGangs = Gangs.TestCase
TestGangs.settings = settings(max_examples=60, stateful_step_count=30)
