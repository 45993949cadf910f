"""What `benchmark pipeline` found, as JSON and for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dashboard.benchmark.pages import PageLog
from scheduler_core.benchmark.report import percentile

__all__ = ["CycleTimes", "PageFigures", "PipelineReport", "page_figures"]


@dataclass(frozen=True, slots=True)
class CycleTimes:
    """The cycles of the measured seconds.

    Attributes:
        durations: seconds of each.
        per_second: decisions of each whole second.
        point_seconds / plugin_seconds: as in a CycleRecord, summed.
        outcomes: outcome -> decisions.
    """

    durations: Sequence[float]
    per_second: Sequence[int]
    point_seconds: Mapping[str, float]
    plugin_seconds: Mapping[str, Mapping[str, float]]
    outcomes: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class PageFigures:
    """What the open pages got in the measured seconds.

    Attributes:
        frames_per_s: of each page.
        latencies: seconds from the end of a scheduling cycle to the arrival of its line at a page.
        lost: connections that the server closed.
    """

    pages: int
    frames_per_s: Sequence[float]
    latencies: Sequence[float]
    mib_per_s: float
    lost: int


@dataclass(frozen=True, slots=True)
class PipelineReport:
    """One run of the whole product.

    Attributes:
        cycles: of the measured seconds.
        decided: scheduling cycles that were made from start to stop (the highest number).
        recorded: rows of them in the database.
        bound / bound_recorded: pods with a node in the sandbox at the end; those of them whose
            binding is in the database.
        cpu: program -> share of one core, of the measured seconds.
        rss_mib: program -> MiB of memory at the end.
        back_pressure: seconds that the scheduler waited for the recorder.
        matrices_dropped: matrices that the recorder could not keep up with.
        restarts: what ended and was started again.
    """

    workload: str
    nodes: int
    pages: PageFigures
    seconds: float
    cycles: CycleTimes
    decided: int
    recorded: int
    bound: int
    bound_recorded: int
    cpu: Mapping[str, float]
    rss_mib: Mapping[str, float]
    back_pressure: float
    matrices_dropped: int
    database: str
    broker: str
    restarts: Sequence[str]

    @property
    def decisions(self) -> int:
        return len(self.cycles.durations)

    @property
    def decisions_per_s(self) -> float:
        return self.decisions / self.seconds

    @property
    def lost(self) -> int:
        """Decisions and bindings that are not in the database."""
        return (self.decided - self.recorded) + (self.bound - self.bound_recorded)

    @property
    def worker_ms(self) -> float:
        """CPU milliseconds of both workers for each decision, with all that comes with it: the
        sandbox and its kubelet, the recorder, the publisher. Hardly noisy, unlike the pace."""
        if not self.decisions:
            return 0.0
        return self._workers_cpu * self.seconds / self.decisions * 1e3

    @property
    def _workers_cpu(self) -> float:
        """Cores in use by the processes of scheduler and sandbox."""
        return sum(self.cpu.get(f"{name} worker", 0.0) for name in ("loop", "sandbox"))

    def as_json(self) -> dict[str, Any]:
        """One object; its first names are those that every benchmark has."""
        pages, latencies = self.pages, self.pages.latencies
        return {
            "workload": self.workload,
            "nodes": self.nodes,
            "pods": self.decisions,
            "pods_per_s": round(self.decisions_per_s, 1),
            "p50_ms": round(percentile(self.cycles.durations, 50) * 1e3, 4),
            "p99_ms": round(percentile(self.cycles.durations, 99) * 1e3, 4),
            "peak_rss_mib": round(self.rss_mib.get("loop worker", 0.0), 1),
            "points": {
                point: {
                    "seconds": round(seconds, 6),
                    "plugins": {
                        name: round(part, 6)
                        for name, part in self.cycles.plugin_seconds.get(point, {}).items()
                    },
                }
                for point, seconds in self.cycles.point_seconds.items()
            },
            "outcomes": dict(self.cycles.outcomes),
            "seconds": round(self.seconds, 3),
            "slowest_second": min(self.cycles.per_second, default=0),
            "decided": self.decided,
            "recorded": self.recorded,
            "bound": self.bound,
            "bound_recorded": self.bound_recorded,
            "lost": self.lost,
            "pages": pages.pages,
            "pages_lost": pages.lost,
            "frames_per_s": {
                "least": round(min(pages.frames_per_s, default=0.0), 2),
                "median": round(percentile(pages.frames_per_s, 50), 2),
                "most": round(max(pages.frames_per_s, default=0.0), 2),
            },
            "mib_per_s": round(pages.mib_per_s, 2),
            "latency_ms": {
                "lines": len(latencies),
                **{f"p{p}": round(percentile(latencies, p) * 1e3, 1) for p in (50, 95, 99)},
            },
            "worker_cpu_ms_per_decision": round(self.worker_ms, 3),
            "cpu": {name: round(share, 3) for name, share in self.cpu.items()},
            "rss_mib": {name: round(mib, 1) for name, mib in self.rss_mib.items()},
            "back_pressure_seconds": round(self.back_pressure, 3),
            "matrices_dropped": self.matrices_dropped,
            "database": self.database,
            "broker": self.broker,
            "restarts": list(self.restarts),
        }

    def as_table(self) -> str:
        """For people."""
        found = self.as_json()
        frames, latency = found["frames_per_s"], found["latency_ms"]
        outcomes = ", ".join(f"{n:,} {name}" for name, n in self.cycles.outcomes.items())
        lines = [
            f"workload          {self.workload}: {self.nodes:,} nodes, {self.seconds:.0f} s, "
            f"{self.database}, {self.broker}",
            f"decisions         {self.decisions_per_s:,.0f} per second "
            f"(slowest second {found['slowest_second']:,}): {outcomes}",
            f"cycle             p50 {found['p50_ms']:.3f} ms, p99 {found['p99_ms']:.3f} ms; "
            f"worker {self.worker_ms:.2f} ms CPU per decision, all included",
            f"in the database   {self.recorded:,} of {self.decided:,} decisions, "
            f"{self.bound_recorded:,} of {self.bound:,} pods on nodes; lost: {self.lost:,}",
            f"recorder          {self.back_pressure:.1f} s of back-pressure, "
            f"{self.matrices_dropped:,} matrices dropped",
            f"pages             {self.pages.pages} open, {self.pages.lost} closed by the server; "
            f"{self.pages.mib_per_s:.1f} MiB/s in all",
            f"frames per page   {frames['least']:.1f} to {frames['most']:.1f} per second, "
            f"median {frames['median']:.1f}",
            f"decision to page  p50 {latency['p50']:.0f} ms, p95 {latency['p95']:.0f} ms, "
            f"p99 {latency['p99']:.0f} ms ({latency['lines']:,} lines)",
            "",
            f"{'process':<17} {'of a core':>9} {'memory':>10}",
        ]
        for name, share in self.cpu.items():
            lines.append(f"{name:<17} {share:>9.0%} {self.rss_mib.get(name, 0.0):>6,.0f} MiB")
        return "\n".join([*lines, *self.restarts])


def page_figures(logs: Sequence[PageLog], began: float, seconds: float) -> PageFigures:
    """Of the frames that came in ``seconds`` from the time of day ``began`` on."""

    def is_in(at: float) -> bool:
        return began <= at < began + seconds

    counts = Counter({i: sum(map(is_in, log.frames)) for i, log in enumerate(logs)})
    return PageFigures(
        pages=len(logs),
        frames_per_s=[counts[i] / seconds for i in range(len(logs))],
        latencies=[late for log in logs for at, late in log.latencies if is_in(at)],
        mib_per_s=sum(n for log in logs for at, n in log.sizes if is_in(at)) / seconds / 2**20,
        lost=sum(len(log.closes) for log in logs),
    )
