"""The part of the scheduling loop that gangs live in: PreFilter, Permit, waiting, Unreserve."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scheduler_core.api import Pod, PodGroup
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.node_statuses import NodeStatuses
from scheduler_core.framework.runtime import binding
from scheduler_core.framework.runtime.waiting_pods import WaitingPod
from scheduler_core.framework.status import Status
from scheduler_core.framework.types import PostFilterResult
from scheduler_core.plugins.coscheduling import Coscheduling
from scheduler_core.plugins.manual_approval import ManualApproval
from scheduler_core.testing.builders import make_node
from tests.plugins.support import FakeHandle

NODE = "n"


class GangLoop:
    """Coscheduling and, if wanted, ManualApproval after it, on one large node."""

    def __init__(
        self,
        args: Mapping[str, Any] | None = None,
        *,
        approval: Mapping[str, Any] | None = None,
        cpu: str = "100",
    ) -> None:
        self.handle = FakeHandle([make_node(NODE).allocatable(cpu=cpu, memory="100Gi").obj()])
        self.plugin = Coscheduling(args or {}, self.handle)
        self.permits: list[Any] = [self.plugin]
        if approval is not None:
            self.permits.append(ManualApproval(approval, self.handle))
        self.bound: list[str] = []
        #: pod name -> why its wait ended
        self.turned_down: dict[str, str] = {}
        #: pods that the last cycle asked to activate
        self.activated: list[str] = []

    def add(self, *objects: Pod | PodGroup) -> None:
        self.handle.watch(*objects)

    def schedule(self, pod: Pod) -> str:
        """One cycle: ``bound``, ``waiting``, or why the pod was rejected."""
        state = CycleState()
        status = self.plugin.pre_filter(state, pod, self.handle.nodes)[1]
        if not status.is_success:
            return status.message
        assumed = pod.with_node_name(NODE)
        self.handle.cache.assume_pod(assumed)
        self.handle.refresh()
        now = self.handle.clock.now()
        status, waits = binding.run_permit(self.permits, state, assumed, NODE, now)
        self.activated = sorted(state.pods_to_activate)
        if not status.is_success:
            self._undo(assumed)
            return status.message
        if waits:
            parked = WaitingPod(assumed, NODE, waits, self.handle.changed.append)
            self.handle.waiting_pods.add(parked)
        else:
            self._bind(assumed)
        self.settle()
        return "waiting" if self.waiting(pod.name) else "bound"

    def fail_filter(self, pod: Pod) -> tuple[PostFilterResult | None, Status]:
        """The pod fits nowhere; what PostFilter makes of it."""
        answer = self.plugin.post_filter(CycleState(), pod, NodeStatuses(1))
        self.settle()
        return answer

    def fail_binding(self, pod: Pod) -> None:
        """The binding of a pod that was let go failed."""
        self.bound.remove(pod.name)
        self.handle.informer("Pod").set(pod)
        self._undo(pod.with_node_name(NODE))
        self.settle()

    def advance(self, seconds: float) -> None:
        """Time passes; waits expire."""
        self.handle.clock.advance(seconds)
        for waiting in self.handle.waiting_pods:
            waiting.expire(self.handle.clock.now())
        self.settle()

    def waiting(self, name: str) -> WaitingPod | None:
        return next((w for w in self.handle.waiting_pods if w.pod.name == name), None)

    def waiting_names(self) -> list[str]:
        return [w.pod.name for w in self.handle.waiting_pods]

    def approve(self, *names: str) -> None:
        """A person's word, as the scheduler passes it on."""
        for name in names:
            self._waiting(name).allow("ManualApproval")
        self.settle()

    def deny(self, name: str) -> None:
        self._waiting(name).reject("ManualApproval", "denied by alice")
        self.settle()

    def _waiting(self, name: str) -> WaitingPod:
        found = self.waiting(name)
        assert found is not None, f"{name} does not wait"
        return found

    def settle(self) -> None:
        """Act on waits that ended, until none is left."""
        while self.handle.changed:
            waiting = self.handle.changed.pop(0)
            if waiting.status is None or self.handle.waiting_pods.get(waiting.pod.uid) is None:
                continue
            self.handle.waiting_pods.remove(waiting.pod.uid)
            if waiting.status.is_success:
                self._bind(waiting.pod)
            else:
                self.turned_down[waiting.pod.name] = waiting.status.message
                self._undo(waiting.pod)

    def _bind(self, pod: Pod) -> None:
        self.bound.append(pod.name)
        self.handle.watch(pod)

    def _undo(self, pod: Pod) -> None:
        binding.run_unreserve([self.plugin], CycleState(), pod, NODE)
        self.handle.cache.forget_pod(pod)
        self.handle.refresh()
