"""Questions of the REST API to the database."""

from __future__ import annotations

import base64
import binascii
from typing import Any, Final

from django.db.models import Q, QuerySet

from dashboard.models import WaitingPod
from dashboard.permits_models import Decision
from dashboard.rest import shapes
from dashboard.rest.problems import Problem
from dashboard.rest.schemas import WaitingFilter

_CURSOR: Final = "after:"


def page(wanted: WaitingFilter, username: str) -> dict[str, Any]:
    """One page of waits, in the order in which they began (by ``wait``).

    A wait that begins meanwhile comes last, one that ends leaves a gap: no row is shown twice and
    none that stays is skipped.
    """
    rows = _filtered(wanted, username)
    if wanted.cursor:
        rows = rows.filter(pk__gt=_position(wanted.cursor))
    found = list(rows.select_related("run__cluster").order_by("pk")[: wanted.limit + 1])
    items = found[: wanted.limit]
    more = len(found) > wanted.limit
    return {
        "items": [shapes.waiting_pod(row, row.run) for row in items],
        "next_cursor": _cursor(items[-1].pk) if more else None,
    }


def detail(row: WaitingPod) -> dict[str, Any]:
    """One wait with what an approver wants to see."""
    said = Decision.objects.filter(waiting_pod=row).order_by("pk")
    return {
        **shapes.waiting_pod(row, row.run),
        "node_use": {
            resource: {"allocatable": use[0], "before": use[1], "after": use[2]}
            for resource, use in row.node_use.items()
        },
        "said": [
            {
                "verdict": word.verdict,
                "user": word.username,
                "at": shapes.moment(word.at),
                "comment": word.comment,
                "for_gang": word.gang,
                "applied": word.applied,
                "message": word.message,
            }
            for word in said
        ],
    }


def wait_of_pod(uid: str, run: int | None) -> WaitingPod:
    """The wait of a pod that is open, or else its latest one.

    Raises:
        Problem: 404 it never waited; 409 several runs have one that waits.
    """
    rows = WaitingPod.objects.filter(uid=uid).select_related("run__cluster")
    return _the_one(rows, run, "pod")


def wait_of_gang(name: str, run: int | None) -> WaitingPod:
    """One wait of a gang's member, the same way. ``name``: uid, or "NAMESPACE:NAME".

    Raises:
        Problem: also 409 where two gangs of that name wait, one of either kind.
    """
    namespace, colon, rest = name.partition(":")
    which = Q(pod_group=f"{namespace}/{rest}") if colon else Q(gang_uid=name)
    rows = WaitingPod.objects.filter(which).select_related("run__cluster").exclude(pod_group="")
    row = _the_one(rows, run, "gang")
    namesakes = rows.filter(run=row.run_id, state__in=WaitingPod.OPEN).exclude(
        gang_uid=row.gang_uid
    )
    if colon and row.is_open and namesakes.exists():
        raise Problem(
            409,
            "ambiguous",
            f"Two gangs called {row.pod_group} wait. Name one by the uid of its PodGroup.",
        )
    return row


def _the_one(rows: QuerySet[WaitingPod], run: int | None, what: str) -> WaitingPod:
    if run is not None:
        rows = rows.filter(run=run)
    still_open = rows.filter(state__in=WaitingPod.OPEN)
    runs = sorted(set(still_open.order_by().values_list("run", flat=True).distinct()[:10]))
    if len(runs) > 1:
        raise Problem(
            409,
            "ambiguous",
            f"Several runs have a {what} with this uid that waits ({', '.join(map(str, runs))})."
            " Say which: ?run=NUMBER.",
        )
    row = still_open.order_by("-pk").first() or rows.order_by("-pk").first()
    if row is None:
        raise Problem(404, "unknown", f"No such {what} waits, or has waited.")
    return row


def _filtered(wanted: WaitingFilter, username: str) -> QuerySet[WaitingPod]:
    equal: dict[str, Any] = {
        "run": wanted.run,
        "run__cluster__name": wanted.cluster,
        "namespace": wanted.namespace,
        "needs_approval": wanted.needs_approval,
        "requested_by": wanted.requested_by,
    }
    rows = WaitingPod.objects.filter(**{k: v for k, v in equal.items() if v is not None})
    if wanted.mine:
        rows = rows.filter(requested_by=username)
    if wanted.gang:
        by = "pod_group" if "/" in wanted.gang else "gang_uid"
        rows = rows.filter(**{by: wanted.gang})
    if wanted.state == "open":
        return rows.filter(state__in=WaitingPod.OPEN)
    if wanted.state == "ended":
        return rows.exclude(state__in=WaitingPod.OPEN)
    return rows if wanted.state == "all" else rows.filter(state=wanted.state)


def _cursor(position: int) -> str:
    return base64.urlsafe_b64encode(f"{_CURSOR}{position}".encode()).decode().rstrip("=")


def _position(cursor: str) -> int:
    """
    Raises:
        Problem: 422, no cursor of ours.
    """
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        text = ""
    digits = text.removeprefix(_CURSOR)
    if not text.startswith(_CURSOR) or not digits.isascii() or not digits.isdecimal():
        words = "This is not a cursor of an earlier answer."
        errors = [{"field": "cursor", "message": words}]
        raise Problem(422, "invalid", words, errors=errors)
    return min(int(digits[:19]), 2**63 - 1)
