"""``scheduler_plugin_evaluation_total``, without counting plugin by plugin in every cycle.

All nodes are filtered and scored at once here, and work for one pod serves the next one like it.
What is counted is what the reference would have asked: Filter plugins one after another until one
rejects the node, Score plugins for every feasible node. Cycles in which the same plugins skipped
are counted together; who was asked how often follows from that when somebody wants to know.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from scheduler_core.framework.runtime.framework import Framework
from scheduler_core.metrics.store import Labels
from scheduler_core.pod_cycle import PodCycle

__all__ = ["Evaluations"]

_Skipped = frozenset[str]


class _Alike:
    """Cycles of one profile in which the same plugins skipped."""

    __slots__ = ("cycles", "nodes", "rejected", "scored_cycles", "scored_nodes")

    def __init__(self) -> None:
        self.cycles = 0
        #: Nodes that were looked at, and those of them that each plugin rejected.
        self.nodes = 0
        self.rejected: Counter[str] = Counter()
        self.scored_cycles = 0
        self.scored_nodes = 0


class Evaluations:
    """Of the profiles of one scheduler; ``totals`` may be asked from any thread."""

    def __init__(self) -> None:
        self._frameworks: Mapping[str, Framework] = {}
        #: Of schedulers that are gone, and of cycles that were counted plugin by plugin.
        self._known: Counter[Labels] = Counter()
        #: (profile, who skipped Filter, who skipped Score)
        self._alike: dict[tuple[str, _Skipped, _Skipped], _Alike] = {}

    def begin(self, frameworks: Mapping[str, Framework]) -> None:
        """Another scheduler takes over, whose profiles may have other plugins."""
        self._known = self._totals()
        self._alike = {}
        self._frameworks = frameworks

    def count(self, cycle: PodCycle) -> None:
        """A cycle whose result, if it came to one, is known."""
        result, state = cycle.result, cycle.state
        if result is None or not result.size:
            return
        statuses = result.statuses
        if statuses is None:
            self._stopped_at_pre_filter(cycle)
            return
        profile = cycle.framework.profile_name
        key = (profile, state.skip_filter_plugins, state.skip_score_plugins)
        alike = self._alike.get(key)
        if alike is None:
            alike = self._alike[key] = _Alike()
        alike.cycles += 1
        alike.nodes += result.evaluated
        if result.columns is not None:
            alike.scored_cycles += 1
            alike.scored_nodes += len(result.feasible)
        if not statuses.all_success:
            for status, count in statuses.counts():
                if status.plugin:
                    alike.rejected[status.plugin] += count

    def _stopped_at_pre_filter(self, cycle: PodCycle) -> None:
        statuses = cycle.timings.statuses
        for point, plugin in cycle.timings.plugins:
            if point == "PreFilter" and statuses.get((point, plugin)) != "Skip":
                self._known[plugin, point, cycle.framework.profile_name] += 1

    def totals(self) -> dict[Labels, float]:
        """(plugin, extension point, profile) -> how often it was asked; 0 for who never was."""
        found: dict[Labels, float] = {}
        for profile, framework in self._frameworks.items():
            by_point = {
                "PreFilter": framework.pre_filter_plugins,
                "Filter": framework.filter_plugins,
                "PreScore": framework.pre_score_plugins,
                "Score": [plugin for plugin, _ in framework.score_plugins],
            }
            for point, plugins in by_point.items():
                found |= {(plugin.name, point, profile): 0.0 for plugin in plugins}
        return found | {labels: float(count) for labels, count in self._totals().items()}

    def _totals(self) -> Counter[Labels]:
        found = self._known.copy()
        for (profile, no_filter, no_score), alike in self._alike.copy().items():
            framework = self._frameworks[profile]
            for pre_filter in framework.pre_filter_plugins:
                if pre_filter.name not in no_filter:
                    found[pre_filter.name, "PreFilter", profile] += alike.cycles
            left = alike.nodes
            for plugin in framework.filter_plugins:
                if plugin.name not in no_filter:
                    found[plugin.name, "Filter", profile] += left
                    left -= alike.rejected[plugin.name]
            for pre_score in framework.pre_score_plugins:
                if pre_score.name not in no_score:
                    found[pre_score.name, "PreScore", profile] += alike.scored_cycles
            for score, _ in framework.score_plugins:
                if score.name not in no_score:
                    found[score.name, "Score", profile] += alike.scored_nodes
        return found
