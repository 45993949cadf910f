"""ManualApproval: pods, or gangs, that ask for it wait at Permit for a person.

The plugin knows no users: whoever takes the decision calls ``WaitingPod.allow("ManualApproval")``
or ``reject`` on the waiting pod.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from scheduler_core.api import KubeObject, LabelSelector, Pod
from scheduler_core.api.errors import InvalidObject, invalid
from scheduler_core.api.reader import Reader
from scheduler_core.api.selectors import label_selector
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.errors import PluginConfigError
from scheduler_core.framework.events import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
)
from scheduler_core.framework.interface import EnqueueExtensions, Handle, PermitPlugin
from scheduler_core.framework.status import SUCCESS, Status, wait
from scheduler_core.plugins.coscheduling.gangs import GANG_INDEX, gang_index
from scheduler_core.plugins.helpers.hints import is_own_pod, queue_if, queue_own_gang

__all__ = ["APPROVAL_KEY", "REQUESTED_BY", "REQUIRED", "ManualApproval"]

#: The label (or annotation) by which a pod or a PodGroup asks for approval, and its value.
APPROVAL_KEY: Final = "kubesched.io/approval"
REQUIRED: Final = "required"
#: The annotation that names who asks.
REQUESTED_BY: Final = "kubesched.io/requested-by"

_LONGEST_WAIT: Final = 900

#: What a pod waits for, as its pending plugin says.
REASON: Final = "waits for a person's approval"


class ManualApproval(EnqueueExtensions, PermitPlugin):
    """A pod asks by label or annotation ``kubesched.io/approval: required``, or because the
    ``selector`` matches its labels. A gang asks, and then every member of it waits, when its
    PodGroup or any member asks. Each member has a deadline of its own, counted from when it was
    parked; a member that comes after others were approved asks anew.

    Args (ManualApprovalArgs): ``selector`` (a label selector; absent: nothing is selected),
    ``timeoutSeconds`` (900, 1..900).

    Raises:
        PluginConfigError: the selector does not parse, or the timeout is out of range.
    """

    name = "ManualApproval"

    def __init__(self, args: Mapping[str, Any], handle: Handle) -> None:
        self._selector = _read_selector(args)
        self._timeout = _read_timeout(args)
        self._pod_groups = handle.informer("PodGroup")
        self._handle = handle
        self._pods = handle.informer("Pod")
        self._pods.add_indexer(GANG_INDEX, gang_index)

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> tuple[Status, float]:
        # A native gang is schedulable only if a member succeeds in the group's cycle; the person
        # is asked in the ordinary Permit that follows.
        if state.pod_group_cycle or not self.needs_approval(pod):
            return SUCCESS, 0.0
        self._ask_for_the_gang(pod)
        return wait(REASON), float(self._timeout)

    def _ask_for_the_gang(self, pod: Pod) -> None:
        """Members that were parked before anybody in the gang asked for approval need it too."""
        if not pod.pod_group_key:
            return
        now = self._handle.clock.now()
        for member in self._pods.by_index(GANG_INDEX, pod.pod_group_key):
            waiting = self._handle.get_waiting_pod(member.uid)
            if waiting is not None:
                waiting.ask(self.name, float(self._timeout), now, REASON)

    def needs_approval(self, pod: Pod) -> bool:
        """Whether the pod, its PodGroup or any other member of its gang asks for approval."""
        if self._asks(pod):
            return True
        key = pod.pod_group_key
        if not key:
            return False
        group = self._pod_groups.get(key)
        if group is not None and self._asks(group):
            return True
        return any(self._asks(member) for member in self._pods.by_index(GANG_INDEX, key))

    def _asks(self, obj: KubeObject) -> bool:
        if REQUIRED in (obj.labels.get(APPROVAL_KEY), obj.annotations.get(APPROVAL_KEY)):
            return True
        return self._selector is not None and self._selector.matches(obj.labels)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """A pod that was denied, or that nobody decided on, is tried again when its labels or its
        PodGroup change; otherwise with all that have been unschedulable for long."""
        labels = ClusterEvent(EventResource.POD, ActionType.UPDATE_POD_LABEL)
        group = ClusterEvent(EventResource.POD_GROUP, ActionType.UPDATE)
        return (
            ClusterEventWithHint(labels, _after_label_change),
            ClusterEventWithHint(group, queue_own_gang),
        )


def _after_label_change(pod: Pod, _old: Any, new: Any) -> QueueingHint:
    return queue_if(is_own_pod(pod, new))


def _read_selector(args: Mapping[str, Any]) -> LabelSelector | None:
    reader = Reader(args)
    selector = label_selector(reader, "selector")
    try:
        reader.finish("")
    except InvalidObject as fault:
        raise PluginConfigError(fault.field_path, fault.message) from fault
    if selector is not None and selector.error:
        raise PluginConfigError("selector", selector.error)
    return selector


def _read_timeout(args: Mapping[str, Any]) -> int:
    found = args.get("timeoutSeconds")
    timeout: int = _LONGEST_WAIT if found is None else found
    if not 1 <= timeout <= _LONGEST_WAIT:
        text = invalid(timeout, f"not in valid range [1, {_LONGEST_WAIT}]")
        raise PluginConfigError("timeoutSeconds", text)
    return timeout
