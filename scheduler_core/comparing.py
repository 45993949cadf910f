"""Compares what the algorithm found for a pod with the node that another scheduler chose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from scheduler_core.algorithm import ScheduleResult
from scheduler_core.cycle_record import node_scores
from scheduler_core.framework.status import Status
from scheduler_core.observations import PluginComparison, Verdict

__all__ = ["Comparison", "compare", "our_node", "without_them"]

#: Plugins that a sentence names; the table has all of them.
_NAMED: Final = 2


@dataclass(frozen=True, slots=True)
class Comparison:
    """A verdict and its grounds; fields as in ``Observation``."""

    verdict: Verdict
    ours: str = ""
    ours_total: int | None = None
    actual_total: int | None = None
    why: str = ""
    plugin: str = ""
    plugins: tuple[PluginComparison, ...] = ()


def our_node(result: ScheduleResult, nominated: str) -> int:
    """Row of the node that we would choose; -1 where none fits. As in the reference, a node that
    preemption made room on is taken, whatever the others score, as long as the pod fits there."""
    if not result.status.is_success:
        return -1
    row = result.nodes.index_of(nominated) if nominated else -1
    return row if _is_feasible(result, row) else result.row


def without_them(result: ScheduleResult, nominated: str) -> Comparison:
    """What we would do with a pod that nobody has placed yet."""
    row = our_node(result, nominated)
    if row < 0 and not result.status.is_rejected:
        return Comparison(Verdict.ERROR, why=f"We could not decide: {result.status.message}")
    if row < 0:
        why = f"Not placed yet, and no node fits for us either: {_no_node(result)}"
        return Comparison(Verdict.PENDING, why=why, plugin=_main_plugin(result))
    name, total = result.names[row], _total(result, row)
    scored = "" if total is None else f", with a score of {total}"
    why = f"Not placed yet; we would choose {name}{scored}."
    return Comparison(Verdict.PENDING, name, total, why=why)


def compare(result: ScheduleResult, actual: str, nominated: str) -> Comparison:
    """The verdict on a pod that was placed on ``actual``.

    Args:
        result: of the pod and all nodes, in the state before it was placed.
        nominated: the node that preemption had made room on for it, or "".
    """
    row = our_node(result, nominated)
    theirs = result.nodes.index_of(actual)
    if row < 0:
        return _none_for_us(result, actual, theirs)
    ours, total = result.names[row], _total(result, row)
    if theirs < 0:
        why = f"We do not know {actual}: it is new, or gone already. We would choose {ours}."
        return Comparison(Verdict.INFEASIBLE, ours, total, why=why)
    if not _is_feasible(result, theirs):
        status = _status(result, theirs)
        by = f"{status.plugin} turns" if status.plugin else "Our filters turn"
        why = f"{by} {actual} down: {_reasons(status)}. We would choose {ours}."
        return Comparison(Verdict.INFEASIBLE, ours, total, why=why, plugin=status.plugin)
    plugins = _by_plugin(result, row, theirs)
    if theirs == row:
        why = _agreement(result, ours, total, nominated)
        return Comparison(Verdict.AGREE, ours, total, total, why, plugins=plugins)
    actual_total = _total(result, theirs)
    if total == actual_total and ours != nominated:
        why = _tie(actual, ours, total, result.ties)
        return Comparison(Verdict.TIE, ours, total, actual_total, why, plugins=plugins)
    why = _difference(ours, total, actual, actual_total, plugins)
    if ours == nominated:
        why = f"Preemption made room on {ours} for this pod, and it fits there. {why}"
    plugin = plugins[0].plugin if plugins and plugins[0].advantage > 0 else ""
    return Comparison(Verdict.DIFFERS, ours, total, actual_total, why, plugin, plugins)


def _none_for_us(result: ScheduleResult, actual: str, theirs: int) -> Comparison:
    if not result.status.is_rejected:
        return Comparison(Verdict.ERROR, why=f"We could not decide: {result.status.message}")
    why = f"No node fits for us: {_no_node(result)}"
    plugin = _main_plugin(result)
    if theirs >= 0:
        status = _status(result, theirs)
        plugin = status.plugin or plugin
        if status.plugin and status.reasons:
            why += f" {status.plugin} turns {actual} down: {_reasons(status)}."
    return Comparison(Verdict.UNSCHEDULABLE, why=why, plugin=plugin)


# -- facts -----------------------------------------------------------------------------------------


def _is_feasible(result: ScheduleResult, row: int) -> bool:
    return row >= 0 and bool(np.any(result.feasible == row))


def _total(result: ScheduleResult, row: int) -> int | None:
    return None if result.columns is None else result.columns.total.item(row)


def _status(result: ScheduleResult, row: int) -> Status:
    """Why the node was turned down."""
    diagnosed = result.fit_error.diagnosis.node_statuses if result.fit_error is not None else None
    statuses = result.statuses if result.statuses is not None else diagnosed
    return result.status if statuses is None else statuses[row]


def _main_plugin(result: ScheduleResult) -> str:
    """The plugin that turned most nodes down."""
    if result.statuses is None:
        return result.status.plugin
    nodes: dict[str, int] = {}
    for status, count in result.statuses.counts():
        if status.plugin:
            nodes[status.plugin] = nodes.get(status.plugin, 0) + count
    return max(nodes, key=lambda plugin: nodes[plugin], default=result.status.plugin)


def _by_plugin(result: ScheduleResult, ours: int, theirs: int) -> tuple[PluginComparison, ...]:
    if result.columns is None:
        return ()
    mine = node_scores(result.columns, result.names, ours).plugins
    other = node_scores(result.columns, result.names, theirs).plugins
    rows = [PluginComparison(plugin, mine[plugin], other[plugin]) for plugin in mine]
    return tuple(sorted(rows, key=lambda row: (-abs(row.advantage), row.plugin)))


# -- sentences -------------------------------------------------------------------------------------


def _reasons(status: Status) -> str:
    return ", ".join(status.reasons) or status.message or "no reason given"


def _no_node(result: ScheduleResult) -> str:
    text = result.fit_error.message if result.fit_error is not None else result.status.message
    return text if text.endswith(".") else f"{text}."


def _agreement(result: ScheduleResult, node: str, total: int | None, nominated: str) -> str:
    if node == nominated:
        return f"Both take {node}, where preemption made room for this pod."
    if len(result.feasible) == 1:
        return f"{node} is the only node that fits."
    if total is None:
        return f"Both choose {node}; nothing is scored."
    shared = f", which {result.ties} nodes share" if result.ties > 1 else ""
    return f"Both choose {node}, with the highest score of {total}{shared}."


def _tie(actual: str, ours: str, total: int | None, ties: int) -> str:
    if total is None:
        return f"{actual} and {ours} both fit and nothing is scored: which is taken is chance."
    more = f" and {ties - 2} more" if ties > 2 else ""
    return (
        f"{actual} has the highest score of {total}, as have {ours}{more}: which of them is "
        "taken is chance."
    )


def _difference(
    ours: str,
    total: int | None,
    actual: str,
    actual_total: int | None,
    plugins: Sequence[PluginComparison],
) -> str:
    if total is None or actual_total is None:
        return f"We would choose {ours}; {actual} fits too, and nothing is scored."
    scores = f"{actual} scores {actual_total}, {ours} {total}"
    telling = [row for row in plugins if row.advantage]
    if not telling:
        return f"{scores}."
    parts = [
        f"{row.plugin} prefers {ours if row.advantage > 0 else actual} by {abs(row.advantage)}"
        for row in telling[:_NAMED]
    ]
    rest = len(telling) - len(parts)
    if rest:
        parts.append(f"{rest} more plugin{'s' if rest > 1 else ''} differ{'' if rest > 1 else 's'}")
    return f"{', '.join(parts)}: {scores}."
