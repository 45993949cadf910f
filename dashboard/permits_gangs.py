"""Approvals that stand for a whole gang, also for members that begin to wait later."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from django.db.models import QuerySet

from dashboard.models import WaitingPod
from dashboard.permits_models import GangApproval
from scheduler_core.plugins.manual_approval import ManualApproval
from scheduler_core.records import Verdict

#: What of the terms an approver agrees to. Not the reason, which counts the members, nor what
#: happens at the deadline, which depends on when a member comes.
_BASIS: Final = ("policy", "approvers", "requester_may_approve", "groups")


def basis(row: WaitingPod) -> dict[str, Any]:
    """Under which terms the pod is approved: two members with the same are approved alike."""
    return {name: row.terms.get(name) for name in _BASIS}


@dataclass(frozen=True, slots=True)
class Gang:
    """The standing approvals of one gang of a run. Call under the run's lock.

    ``pod_group`` and ``gang_uid``: ``WaitingPod.gang`` of its members.
    """

    run_id: int
    pod_group: str
    gang_uid: str

    def standing(self) -> QuerySet[GangApproval]:
        """Those that cover members to come, oldest first."""
        return GangApproval.objects.filter(
            run=self.run_id,
            pod_group=self.pod_group,
            gang_uid=self.gang_uid,
            state=GangApproval.State.STANDING,
        ).order_by("pk")

    def has_open(self) -> bool:
        """Whether a member still waits."""
        return self.open().exists()

    def is_all_said(self) -> bool:
        """Every member that waits is approved, and waits for people alone."""
        columns = ("state", "decision_verdict", "pending")
        rows = list(self.open().order_by().values_list(*columns))
        return bool(rows) and all(
            state == WaitingPod.State.SENT
            and verdict == Verdict.APPROVE
            and all(item["plugin"] == ManualApproval.name for item in pending)
            for state, verdict, pending in rows
        )

    def open(self) -> QuerySet[WaitingPod]:
        """Members whose wait has not ended."""
        return WaitingPod.objects.filter(
            run=self.run_id,
            pod_group=self.pod_group,
            gang_uid=self.gang_uid,
            state__in=WaitingPod.OPEN,
        )

    def grant(self, user: Any, at: float, comment: str, members: Iterable[WaitingPod]) -> bool:
        """The person's approval stands from now on, for the terms under which ``members`` wait;
        False where it did before."""
        given: list[dict[str, Any]] = []
        for row in members:
            if basis(row) not in given:
                given.append(basis(row))
        before = self.standing().filter(username=user.get_username()).first()
        if before is not None:
            return _widen(before, given)
        GangApproval.objects.create(
            run_id=self.run_id,
            pod_group=self.pod_group,
            gang_uid=self.gang_uid,
            user=user if user.pk else None,
            username=user.get_username(),
            at=at,
            comment=comment,
            bases=given,
        )
        return True

    def revoke(self, username: str, at: float) -> bool:
        """The person's approval stands no more; False where there was none."""
        return self._close(self.standing().filter(username=username), "revoked", at)

    def end(self, at: float) -> bool:
        """The gang's wait ended without success: who approved it has to be asked again."""
        return self._close(self.standing(), "ended", at)

    def complete(self, at: float) -> bool:
        """The gang was let go: whoever joins it now asks anew."""
        return self._close(self.standing(), "complete", at)

    @staticmethod
    def _close(found: QuerySet[GangApproval], state: str, at: float) -> bool:
        return found.update(state=GangApproval.State(state), ended_at=at) > 0


def _widen(approval: GangApproval, given: list[dict[str, Any]]) -> bool:
    """Said again, of terms that have changed meanwhile."""
    new = [terms for terms in given if terms not in approval.bases]
    if not new:
        return False
    approval.bases = [*approval.bases, *new]
    approval.save(update_fields=["bases"])
    return True
