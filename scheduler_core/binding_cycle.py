"""The binding cycle (kube-scheduler 1.36, ``bindingCycle``), beside the scheduling loop."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

from scheduler_core.extender import Extenders
from scheduler_core.framework.cycle_state import Timings
from scheduler_core.framework.interface import PreBindPlugin
from scheduler_core.framework.runtime.pre_binds import PreBinds
from scheduler_core.framework.status import Status, error
from scheduler_core.pod_cycle import PodCycle
from scheduler_core.ports import ApiError, Executor

log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class BindingDone:
    """What a binding thread puts on the scheduler's inbox."""

    cycle: PodCycle
    status: Status


class BindingCycle:
    """PreBind, Bind and PostBind on the executor; the outcome goes to ``post``.

    Nothing here touches the scheduler's state: only the plugins, the cluster and the cycle's own
    CycleState, which the scheduling loop has let go of.
    """

    def __init__(
        self,
        executor: Executor,
        post: Callable[[BindingDone], None],
        pre_binds: PreBinds,
        extenders: Extenders,
    ) -> None:
        self._executor = executor
        self._post = post
        self._pre_binds = pre_binds
        self._extenders = extenders

    def start(self, cycle: PodCycle) -> None:
        """Hand the cycle to the executor."""
        cycle.binding_started = perf_counter()
        cycle.state.timings = cycle.binding_timings = Timings()
        self._executor.submit(cycle.pod.uid, lambda: self._run(cycle))

    def _run(self, cycle: PodCycle) -> None:
        try:
            status = self._bind(cycle)
        except Exception as exc:  # noqa: BLE001 - a bug: the pod must not be lost for it
            status = error(f"binding raised {exc!r}")
        self._post(BindingDone(cycle, status))

    def _bind(self, cycle: PodCycle) -> Status:
        framework, state, pod, node = cycle.framework, cycle.state, cycle.assumed, cycle.node_name
        assert pod is not None
        # 1. Who has work to do before the binding?
        status, working = framework.run_pre_bind_pre_flight(state, pod, node)
        if not status.is_success:
            return status
        if working:
            self._announce(cycle)
            status = self._pre_bind(cycle, working)
            if not status.is_success:
                return status
        # 2. Bind: an extender that does it comes before the plugins.
        bound = self._extenders.bind(pod, node, state.timings)
        status = framework.run_bind(state, pod, node) if bound is None else bound
        if not status.is_success:
            return status
        # 3. Tell.
        self._tell_scheduled(cycle)
        framework.run_post_bind(state, pod, node)
        return status

    def _pre_bind(self, cycle: PodCycle, working: list[PreBindPlugin]) -> Status:
        """PreBind may take minutes; until it is over the pod can be preempted in memory."""
        assert cycle.assumed is not None
        self._pre_binds.begin(cycle.pod.uid)
        try:
            status = cycle.framework.run_pre_bind(
                working, cycle.state, cycle.assumed, cycle.node_name
            )
        finally:
            cancelled = self._pre_binds.end(cycle.pod.uid)
        return error(cancelled) if cancelled else status

    def _tell_scheduled(self, cycle: PodCycle) -> None:
        """The event of a binding that is done; its failure must not undo the binding."""
        pod = cycle.assumed
        assert pod is not None
        try:
            cycle.framework.cluster.emit_event(
                pod.raw,
                type="Normal",
                reason="Scheduled",
                action="Binding",
                note=f"Successfully assigned {pod.key} to {cycle.node_name}",
                reporting_controller=cycle.framework.profile_name,
            )
        except ApiError as exc:
            log.warning("the event Scheduled of pod %s was not written: %s", pod.key, exc)

    def _announce(self, cycle: PodCycle) -> None:
        """nominatedNodeName, so that others see where the pod is going while PreBind works."""
        pod = cycle.pod
        try:
            cycle.framework.cluster.patch_pod_status(
                pod.namespace, pod.name, pod.uid, nominated_node_name=cycle.node_name
            )
        except ApiError:
            return  # only for information
