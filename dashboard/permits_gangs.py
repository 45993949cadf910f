"""Approvals that stand for a whole gang, also for members that begin to wait later."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from dashboard.permits_models import GangApproval


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

    def grant(self, user: Any, at: float, comment: str) -> bool:
        """The person's approval stands from now on; False where it did before."""
        if self.standing().filter(username=user.get_username()).exists():
            return False
        GangApproval.objects.create(
            run_id=self.run_id,
            pod_group=self.pod_group,
            gang_uid=self.gang_uid,
            user=user if user.pk else None,
            username=user.get_username(),
            at=at,
            comment=comment,
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
