"""What the observe page is sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypedDict

from dashboard import groups
from dashboard.frames import Frame
from dashboard.observe.models import ObservedPod
from scheduler_core.observations import AGREEMENTS, PLACED

#: Most pods in one frame.
PODS_PER_FRAME: Final = 50
#: Pods that were placed last, which the recent agreement rate is of.
RECENT: Final = 1_000
_AGREE: Final = tuple(verdict.value for verdict in AGREEMENTS)
_PLACED: Final = tuple(verdict.value for verdict in PLACED)


class Rate(TypedDict):
    """``agree`` of ``placed`` pods: the same node, or one with the same score."""

    agree: int
    placed: int


class ObservedRow(TypedDict):
    """One line of the observe page."""

    id: int
    sequence: int
    commit_seq: int
    pod: str
    namespace: str
    name: str
    verdict: str
    scheduler: str
    profile: str
    ours: str
    actual: str
    ours_total: int | None
    actual_total: int | None
    why: str
    plugin: str
    seen_at: float
    at: float


def row(pod: ObservedPod) -> ObservedRow:
    return {
        "id": pod.pk,
        "sequence": pod.sequence,
        "commit_seq": pod.commit_seq,
        "pod": f"{pod.namespace}/{pod.name}",
        "namespace": pod.namespace,
        "name": pod.name,
        "verdict": str(pod.verdict),
        "scheduler": pod.scheduler,
        "profile": pod.profile,
        "ours": pod.ours,
        "actual": pod.actual,
        "ours_total": pod.ours_total,
        "actual_total": pod.actual_total,
        "why": pod.why,
        "plugin": pod.plugin,
        "seen_at": pod.seen_at,
        "at": pod.at,
    }


def rate(counts: Mapping[str, int]) -> Rate:
    """Of verdict -> pods."""
    return {
        "agree": sum(counts.get(verdict, 0) for verdict in _AGREE),
        "placed": sum(counts.get(verdict, 0) for verdict in _PLACED),
    }


def frame(
    run_id: int,
    since: int,
    seq: int,
    *,
    pods: Sequence[ObservedPod],
    skipped: int,
    counts: Mapping[str, int],
    recent: Mapping[str, int],
    pending: int,
) -> Frame:
    """Pods of which something new was said, newest last; ``skipped``: those that did not fit.

    ``counts``: verdict -> pods of the whole run, those left out included; ``recent``: of the pods
    that were placed last.
    """
    return {
        "type": groups.OBSERVE,
        "run": run_id,
        "from": since,
        "seq": seq,
        "counts": {**counts, "pending": pending},
        "whole": rate(counts),
        "recent": rate(recent),
        "recent_most": RECENT,
        "pods": [dict(row(pod)) for pod in pods],
        "skipped": skipped,
    }


def merge(old: Frame, new: Frame) -> Frame:
    """One frame that stands for both."""
    rows: dict[int, Any] = {line["id"]: line for line in (*old["pods"], *new["pods"])}
    newest = sorted(rows.values(), key=lambda line: int(line["sequence"]))[-PODS_PER_FRAME:]
    left = len(rows) - len(newest)
    return {
        **new,
        "from": old["from"],
        "pods": newest,
        "skipped": old["skipped"] + new["skipped"] + left,
    }
