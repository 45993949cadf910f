"""How frames of one topic that wait to be sent become one."""

from __future__ import annotations

from collections.abc import Callable

from dashboard import frames, groups
from dashboard.observe import frames as observe_frames


def merge(topic: str, old: frames.Frame | bytes, new: frames.Frame | bytes) -> frames.Frame | bytes:
    """One frame that stands for both: lists are joined, states and matrices are replaced."""
    if isinstance(old, bytes) or isinstance(new, bytes):
        return new
    join = _MERGES.get(topic)
    if join is None:
        return new
    return join(old, new)


def _merge_cycles(old: frames.Frame, new: frames.Frame) -> frames.Frame:
    rows: dict[int, frames.CycleRow] = {row["sequence"]: row for row in old["cycles"]}
    rows.update((row["sequence"], row) for row in new["cycles"])
    joined = frames.cycles_frame(new["run"], old["from"], new["seq"], list(rows.values()))
    joined["skipped"] += old["skipped"] + new["skipped"]
    return joined


def _merge_waiting(old: frames.Frame, new: frames.Frame) -> frames.Frame:
    rows: dict[int, frames.WaitingRow] = {row["id"]: row for row in old["pods"]}
    for row in new["pods"]:
        # Frames of two writers may cross on their way; a row's own number tells which is newer.
        known = rows.get(row["id"])
        if known is None or known["commit_seq"] <= row["commit_seq"]:
            rows[row["id"]] = row
    return {
        **new,
        "from": min(old["from"], new["from"]),
        "seq": max(old["seq"], new["seq"]),
        "pods": list(rows.values()),
    }


def _merge_overview(old: frames.Frame, new: frames.Frame) -> frames.Frame:
    return {
        **new,
        "from": old["from"],
        "throughput": _join_seconds(old["throughput"], new["throughput"]),
        "depths": _join_seconds(old["depths"], new["depths"]),
        "usage": new["usage"] or old["usage"],
    }


def _merge_state(old: frames.Frame, new: frames.Frame) -> frames.Frame:
    return new if new["seq"] >= old["seq"] else old


def _join_seconds(old: list[list[int]], new: list[list[int]]) -> list[list[int]]:
    points = {point[0]: point for point in old}
    points.update((point[0], point) for point in new)
    return [points[second] for second in sorted(points)][-frames.SECONDS_KEPT :]


_MERGES: dict[str, Callable[[frames.Frame, frames.Frame], frames.Frame]] = {
    groups.CYCLES: _merge_cycles,
    groups.WAITING: _merge_waiting,
    groups.OBSERVE: observe_frames.merge,
    groups.OVERVIEW: _merge_overview,
    groups.QUEUES: _merge_state,
    groups.RUN: _merge_state,
}
