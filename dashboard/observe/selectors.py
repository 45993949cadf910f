"""Questions about a run that observes."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from dashboard.frames import Frame
from dashboard.models import SchedulerRun
from dashboard.observe import frames
from dashboard.observe.models import ObservedPod, ObservedTotals
from dashboard.observe.writing import recent_verdicts
from scheduler_core.observations import Verdict

__all__ = ["MOST_PODS", "ComparedPlugin", "compared", "observed", "observer_of"]

MOST_PODS: Final = 500


def observed(
    run: SchedulerRun,
    *,
    since: int | None = None,
    before: int | None = None,
    limit: int = frames.PODS_PER_FRAME,
    verdict: str = "",
    namespace: str = "",
) -> Frame:
    """The topic's frame: pods after commit ``since``, or told before sequence ``before``."""
    rows = ObservedPod.objects.filter(run=run)
    if since is not None:
        rows = rows.filter(commit_seq__gt=since)
    if before is not None:
        rows = rows.filter(sequence__lt=before)
    if verdict:
        rows = rows.filter(verdict=verdict)
    if namespace:
        rows = rows.filter(namespace=namespace)
    limit = max(1, min(limit, MOST_PODS))
    newest = list(rows.defer("comparison").order_by("-sequence")[:limit])
    skipped = rows.count() - limit if since is not None and len(newest) == limit else 0
    totals = ObservedTotals.objects.filter(run=run).first()
    pending = ObservedPod.objects.filter(run=run, verdict=Verdict.PENDING.value).count()
    return frames.frame(
        run.pk,
        since or 0,
        run.commit_seq,
        pods=newest[::-1],
        skipped=max(0, skipped),
        counts=totals.counts if totals is not None else {},
        recent=Counter(recent_verdicts(run.pk)),
        pending=pending,
    )


def observer_of(run: SchedulerRun) -> SchedulerRun | None:
    """The newest run that observes the same cluster."""
    rows = SchedulerRun.objects.filter(cluster=run.cluster_id, mode=SchedulerRun.Mode.OBSERVE)
    return rows.order_by("-pk").first()


class ComparedPlugin:
    """One line of the comparison of two nodes, for a template."""

    def __init__(self, line: list[Any]) -> None:
        self.plugin: str = line[0]
        self.ours: list[int] = line[1]
        self.theirs: list[int] = line[2]

    @property
    def advantage(self) -> int:
        """By how much the plugin is for our node."""
        return self.ours[2] - self.theirs[2]


def compared(pod: ObservedPod) -> list[ComparedPlugin]:
    """The plugins, the largest difference first."""
    return [ComparedPlugin(line) for line in pod.comparison]
