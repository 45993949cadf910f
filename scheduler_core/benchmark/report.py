"""What a run of a benchmark says: the figures, as JSON and as a table for people."""

from __future__ import annotations

import math
import resource
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Report", "median_report", "peak_rss_mib", "percentile"]


@dataclass(frozen=True, slots=True)
class Report:
    """One run, or the median one of several.

    Attributes:
        seconds / cpu_seconds: of the measured part: wall time, and CPU time of the process.
        cycles: scheduling cycles in it, with those of pods that were tried again or are churn.
        durations: seconds of each of these cycles (CycleRecord.duration).
        point_seconds: extension point -> seconds.
        plugin_seconds: (extension point, plugin) -> seconds.
        outcomes: outcome -> measured pods whose last attempt ended so.
        peak_rss: MiB, of the whole process so far.
        pods_per_s_of_runs: pods/s of every run.
    """

    workload: str
    nodes: int
    pods: int
    existing_pods: int
    seconds: float
    cpu_seconds: float
    cycles: int
    durations: Sequence[float]
    point_seconds: Mapping[str, float]
    plugin_seconds: Mapping[tuple[str, str], float]
    outcomes: Mapping[str, int]
    peak_rss: float
    pods_per_s_of_runs: tuple[float, ...] = ()

    @property
    def pods_per_s(self) -> float:
        return self.pods / self.seconds if self.seconds > 0 else 0.0

    def as_json(self) -> dict[str, Any]:
        """One object; its first names are those that every benchmark has."""
        return {
            "workload": self.workload,
            "nodes": self.nodes,
            "pods": self.pods,
            "pods_per_s": round(self.pods_per_s, 1),
            "p50_ms": round(percentile(self.durations, 50) * 1e3, 4),
            "p99_ms": round(percentile(self.durations, 99) * 1e3, 4),
            "peak_rss_mib": round(self.peak_rss, 1),
            "points": {
                point: {"seconds": round(seconds, 6), "plugins": self._plugins(point)}
                for point, seconds in _largest_first(self.point_seconds)
            },
            "outcomes": dict(self.outcomes),
            "existing_pods": self.existing_pods,
            "seconds": round(self.seconds, 6),
            "cpu_seconds": round(self.cpu_seconds, 6),
            "cycles": self.cycles,
            "cycle_seconds": round(sum(self.durations), 6),
            "runs": [round(rate, 1) for rate in self.pods_per_s_of_runs],
        }

    def _plugins(self, point: str) -> dict[str, float]:
        of_point = {name: s for (at, name), s in self.plugin_seconds.items() if at == point}
        return {name: round(seconds, 6) for name, seconds in _largest_first(of_point)}

    def as_table(self) -> str:
        """For people."""
        outcomes = ", ".join(f"{n:,} {name}" for name, n in self.outcomes.items())
        existing = f", {self.existing_pods:,} pods on them before" if self.existing_pods else ""
        lines = [
            f"workload      {self.workload}: {self.nodes:,} nodes{existing}; {self.pods:,} pods",
            f"speed         {self.pods_per_s:,.0f} pods/s{self._runs()}",
            f"cycle         p50 {percentile(self.durations, 50) * 1e3:.3f} ms, "
            f"p99 {percentile(self.durations, 99) * 1e3:.3f} ms, {self.cycles:,} cycles",
            f"outcomes      {outcomes}",
            f"time          {self.seconds:.3f} s, of it {self.cpu_seconds:.3f} s CPU",
            f"peak memory   {self.peak_rss:,.0f} MiB",
            "",
            f"{'where the time goes':<40} {'seconds':>9} {'share':>7} {'us/cycle':>9}",
        ]
        for point, seconds in _largest_first(self.point_seconds):
            lines.append(self._line(point, seconds))
            lines += [self._line(f"  {name}", s) for name, s in self._plugins(point).items()]
        cycles, points = sum(self.durations), sum(self.point_seconds.values())
        lines.append(self._line("rest of the cycles", cycles - points))
        lines.append(self._line("between cycles: queue, binding, records", self.seconds - cycles))
        return "\n".join(lines)

    def _runs(self) -> str:
        if len(self.pods_per_s_of_runs) < 2:
            return ""
        rates = ", ".join(f"{rate:,.0f}" for rate in self.pods_per_s_of_runs)
        return f" (median of {rates})"

    def _line(self, name: str, seconds: float) -> str:
        share = seconds / self.seconds if self.seconds else 0.0
        each = seconds / self.cycles * 1e6 if self.cycles else 0.0
        return f"{name:<40} {seconds:>9.3f} {share:>7.1%} {each:>9.1f}"


def median_report(reports: Sequence[Report]) -> Report:
    """The run with the median speed (of an even number the slower of the two in the middle), which
    knows the speed of all and the memory of the hungriest.

    Raises:
        ValueError: there is none.
    """
    if not reports:
        raise ValueError("no run, no median")
    ordered = sorted(reports, key=lambda report: report.pods_per_s)
    middle = ordered[(len(ordered) - 1) // 2]
    values = {name: getattr(middle, name) for name in Report.__slots__}
    values["peak_rss"] = max(report.peak_rss for report in reports)
    values["pods_per_s_of_runs"] = tuple(report.pods_per_s for report in reports)
    return Report(**values)


def percentile(values: Sequence[float], percent: float) -> float:
    """The smallest value that at least ``percent`` % do not exceed (nearest rank); 0.0 of none."""
    if not values:
        return 0.0
    rank = max(1, math.ceil(percent / 100 * len(values)))
    return sorted(values)[rank - 1]


def peak_rss_mib() -> float:
    """The most memory that this process has held at a time, in MiB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << 20) if sys.platform == "darwin" else peak / (1 << 10)


def _largest_first(seconds: Mapping[str, float]) -> list[tuple[str, float]]:
    return sorted(seconds.items(), key=lambda item: -item[1])
