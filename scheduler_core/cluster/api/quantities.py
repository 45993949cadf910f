"""Quantities as the server writes them again: `0.5` is `500m`, `1024Mi` is `1Gi`.

Source: apimachinery's resource.Quantity, CanonicalizeBytes.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from scheduler_core.api.quantity import NANO, parse_nano

__all__ = ["BAD_QUANTITY", "canonical"]

BAD_QUANTITY: Final = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)

_BINARY: Final = re.compile(r"i$")
_EXPONENT: Final = re.compile(r"[eE][+-]?[0-9]+$")
_DECIMALS: Final = (
    (27, "E"), (24, "P"), (21, "T"), (18, "G"), (15, "M"), (12, "k"), (9, ""), (6, "m"), (3, "u"),
)  # fmt: skip
_BINARIES: Final = ((60, "Ei"), (50, "Pi"), (40, "Ti"), (30, "Gi"), (20, "Mi"), (10, "Ki"))


def canonical(quantity: str | int | float) -> str:
    """The shortest way to write an amount with the kind of suffix that it came with.

    Raises:
        ValueError: it is no quantity.
    """
    if type(quantity) not in (str, int, float):
        raise ValueError(BAD_QUANTITY)
    return _canonical(quantity if isinstance(quantity, str) else repr(quantity))


@lru_cache(maxsize=16384)
def _canonical(text: str) -> str:
    nano = parse_nano(text)
    if _BINARY.search(text) and abs(nano) >= 1024 * NANO:
        return _binary(nano)
    if _EXPONENT.search(text):
        return _with_exponent(nano)
    return _decimal(nano)


def _decimal(nano: int) -> str:
    if nano == 0:
        return "0"
    for power, suffix in _DECIMALS:
        if nano % 10**power == 0:
            return f"{nano // 10**power}{suffix}"
    return f"{nano}n"


def _with_exponent(nano: int) -> str:
    if nano == 0:
        return "0"
    power, number = -9, nano
    while number % 1000 == 0:
        number //= 1000
        power += 3
    return f"{number}e{power}" if power else str(number)


def _binary(nano: int) -> str:
    units = -(-nano // NANO)
    for power, suffix in _BINARIES:
        if units % (1 << power) == 0:
            return f"{units >> power}{suffix}"
    return str(units)
