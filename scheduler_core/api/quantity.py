"""Kubernetes quantities, exactly.

A quantity is kept as a whole number of nano-units (1 = 10**9): Kubernetes itself rounds finer
text up to that, so sums of such integers are exact and cheap. As in Kubernetes, an amount beyond
2**63 - 1 is cut to it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache

from .errors import InvalidObject, invalid

__all__ = [
    "MAX_INT64",
    "NANO",
    "Quantity",
    "format_bytes",
    "format_cpu",
    "format_quantity",
    "format_resource",
    "milli_value",
    "nano_to_milli",
    "nano_to_value",
    "parse_nano",
    "parse_quantity",
    "value",
]

#: what may stand in a manifest: text, or a plain JSON number
Quantity = str | int | float

#: nano-units in one unit
NANO = 10**9
MAX_INT64 = 2**63 - 1

_NANO_IN_MILLI = 10**6
_LONGEST_TEXT = 128
# Beyond these exponents every non-zero amount is cut to the largest or rounded to the smallest;
# stopping there keeps "1e999999999" from building a number of a gigabyte.
_MAX_EXPONENT = 400

_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_TEXT = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>[0-9]*)(?:\.(?P<part>[0-9]*))?"
    r"(?P<suffix>[KMGTPE]i|[numkMGTPE]|[eE](?P<exponent>[+-]?[0-9]+))?",
    re.ASCII,
)


def parse_quantity(quantity: Quantity) -> Fraction:
    """The exact amount, in units (`"500m"` is 1/2, `"1Ki"` is 1024).

    Finer than 1n is rounded away from zero to 1n; more than 2**63 - 1 is cut to that.

    Raises:
        InvalidObject: the text is no quantity; the message quotes it.
    """
    return Fraction(parse_nano(quantity), NANO)


def milli_value(quantity: Quantity) -> int:
    """The amount in thousandths, rounded up (`"500u"` is 1): how cpu is counted."""
    return nano_to_milli(parse_nano(quantity))


def value(quantity: Quantity) -> int:
    """The amount in whole units, rounded up: how everything but cpu is counted."""
    return nano_to_value(parse_nano(quantity))


def nano_to_milli(nano: int) -> int:
    """Nano-units to thousandths, rounded up, cut to 64 bits."""
    return max(-MAX_INT64, min(-(-nano // _NANO_IN_MILLI), MAX_INT64))


def nano_to_value(nano: int) -> int:
    """Nano-units to whole units, rounded up, cut to 64 bits."""
    return max(-MAX_INT64, min(-(-nano // NANO), MAX_INT64))


def parse_nano(quantity: Quantity) -> int:
    """The amount in nano-units; see `parse_quantity`."""
    # bool is an int in Python; 1 == True would also share a cache entry.
    if isinstance(quantity, bool) or not isinstance(quantity, str | int | float):
        raise InvalidObject("", invalid(quantity, "a quantity must be text or a number"), quantity)
    if isinstance(quantity, float) and not math.isfinite(quantity):
        raise InvalidObject("", invalid(str(quantity), "a quantity must be finite"), quantity)
    return _parse_text(quantity if isinstance(quantity, str) else repr(quantity))


@lru_cache(maxsize=65536)
def _parse_text(text: str) -> int:
    if len(text) > _LONGEST_TEXT:
        raise _malformed(text, f"a quantity has at most {_LONGEST_TEXT} characters")
    match = _TEXT.fullmatch(text)
    if match is None or not (match["whole"] or match["part"]):
        raise _malformed(text, _why(text))
    part = match["part"] or ""
    digits = int((match["whole"] or "") + part)
    numerator, denominator = _scale(match["suffix"] or "", match["exponent"], len(part))
    nano = min(-(-digits * numerator // denominator), MAX_INT64 * NANO)
    return -nano if match["sign"] == "-" else nano


def _scale(suffix: str, exponent: str | None, decimals: int) -> tuple[int, int]:
    """What the digits are multiplied and divided by to give nano-units."""
    if suffix in _BINARY:
        return NANO << _BINARY[suffix], 10**decimals
    if exponent is None:
        power = _DECIMAL[suffix]
    else:
        power = max(-_MAX_EXPONENT, min(int(exponent), _MAX_EXPONENT))
    power += 9 - decimals
    return (10**power, 1) if power >= 0 else (1, 10**-power)


def _malformed(text: str, why: str) -> InvalidObject:
    return InvalidObject("", invalid(text, why), text)


def _why(text: str) -> str:
    if not text:
        return "a quantity must not be empty"
    if text != text.strip():
        return "a quantity must not begin or end with blanks"
    suffixes = ", ".join([*filter(None, _DECIMAL), *_BINARY])
    return (
        "not a quantity: a number such as 2, 0.5, 100m, 64Mi or 1e3 "
        f"with at most one suffix of {suffixes}"
    )


def format_quantity(nano: int, *, binary: bool = False) -> str:
    """A short quantity that parses back to `nano`: 1500000000 is `"1500m"`.

    With `binary`, whole multiples of 1024 get a binary suffix, as byte counts are written.
    """
    if binary and nano and nano % (NANO << 10) == 0:
        suffix, power = next(s for s in reversed(_BINARY.items()) if nano % (NANO << s[1]) == 0)
        return f"{nano // (NANO << power)}{suffix}"
    for suffix, power in (("", 9), ("m", 6), ("u", 3)):
        if nano % 10**power == 0:
            return f"{nano // 10**power}{suffix}"
    return f"{nano}n"


def format_cpu(milli: int) -> str:
    """Millicores for people: `"250m"`, `"1.5"`, `"4"`."""
    if abs(milli) < 1000:
        return f"{milli}m" if milli else "0"
    return _trim(f"{milli / 1000:.3f}")


_UNITS = ("", *_BINARY)


def format_bytes(count: int) -> str:
    """Bytes for people, in binary units to three digits: `"512Mi"`, `"1.5Gi"`, `"100"`."""
    amount = float(abs(count))
    sign = "-" if count < 0 else ""
    power = 0
    while amount >= 1024 and power < len(_UNITS) - 1:
        amount /= 1024
        power += 1
    unit = _UNITS[power]
    decimals = 0 if amount >= 100 or not unit else 1 if amount >= 10 else 2
    return f"{sign}{_trim(f'{amount:.{decimals}f}')}{unit}"


_BYTES: Iterable[str] = ("memory", "ephemeral-storage", "storage")


def format_resource(name: str, amount: int) -> str:
    """An amount in the scheduler's unit (cpu: millicores, else base units) for people."""
    if name == "cpu":
        return format_cpu(amount)
    if name in _BYTES or name.startswith("hugepages-"):
        return format_bytes(amount)
    return str(amount)


def _trim(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text
