"""The binding cycle (kube-scheduler 1.36, ``bindingCycle``), beside the scheduling loop."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from time import perf_counter

from scheduler_core.api import Pod
from scheduler_core.extender import Extenders
from scheduler_core.framework.cycle_state import Timings
from scheduler_core.framework.interface import PreBindPlugin
from scheduler_core.framework.runtime.pre_binds import PreBinds
from scheduler_core.framework.status import SUCCESS, Code, Status, error
from scheduler_core.pod_cycle import PodCycle
from scheduler_core.ports import ApiError, Executor, Fenced

log = logging.getLogger(__name__)

#: Longest that a scheduler which stops waits for the cluster's answers, in seconds.
STOP_SECONDS = 30.0


@dataclass(slots=True, eq=False)
class BindingDone:
    """What is put on the scheduler's inbox when a binding cycle is over.

    Attributes:
        untold: the pod was bound without a binding thread, and nobody has said so yet (``tell``).
    """

    cycle: PodCycle
    status: Status
    untold: bool = False


class BindingCycle:
    """PreBind, Bind and PostBind on the executor; the outcome goes to ``post``.

    Nothing here touches the scheduler's state: only the plugins, the cluster and the cycle's own
    CycleState, which the scheduling loop has let go of.

    Where only the cluster is to be waited for, and it can tell later (``BindPlugin.begin_bind``),
    no thread is: the bindings of one moment are then kept together, and a pod costs a quarter.
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
        self._changed = threading.Condition()
        self._under_way = 0

    def start(self, cycle: PodCycle) -> None:
        """Begin; on the scheduler thread."""
        cycle.binding_started = perf_counter()
        cycle.state.timings = cycle.binding_timings = Timings()
        if self._may_bind_later(cycle):
            self._executor.submit_quick(cycle.pod.uid, lambda: self._begin(cycle))
        else:
            self._executor.submit(cycle.pod.uid, lambda: self._run(cycle, None))

    def retry(self, cycle: PodCycle) -> None:
        """Ask the cluster once more; what comes before Bind is done."""
        self._executor.submit(cycle.pod.uid, lambda: self._run(cycle, []))

    def tell(self, done: BindingDone) -> None:
        """Say that a pod was bound, where that has not been said yet. On the scheduler thread."""
        if done.untold and done.status.is_success:
            self._tell_scheduled(done.cycle)

    def wait(self, seconds: float = STOP_SECONDS) -> bool:
        """Until no binding is under way that the executor does not know of; whether that came true
        in ``seconds``. A binding that comes later counts in the cluster all the same."""
        with self._changed:
            if self._changed.wait_for(lambda: self._under_way == 0, seconds):
                return True
            left = self._under_way
        log.error("%d bindings were not answered in %g s; nobody waits for them", left, seconds)
        return False

    # -- without a thread ------------------------------------------------------------------------

    def _may_bind_later(self, cycle: PodCycle) -> bool:
        framework = cycle.framework
        return not framework.post_bind_plugins and not self._extenders.binds(cycle.pod)

    def _begin(self, cycle: PodCycle) -> None:
        framework, state, pod, node = cycle.framework, cycle.state, cycle.assumed, cycle.node_name
        assert pod is not None
        try:
            status, working = framework.run_pre_bind_pre_flight(state, pod, node)
            future = None
            if status.is_success and not working:
                cycle.is_pre_bound = True
                future = framework.bind_plugins[0].begin_bind(state, pod, node)
        except Exception as exc:  # noqa: BLE001 - as in _run
            status, working, future = error(f"binding raised {exc!r}"), [], None
        if not status.is_success:
            self._post(BindingDone(cycle, status))
        elif future is None:
            self._executor.submit(pod.uid, lambda: self._run(cycle, working))
        else:
            with self._changed:
                self._under_way += 1
            future.add_done_callback(lambda done: self._bound(cycle, done))

    def _bound(self, cycle: PodCycle, done: Future[None]) -> None:
        timings, plugin = cycle.state.timings, cycle.framework.bind_plugins[0].name
        seconds = perf_counter() - cycle.binding_started
        timings.add_plugin("Bind", plugin, seconds)
        timings.add_point("Bind", seconds)
        failure = "it was cancelled" if done.cancelled() else done.exception()
        status = SUCCESS
        if failure is not None:
            text = f'running Bind plugin "{plugin}": {failure}'
            cause = failure if isinstance(failure, Exception) else None
            status = Status(Code.ERROR, (text,), plugin, cause)
        try:
            self._post(BindingDone(cycle, status, untold=True))
        finally:
            with self._changed:
                self._under_way -= 1
                if not self._under_way:
                    self._changed.notify_all()

    # -- on a binding thread ---------------------------------------------------------------------

    def _run(self, cycle: PodCycle, working: list[PreBindPlugin] | None) -> None:
        try:
            status = self._bind(cycle, working)
        except Exception as exc:  # noqa: BLE001 - a bug: the pod must not be lost for it
            status = error(f"binding raised {exc!r}")
        self._post(BindingDone(cycle, status))

    def _bind(self, cycle: PodCycle, working: list[PreBindPlugin] | None) -> Status:
        """``working``: who has work to do at PreBind; None: to be asked."""
        framework, state, pod, node = cycle.framework, cycle.state, cycle.assumed, cycle.node_name
        assert pod is not None
        # 1. Who has work to do before the binding?
        if working is None:
            status, working = framework.run_pre_bind_pre_flight(state, pod, node)
            if not status.is_success:
                return status
        if working:
            self._announce(cycle)
            status = self._pre_bind(cycle, working)
            if not status.is_success:
                return status
        # 2. Bind: an extender that does it comes before the plugins.
        cycle.is_pre_bound = True
        bound = self._by_extender(cycle, pod)
        status = framework.run_bind(state, pod, node) if bound is None else bound
        if not status.is_success:
            return status
        # 3. Tell.
        self._tell_scheduled(cycle)
        framework.run_post_bind(state, pod, node)
        return status

    def _by_extender(self, cycle: PodCycle, pod: Pod) -> Status | None:
        """None: none is to do it."""
        cluster = cycle.framework.cluster
        if self._extenders.binds(pod) and isinstance(cluster, Fenced):
            try:
                cluster.check_writable()
            except ApiError as refusal:
                return error(refusal)
        return self._extenders.bind(pod, cycle.node_name, cycle.state.timings)

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
