"""Answers of an evaluation, as text for a person."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

__all__ = ["evaluation_table"]

Json = Mapping[str, Any]

#: Scored nodes that are listed, best first.
BEST_NODES: Final = 20
#: Nodes that are named behind one reason.
NAMED_NODES: Final = 5


def evaluation_table(name: str, results: Sequence[Json]) -> str:
    """Every pod: where it would go and how the nodes compare, or what stops it and who would have
    to make way. Characters that a terminal acts upon are shown as "?"."""
    lines = [name]
    for result in results:
        lines += ["", *_pod(result)]
    return "\n".join(map(_harmless, lines))


def _pod(result: Json) -> Iterable[str]:
    status = result["status"]
    if status == "Feasible":
        total = result["total"][result["chosen"]]
        ties = f", {len(result['best'])} nodes with it" if len(result["best"]) > 1 else ""
        yield f"{result['pod']}: {result['chosen']} (total {total}{ties})"
        yield from _indented(_scores(result))
    else:
        yield f"{result['pod']}: {status}"
        yield f"  {result['message']}"
    yield from _indented(_rejections(result))
    yield from _indented(_preemption(result.get("preemption")))


def _scores(result: Json) -> Iterable[str]:
    """One row per node: total, and each plugin's normalised score."""
    weights: Mapping[str, int] = result["weights"]
    head = ["node", "total", *(f"{plugin} x{weight}" for plugin, weight in weights.items())]
    order = sorted(result["feasible"], key=lambda node: (-result["total"][node], node))
    rows = [
        [node, result["total"][node], *(result["normalized"][p][node] for p in weights)]
        for node in order[:BEST_NODES]
    ]
    yield from _columns([head, *([str(cell) for cell in row] for row in rows)])
    if len(order) > BEST_NODES:
        yield f"and {len(order) - BEST_NODES} more nodes that fit"


def _rejections(result: Json) -> Iterable[str]:
    nodes_by_verdict: dict[tuple[str, str], list[str]] = {}
    for node, status in result.get("filtered", {}).items():
        verdict = (status.get("plugin", ""), ", ".join(status["reasons"]))
        nodes_by_verdict.setdefault(verdict, []).append(node)
    if not nodes_by_verdict:
        return
    rows = [["rejected", "by", "because"]]
    for (plugin, reason), nodes in sorted(nodes_by_verdict.items(), key=lambda e: -len(e[1])):
        rows.append([_names(nodes), plugin, reason])
    yield from _columns(rows)


def _names(nodes: Sequence[str]) -> str:
    named = ", ".join(nodes[:NAMED_NODES])
    return named if len(nodes) <= NAMED_NODES else f"{named} and {len(nodes) - NAMED_NODES} more"


def _preemption(preemption: Json | None) -> Iterable[str]:
    if preemption is None or "nominated" not in preemption:
        return
    rows = [["evict from", "broken budgets", "victims, most important first"]]
    nominated = preemption["nominated"]
    for candidate in sorted(preemption["candidates"], key=lambda c: c["node"] != nominated):
        chosen = " (chosen)" if candidate["node"] == nominated else ""
        rows.append(
            [
                f"{candidate['node']}{chosen}",
                str(candidate["pdbViolations"]),
                ", ".join(candidate["victims"]),
            ]
        )
    yield from _columns(rows)


def _columns(rows: Sequence[Sequence[str]]) -> Iterable[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        yield "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip()


def _indented(lines: Iterable[str]) -> Iterable[str]:
    return (f"  {line}" for line in lines)


def _harmless(line: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in line)
