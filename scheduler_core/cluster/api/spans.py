"""Spans of time as kubectl shows them (apimachinery, duration.HumanDuration)."""

from __future__ import annotations

__all__ = ["human", "since"]

_DAY = 24


def since(then: float, now: float) -> str:
    """How long ago `then` is."""
    return human(now - then)


def human(seconds: float) -> str:
    """`5s`, `4m10s`, `12m`, `5h30m`, `3d4h`, `90d`, `2y30d`: two units at most."""
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    if whole < 0:
        return "0s"
    if whole < 120:
        return f"{whole}s"
    minutes = whole // 60
    if minutes < 10:
        return _two(minutes, "m", whole % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    hours = minutes // 60
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 2 * _DAY:
        return f"{hours}h"
    return _days(hours)


def _days(hours: int) -> str:
    days = hours // _DAY
    if days < 8:
        return _two(days, "d", hours % _DAY, "h")
    if days < 2 * 365:
        return f"{days}d"
    if days < 8 * 365:
        return _two(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def _two(first: int, unit: str, second: int, smaller: str) -> str:
    return f"{first}{unit}{second}{smaller}" if second else f"{first}{unit}"
