"""ManualApproval: pods, or gangs, that ask for it wait at Permit for people.

The plugin decides whether an approval is needed and under which terms; it knows no users. Who takes
people's words and counts them is ``scheduler_core.waiting_room``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from scheduler_core.api import NATIVE_POD_GROUP, KubeObject, Pod, assigned_requests
from scheduler_core.approval_rules import Asked, Demand, Policy, next_opening, read_rules
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
from scheduler_core.framework.status import SUCCESS, Status, unschedulable, wait
from scheduler_core.plugins.helpers.gangs import GangDirectory, GangId, quorum_plugin
from scheduler_core.plugins.helpers.hints import is_own_pod, queue_if
from scheduler_core.plugins.manual_approval.denied import Denied
from scheduler_core.records import ApprovalTerms, Rest, Verdict

__all__ = ["APPROVAL_KEY", "REQUESTED_BY", "REQUIRED", "ManualApproval"]

#: The label (or annotation) by which a pod or a PodGroup asks for approval, and its value.
APPROVAL_KEY: Final = "kubesched.io/approval"
REQUIRED: Final = "required"
#: The annotation that names who asks.
REQUESTED_BY: Final = "kubesched.io/requested-by"

#: Under which ``ApprovalTerms`` are in the CycleState of a pod that has to wait.
TERMS: Final = "ManualApproval/terms"


@dataclass(frozen=True, slots=True)
class _Wait:
    """One gang's, or pod's, wait: the terms, what the pending plugin says, and for how long."""

    terms: ApprovalTerms
    reason: str
    timeout: float


class ManualApproval(EnqueueExtensions, PermitPlugin):
    """A pod needs approval if it asks for it by label or annotation ``kubesched.io/approval:
    required``, if ``selector`` matches its labels, or if one of the policies matches. A gang needs
    it, and then every member waits, if its PodGroup or any member does; sizes are the gang's. The
    first policy that matches sets the terms, else the arguments themselves do. Terms are
    those of now: where policies or the gang change while it waits, the new ones count from then on.

    Native gangs are known where the profile has GangScheduling; elsewhere their pods are pods.

    In the group cycle of a native gang, which is schedulable only if a member succeeds there, the
    answer is Success, unless it was denied. People are asked in the ordinary Permit that follows.

    What was denied, by a person or its deadline, is turned down, without asking anybody, until it
    changes or five minutes have passed.

    Args (ManualApprovalArgs): see docs/approvals.md.

    Raises:
        PluginConfigError: the arguments are faulty.
    """

    name = "ManualApproval"

    def __init__(self, args: Mapping[str, Any], handle: Handle) -> None:
        self._rules, faults = read_rules(args)
        if faults:
            raise PluginConfigError(faults[0].field_path, faults[0].message) from faults[0]
        self._handle = handle
        native = handle.has_plugin(quorum_plugin(NATIVE_POD_GROUP))
        self._gangs = GangDirectory(handle, (handle.profile_name,) if native else ())
        self._denied = Denied(self._gangs)

    # -- Permit ----------------------------------------------------------------------------------

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> tuple[Status, float]:
        now = self._handle.clock.now()
        denial = self._denied.denial(pod, now)
        if denial:
            return unschedulable(denial), 0.0
        if state.pod_group_cycle:
            return SUCCESS, 0.0
        gang = self._gangs.gang_of(pod)
        found = self._wait_for(pod, gang, now)
        if found is None:
            return SUCCESS, 0.0
        state.write(TERMS, found.terms)
        if gang is not None:
            self._ask_for_the_gang(gang, found, now)
        return wait(found.reason), found.timeout

    def turned_down(self, pod: Pod, text: str) -> Rest:
        """A person, or a deadline that denies, has turned the pod down: neither it nor its gang
        need ask for a while."""
        return self._denied.deny(pod, text, self._handle.clock.now())

    def restore(self, rests: Iterable[Rest]) -> None:
        """What was turned down before a restart rests on."""
        self._denied.restore(rests)

    def _ask_for_the_gang(self, gang: GangId, found: _Wait, now: float) -> None:
        """Members that were parked before anybody in the gang asked for approval, or before it grew
        so large, need it too."""
        for member in self._gangs.members(gang):
            waiting = self._handle.get_waiting_pod(member.uid)
            if waiting is not None:
                waiting.ask(self.name, found.timeout, now, found.reason, found.terms)

    # -- who needs it ----------------------------------------------------------------------------

    def needs_approval(self, pod: Pod) -> bool:
        """Whether somebody has to approve the pod if it were to run now."""
        return self.terms_of(pod) is not None

    def terms_of(self, pod: Pod) -> ApprovalTerms | None:
        """Under which terms the pod has to be approved now; None where nobody has to."""
        found = self._wait_for(pod, self._gangs.gang_of(pod), self._handle.clock.now())
        return found.terms if found is not None else None

    def _wait_for(self, pod: Pod, gang: GangId | None, now: float) -> _Wait | None:
        """What the pod has to wait for; None where nobody has to be asked."""
        asked = self._asked(pod, gang)
        policy = self._rules.policy_for(asked)
        demand = self._rules.demand if policy is None else policy.demand
        if policy is None and not self._asks_itself(asked, gang):
            return None
        return _make_wait(demand, policy, policy.why(asked) if policy else "it asks for it", now)

    def _asked(self, pod: Pod, gang: GangId | None) -> Asked:
        # The pod itself stands for what its informer has of it.
        others = [] if gang is None else self._gangs.members(gang)
        members = [pod, *(other for other in others if other.uid != pod.uid)]
        wanted = 0 if gang is None else self._gangs.min_member(gang)
        gpus = sum(self._rules.gpus(assigned_requests(member)) for member in members)
        return Asked(members, max(len(members), wanted), gpus)

    def _asks_itself(self, asked: Asked, gang: GangId | None) -> bool:
        group = None if gang is None else self._gangs.group(gang)
        return (group is not None and self._asks(group)) or any(map(self._asks, asked.members))

    def _asks(self, obj: KubeObject) -> bool:
        if REQUIRED in (obj.labels.get(APPROVAL_KEY), obj.annotations.get(APPROVAL_KEY)):
            return True
        selector = self._rules.selector
        return selector is not None and selector.matches(obj.labels)

    # -- events ----------------------------------------------------------------------------------

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """A pod that was denied, or that nobody decided on, is tried again when its labels, its
        PodGroup or the members of its gang change; otherwise with all that have been unschedulable
        for long."""
        pod, updated = EventResource.POD, ActionType.UPDATE
        labels = ClusterEvent(pod, ActionType.UPDATE_POD_LABEL)
        member = ClusterEvent(pod, ActionType.ADD)
        group = ClusterEvent(EventResource.POD_GROUP, updated)
        native = ClusterEvent(EventResource.NATIVE_POD_GROUP, updated)
        groups = (group, native) if NATIVE_POD_GROUP in self._gangs.kinds else (group,)
        return (
            ClusterEventWithHint(labels, _after_label_change),
            ClusterEventWithHint(member, self._after_pod_add),
            *(ClusterEventWithHint(event, self._after_group_change) for event in groups),
        )

    def _after_pod_add(self, pod: Pod, _old: Any, new: Any) -> QueueingHint:
        gang = self._gangs.gang_of(pod)
        joined = isinstance(new, Pod) and not new.node_name and gang is not None
        return queue_if(joined and self._gangs.gang_of(new) == gang)

    def _after_group_change(self, pod: Pod, old: Any, new: Any) -> QueueingHint:
        """Not its status: a controller counts members there all the time."""
        gang = self._gangs.gang_of(pod)
        if gang is None or not isinstance(new, KubeObject) or new.key != gang.key:
            return QueueingHint.SKIP
        if new is not self._gangs.group(gang) and self._gangs.group(gang) is not None:
            return QueueingHint.SKIP  # the other kind of the same name
        return queue_if(not isinstance(old, KubeObject) or _request(old) != _request(new))


def _make_wait(demand: Demand, policy: Policy | None, why: str, now: float) -> _Wait | None:
    """None while a window is open. A window that opens before the time is over ends the wait."""
    opens = next_opening(demand.windows, now)
    if opens is not None and opens <= now:
        return None
    timeout, at_deadline = float(demand.timeout), demand.at_deadline
    ends = ""
    if opens is not None and opens - now < timeout:
        timeout, at_deadline = opens - now, Verdict.APPROVE
        ends = "; approved when the auto-approve window opens"
    elif at_deadline is Verdict.APPROVE:
        ends = "; approved when the time is over"
    terms = ApprovalTerms(
        policy=policy.name if policy is not None else "",
        reason=why,
        approvers=demand.approvers,
        requester_may_approve=demand.requester_may_approve,
        groups=demand.groups,
        at_deadline=at_deadline,
    )
    people = "a person's approval" if demand.approvers == 1 else f"{demand.approvers} approvals"
    return _Wait(terms, f"waits for {people}{ends}", timeout)


def _after_label_change(pod: Pod, _old: Any, new: Any) -> QueueingHint:
    return queue_if(is_own_pod(pod, new))


def _request(group: KubeObject) -> tuple[object, ...]:
    """What a PodGroup asks for."""
    spec = group.raw.get("spec")
    return (group.uid, group.labels, group.annotations, spec)
