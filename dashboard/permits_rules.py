"""Who may decide on a waiting pod, and whose approval counts.

The scheduler knows no users but by name: it counts different names, and leaves the requester's out
where the terms say so. Who is allowed to decide at all is asked here.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Final

from dashboard.models import WaitingPod

PERMISSION: Final = "dashboard.decide_waitingpod"


class Actor:
    """A person who decides, with what is asked of them more than once."""

    def __init__(self, user: Any) -> None:
        self.user = user
        self.name: str = user.get_username()

    @cached_property
    def may_decide(self) -> bool:
        return bool(self.user.has_perm(PERMISSION))

    @cached_property
    def _groups(self) -> frozenset[str]:
        return frozenset(self.user.groups.values_list("name", flat=True))

    def refusal(self, row: WaitingPod) -> str:
        """Why the person may not decide on this pod, or "". Superusers may decide everywhere."""
        if not self.may_decide:
            return "You are not allowed to decide on waiting pods."
        wanted = row.terms.get("groups") or ()
        if not wanted or self.user.is_superuser or self._groups.intersection(wanted):
            return ""
        names = " or ".join(wanted)
        return f"Only members of {names} may decide on {row.namespace}/{row.name}."


def asks_for_own(row: WaitingPod, username: str) -> bool:
    """Whether an approval by this person would not count, because it is their own request."""
    return row.requested_by == username and not row.terms.get("requester_may_approve", True)
