"""A wait as JSON: the one shape that the REST API answers with and that webhooks send.

Plain dictionaries, so that workers need not load the API's library. ``rest.schemas`` describes it.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import quote

from django.conf import settings
from django.urls import reverse

from dashboard.models import SchedulerRun, WaitingPod

API: Final = "/api/v1"


def moment(seconds: float | None) -> str | None:
    """Seconds since the epoch as ISO 8601 in UTC, to the millisecond."""
    if seconds is None:
        return None
    return iso(datetime.fromtimestamp(seconds, UTC))


def iso(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def run_brief(run: SchedulerRun) -> dict[str, Any]:
    return {"id": run.pk, "name": run.name, "cluster": run.cluster.name}


def gang_brief(row: WaitingPod) -> dict[str, Any] | None:
    """The gang of a waiting pod, or None. ``uid`` is that of its PodGroup, or "" where none was
    known when it began to wait."""
    if not row.pod_group:
        return None
    namespace, _, name = row.pod_group.partition("/")
    return {
        "uid": row.gang_uid,
        "key": row.pod_group,
        "namespace": namespace,
        "name": name,
        "min_member": row.group_min_member,
    }


def decision(row: WaitingPod) -> dict[str, Any] | None:
    """The word that counts, or None where there is none yet."""
    if not row.decision_verdict:
        return None
    return {
        "verdict": row.decision_verdict,
        "user": row.decision_user,
        "at": moment(row.decision_at),
        "comment": row.decision_comment,
    }


def approvals(row: WaitingPod) -> list[dict[str, Any]]:
    """Who has approved so far, first to last."""
    return [
        {
            "user": given["user"],
            "at": moment(given["at"]),
            "comment": given.get("comment", ""),
            "for_gang": bool(given.get("gang")),
        }
        for given in row.approvals
    ]


def waiting_pod(row: WaitingPod, run: SchedulerRun) -> dict[str, Any]:
    """One wait."""
    return {
        "uid": row.uid,
        "wait": row.pk,
        "run": run_brief(run),
        "namespace": row.namespace,
        "name": row.name,
        "node": row.node,
        "gang": gang_brief(row),
        "profile": row.profile,
        "priority": row.priority,
        "requested_by": row.requested_by,
        "requests": row.requests,
        "since": moment(row.since),
        "deadline": moment(row.deadline),
        "state": row.state,
        "needs_approval": row.needs_approval,
        "approvals": approvals(row),
        "approvals_needed": approvals_needed(row),
        "decision": decision(row),
        "pending": [
            {
                "plugin": item["plugin"],
                "deadline": moment(item.get("deadline")),
                "reason": item.get("reason", ""),
            }
            for item in row.pending
        ],
        "message": row.message,
        "resolved_by": row.resolved_by,
        "resolved_at": moment(row.resolved_at),
        "links": pod_links(row),
    }


def approvals_needed(row: WaitingPod) -> int:
    """How many people have to approve; 0 where nobody is asked."""
    return row.approvers_needed if row.needs_approval else 0


def pod_links(row: WaitingPod) -> dict[str, str]:
    """Where to look and where to decide. ``run`` is in the query, so that a uid that two clusters
    share is no question."""
    base = f"{API}/waiting/{quote(row.uid, safe='')}"
    query = f"?run={row.run_id}"
    links = {
        "self": base + query,
        "approve": f"{base}/approve{query}",
        "deny": f"{base}/deny{query}",
        "page": page(row.run_id),
    }
    return {name: site_url(path) for name, path in links.items()}


def gang_links(row: WaitingPod) -> dict[str, str]:
    """The same for the gang of a waiting pod."""
    base = f"{API}/gangs/{gang_path(row)}"
    query = f"?run={row.run_id}"
    links = {
        "self": f"{API}/waiting{query}&gang={quote(row.gang_uid or row.pod_group, safe='')}",
        "approve": f"{base}/approve{query}",
        "deny": f"{base}/deny{query}",
        "page": page(row.run_id),
    }
    return {name: site_url(path) for name, path in links.items()}


def gang_path(row: WaitingPod) -> str:
    """What names the gang in a path: its PodGroup's uid, or ``NAMESPACE:NAME`` where that is not
    known; no name of Kubernetes holds a colon."""
    return quote(row.gang_uid or row.pod_group.replace("/", ":"), safe=":")


def page(run_id: int) -> str:
    return reverse("waiting", args=[run_id])


def site_url(path: str) -> str:
    """With the site's address, where it is known; the path alone otherwise."""
    return f"{settings.KUBESCHED_SITE_URL}{path}"
