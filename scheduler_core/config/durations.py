"""Durations as Go writes them (``15s``, ``1m30s``, ``500ms``), in whole nanoseconds."""

from __future__ import annotations

import re

__all__ = ["format_duration", "parse_duration", "seconds"]

NANOSECONDS = 10**9
_MAX = 2**63 - 1
_UNITS = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,  # micro sign
    "μs": 10**3,  # Greek mu
    "ms": 10**6,
    "s": NANOSECONDS,
    "m": 60 * NANOSECONDS,
    "h": 3600 * NANOSECONDS,
}
_PART = re.compile(
    r"(?P<whole>[0-9]*)(?:\.(?P<fraction>[0-9]*))?(?P<unit>ns|us|µs|μs|ms|s|m|h)", re.ASCII
)
_LONGEST = 64


def parse_duration(text: str) -> int:
    """Nanoseconds of a Go duration; a fraction of a nanosecond is cut off.

    Raises:
        ValueError: the text is no duration, or longer than 64 bits of nanoseconds.
    """
    if len(text) > _LONGEST:
        raise ValueError("is too long for a duration")
    sign = -1 if text.startswith("-") else 1
    rest = text[1:] if text[:1] in ("-", "+") else text
    if rest == "0":
        return 0
    total, position = 0, 0
    while position < len(rest):
        part = _PART.match(rest, position)
        if part is None or not (part["whole"] or part["fraction"]):
            raise ValueError('must be a duration such as "15s" or "1m30s"')
        unit = _UNITS[part["unit"]]
        fraction = part["fraction"] or ""
        total += int(part["whole"] or "0") * unit
        total += int(fraction or "0") * unit // 10 ** len(fraction)
        position = part.end()
    if position == 0:
        raise ValueError('must be a duration such as "15s" or "1m30s"')
    if total > _MAX:
        raise ValueError("is too long for a duration")
    return sign * total


def format_duration(nanoseconds: int) -> str:
    """The duration as Go prints it: ``10m0s``, ``1.5s``, ``20ms``, ``0s``."""
    sign = "-" if nanoseconds < 0 else ""
    rest = abs(nanoseconds)
    if rest == 0:
        return "0s"
    for unit, size in (("ns", 10**3), ("µs", 10**6), ("ms", NANOSECONDS)):
        if rest < size:
            return f"{sign}{_decimal(rest, _UNITS[unit])}{unit}"
    minutes, below = divmod(rest, 60 * NANOSECONDS)
    hours, minutes = divmod(minutes, 60)
    text = f"{_decimal(below, NANOSECONDS)}s"
    if hours or minutes:
        text = f"{minutes}m{text}"
    if hours:
        text = f"{hours}h{text}"
    return sign + text


def seconds(text: str) -> float:
    """Seconds of a Go duration.

    Raises:
        ValueError: the text is no duration.
    """
    return parse_duration(text) / NANOSECONDS


def _decimal(amount: int, unit: int) -> str:
    whole, fraction = divmod(amount, unit)
    digits = str(fraction).rjust(len(str(unit)) - 1, "0").rstrip("0")
    return f"{whole}.{digits}" if digits else str(whole)
