"""The arithmetic of a Deployment's rolling update (kube-controller-manager 1.36)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from scheduler_core.ports import Json

__all__ = ["Limits", "limits_of", "old_sizes", "percent_or_number", "size_of_new"]


def percent_or_number(value: Any, of: int, *, round_up: bool) -> int:
    """An IntOrString: `3`, or `25%` of a number.

    Raises:
        ValueError: neither.
    """
    if isinstance(value, str) and value.endswith("%"):
        exact = int(value[:-1]) * of / 100
        return math.ceil(exact) if round_up else math.floor(exact)
    return int(value)


@dataclass(frozen=True, slots=True)
class Limits:
    """How far a rollout may go from the wanted number of pods.

    Attributes:
        surge: pods more than wanted, of all templates together.
        unavailable: available pods fewer than wanted.
    """

    surge: int
    unavailable: int


def limits_of(deployment: Json) -> Limits:
    """maxSurge is rounded up and maxUnavailable down; one of them must let the rollout move."""
    spec = deployment["spec"]
    wanted = int(spec.get("replicas", 1))
    strategy = spec.get("strategy") or {}
    if strategy.get("type") == "Recreate":
        return Limits(0, wanted)
    rolling = strategy.get("rollingUpdate") or {}
    surge = percent_or_number(rolling.get("maxSurge", "25%"), wanted, round_up=True)
    unavailable = percent_or_number(rolling.get("maxUnavailable", "25%"), wanted, round_up=False)
    if surge == 0 and unavailable == 0:
        unavailable = 1
    return Limits(surge, min(unavailable, wanted))


def size_of_new(wanted: int, limits: Limits, new: int, all_together: int) -> int:
    """How large the new set becomes: as large as wanted, as far as maxSurge lets it.

    Args:
        new: its size now.
        all_together: the sizes of all sets now, the new one included.
    """
    if new >= wanted:
        return wanted
    room = wanted + limits.surge - all_together
    return new if room <= 0 else min(wanted, new + room)


def old_sizes(
    wanted: int, limits: Limits, new: tuple[int, int], old: Sequence[tuple[int, int]]
) -> list[int]:
    """What the old sets shrink to, oldest first, so that enough pods stay available.

    Args:
        new: size and available pods of the new set.
        old: the same of each old set, oldest first.
    """
    sizes = [size for size, _ in old]
    least = wanted - limits.unavailable
    not_yet = new[0] - new[1]
    may_go = new[0] + sum(sizes) - least - not_yet
    if may_go <= 0:
        return sizes
    # Those that serve nobody go first: they can be taken without harm.
    may_go = _shrink(sizes, [size - available for size, available in old], may_go)
    available = new[1] + sum(min(size, ready) for size, (_, ready) in zip(sizes, old, strict=True))
    _shrink(sizes, list(sizes), min(may_go, available - least))
    return sizes


def _shrink(sizes: list[int], at_most: Sequence[int], total: int) -> int:
    """Take up to `at_most` from each, `total` in all; what may still be taken afterwards."""
    for position, most in enumerate(at_most):
        taken = max(0, min(most, sizes[position], total))
        sizes[position] -= taken
        total -= taken
    return total
