"""What follows a failed cycle (kube-scheduler 1.36, ``handleSchedulingFailure``)."""

from __future__ import annotations

import logging

from scheduler_core.api import Pod
from scheduler_core.api_writer import ApiWriter
from scheduler_core.backend.queue.scheduling_queue import SchedulingQueue
from scheduler_core.cycle_record import rejections
from scheduler_core.framework.interface import Informer
from scheduler_core.framework.node_statuses import NodeStatuses
from scheduler_core.framework.status import Code, Status
from scheduler_core.framework.types import Diagnosis, FitError, NominatingInfo
from scheduler_core.pod_cycle import PodCycle
from scheduler_core.ports import PodCondition
from scheduler_core.records import Outcome

log = logging.getLogger(__name__)

CLEAR_NOMINATION = NominatingInfo("", override=True)


class FailureHandler:
    """Requeues the pod and tells its user why, in the reference's order: queue, nomination, event,
    condition."""

    def __init__(self, queue: SchedulingQueue, pods: Informer, writer: ApiWriter) -> None:
        self._queue = queue
        self._pods = pods
        self._writer = writer

    def handle(self, cycle: PodCycle, nominating: NominatingInfo = CLEAR_NOMINATION) -> None:
        """``cycle.status`` (and ``fit_error``) say what failed."""
        self._describe(cycle)
        cycle.nominating = nominating
        latest = self._latest(cycle.pod)
        if latest is None:
            self._queue.done(cycle.pod.uid)
            return
        cycle.info.pod = latest
        self._queue.add_unschedulable_if_not_present(cycle.info)
        if nominating.override:
            self._nominate(latest, nominating)
        self._tell(cycle, latest, nominating)

    def _describe(self, cycle: PodCycle) -> None:
        """Write the failure into the cycle and the queued pod."""
        info, status, fit = cycle.info, cycle.status, cycle.fit_error
        cycle.outcome = Outcome.UNSCHEDULABLE if status.is_rejected else Outcome.ERROR
        cycle.message = fit.message if fit is not None and status.is_rejected else status.message
        if cycle.group_failure:
            cycle.message = f"{cycle.message.rstrip('.')}. {cycle.group_failure}"
        info.unschedulable_plugins = set(fit.diagnosis.unschedulable_plugins) if fit else set()
        info.pending_plugins = set(fit.diagnosis.pending_plugins) if fit else set()
        if cycle.event_plugins is not None:
            info.unschedulable_plugins, info.pending_plugins = set(cycle.event_plugins), set()
        if not status.is_rejected:
            info.unschedulable_plugins, info.pending_plugins = set(), set()
        info.message = cycle.message
        info.reason, info.reason_plugin = dominant_reason(cycle)

    def _latest(self, pod: Pod) -> Pod | None:
        """The pod as the watch has it; None where it is gone, bound, or another of its name."""
        latest = self._pods.get(pod.key)
        if latest is None:
            log.info("pod %s is gone and is not requeued", pod.key)
            return None
        if latest.uid != pod.uid or latest.node_name:
            log.info("pod %s is bound or made anew and is not requeued", pod.key)
            return None
        return latest  # type: ignore[no-any-return]

    def _nominate(self, pod: Pod, nominating: NominatingInfo) -> None:
        if nominating.node_name:
            self._queue.nominator.add(pod, nominating)
        else:
            self._queue.nominator.delete(pod)

    def _tell(self, cycle: PodCycle, pod: Pod, nominating: NominatingInfo) -> None:
        self._writer.emit_event(
            pod,
            type="Warning",
            reason="FailedScheduling",
            action="Scheduling",
            note=cycle.message,
            reporting_controller=cycle.framework.profile_name,
        )
        reason = "Unschedulable" if cycle.status.is_rejected else "SchedulerError"
        self._writer.patch_status(
            pod,
            PodCondition("PodScheduled", "False", reason, cycle.message),
            nominating.node_name if nominating.override else None,
        )


def dominant_reason(cycle: PodCycle) -> tuple[str, str]:
    """The one reason to show for a pod, and the plugin behind it: the rejection that hit most
    nodes, else the failure itself."""
    if cycle.status.is_rejected and cycle.node_name == "":
        result = cycle.result
        hits = rejections(result.statuses, result.status, result.size) if result else ()
        if hits:
            return hits[0].reason, hits[0].plugin
    return cycle.status.message or cycle.message, cycle.status.plugin


def fit_error_of_one(pod: Pod, status: Status) -> FitError:
    """A pod turned down at Reserve or Permit, in a binding cycle: "0/1 nodes are available"."""
    statuses = NodeStatuses.from_list([status])
    diagnosis = Diagnosis(node_statuses=statuses)
    if status.plugin:
        pending = status.code is Code.PENDING
        target = diagnosis.pending_plugins if pending else diagnosis.unschedulable_plugins
        target.add(status.plugin)
    return FitError(pod, 1, diagnosis)
