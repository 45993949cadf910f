"""Reads typed values out of Kubernetes JSON and collects what is wrong with it.

A `Reader` stands at one JSON object. Absent and null mean the default, as in Kubernetes. A value
of the wrong type is noted with its path and replaced by the default, so that parsing goes on and
finds the other faults too; `finish` then raises them together.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from .errors import InvalidObject, invalid
from .quantity import MAX_INT64, parse_nano

__all__ = ["EMPTY", "Raw", "Reader", "format_time", "nothing", "parse_time"]

#: a Kubernetes object, or a part of one, as JSON; never mutated by the scheduler
Raw = Mapping[str, Any]

#: the mapping that stands for "nothing there"
EMPTY: Mapping[str, Any] = MappingProxyType({})


def nothing() -> Mapping[str, Any]:
    """`EMPTY`, as a dataclass wants its defaults (Python 3.11 takes it for mutable)."""
    return EMPTY


_TIME = re.compile(
    r"\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}:\d{2}(\.\d{1,9})?([Zz]|[+-]\d{2}:\d{2})", re.ASCII
)


class Reader:
    """One JSON object, where it is, and the list that faults go to."""

    __slots__ = ("_parent", "_step", "faults", "raw")

    def __init__(
        self,
        raw: Any,
        faults: list[InvalidObject] | None = None,
        parent: Reader | None = None,
        step: str = "",
    ) -> None:
        self.faults: list[InvalidObject] = [] if faults is None else faults
        self._parent = parent
        self._step = step
        if type(raw) is not dict and not isinstance(raw, Mapping):  # the first is much cheaper
            self.faults.append(InvalidObject(self.path(), invalid(raw, "must be an object"), raw))
            raw = EMPTY
        self.raw: Raw = raw

    def path(self, key: str = "") -> str:
        """Where this object, or its field `key`, is: `spec.containers[0].name`."""
        # Built only when there is a fault: most objects have none.
        steps = [key] if key else []
        reader: Reader | None = self
        while reader is not None:
            if reader._step:
                steps.append(reader._step)
            reader = reader._parent
        return ".".join(reversed(steps))

    def fault(self, key: str, message: str, value: object = None) -> None:
        """Note that the field `key` is wrong."""
        self.faults.append(InvalidObject(self.path(key), message, value))

    def finish(self, subject: str) -> None:
        """Raises:
        InvalidObject: with every fault noted so far, said of `subject`.
        """
        if self.faults:
            raise InvalidObject.of(self.faults, subject)

    def has(self, key: str) -> bool:
        """Whether the field is there and not null."""
        return self.raw.get(key) is not None

    def text(self, key: str, default: str = "") -> str:
        found = self.raw.get(key)
        if type(found) is str:
            return found
        if found is not None:
            self.fault(key, invalid(found, "must be a string"), found)
        return default

    def integer(self, key: str, default: int = 0) -> int:
        found = self.raw.get(key)
        if found is None:
            return default
        if type(found) is float and found.is_integer():
            found = int(found)
        if type(found) is not int:
            self.fault(key, invalid(found, "must be an integer"), found)
            return default
        if abs(found) > MAX_INT64:
            self.fault(key, invalid(found, "must fit into 64 bits"), found)
            return default
        return found

    def optional_integer(self, key: str) -> int | None:
        return self.integer(key) if self.raw.get(key) is not None else None

    def boolean(self, key: str, default: bool = False) -> bool:
        found = self.raw.get(key)
        if found is None:
            return default
        if type(found) is not bool:
            self.fault(key, invalid(found, "must be true or false"), found)
            return default
        return found

    def child(self, key: str) -> Reader:
        """The object at `key`; an empty one if it is not there."""
        found = self.raw.get(key)
        return Reader(EMPTY if found is None else found, self.faults, self, key)

    def optional_child(self, key: str) -> Reader | None:
        found = self.raw.get(key)
        return None if found is None else Reader(found, self.faults, self, key)

    def items(self, key: str) -> Iterator[Reader]:
        """The objects of the list at `key`."""
        for index, found in enumerate(self._list(key)):
            yield Reader(found, self.faults, self, f"{key}[{index}]")

    def texts(self, key: str) -> tuple[str, ...]:
        """The list of strings at `key`."""
        found = self._list(key)
        for index, entry in enumerate(found):
            if type(entry) is not str:
                self.fault(f"{key}[{index}]", invalid(entry, "must be a string"), entry)
                return ()
        return tuple(found)

    def text_map(self, key: str) -> Mapping[str, str]:
        """The map of strings at `key` (labels, annotations, node selectors), itself, not a copy."""
        found = self.raw.get(key)
        if found is None:
            return EMPTY
        if type(found) is not dict and not isinstance(found, Mapping):
            self.fault(key, invalid(found, "must be an object"), found)
            return EMPTY
        for name, entry in found.items():
            if type(name) is not str or type(entry) is not str:
                self.fault(f"{key}[{name}]", invalid(entry, "must be a string"), entry)
                return EMPTY
        return found

    def quantities(self, key: str, *, negative: bool = False) -> Mapping[str, int]:
        """The resource list at `key` as {resource name: nano-units}."""
        found = self.raw.get(key)
        if found is None:
            return EMPTY
        if not isinstance(found, Mapping):
            self.fault(key, invalid(found, "must be an object"), found)
            return EMPTY
        return {name: self._nano(f"{key}[{name}]", q, negative) for name, q in found.items()}

    def quantity(self, key: str) -> int | None:
        """The quantity at `key` in nano-units; None if it is not there."""
        found = self.raw.get(key)
        return None if found is None else self._nano(key, found, False)

    def time(self, key: str) -> float | None:
        """The RFC 3339 time at `key` as seconds since 1970; None if it is not there."""
        found = self.text(key)
        if not found:
            return None
        try:
            return parse_time(found)
        except ValueError:
            self.fault(key, invalid(found, "must be a time such as 2026-01-31T12:00:00Z"), found)
            return None

    def _list(self, key: str) -> list[Any]:
        found = self.raw.get(key)
        if found is None:
            return []
        if not isinstance(found, list):
            self.fault(key, invalid(found, "must be a list"), found)
            return []
        return found

    def _nano(self, key: str, quantity: Any, negative: bool) -> int:
        try:
            nano = parse_nano(quantity)
        except InvalidObject as error:
            self.fault(key, error.message, quantity)
            return 0
        if nano < 0 and not negative:
            self.fault(key, invalid(quantity, "must be greater than or equal to 0"), quantity)
            return 0
        return nano


@lru_cache(maxsize=4096)  # many objects are made within a second, and keep one number for it
def parse_time(text: str) -> float:
    """Seconds since 1970 of an RFC 3339 time.

    Raises:
        ValueError: the text is no such time.
    """
    if _TIME.fullmatch(text) is None:
        raise ValueError(f"not an RFC 3339 time: {text!r}")
    return datetime.fromisoformat(text.upper()).timestamp()


def format_time(seconds: float, *, micro: bool = False) -> str:
    """Seconds since 1970 as Kubernetes writes them: whole seconds, or microseconds on request."""
    whole = math.floor(seconds)
    if not micro:
        return _format_second(whole)
    micros = round((seconds - whole) * 1e6)
    if micros == 1_000_000:
        whole, micros = whole + 1, 0
    return f"{_format_second(whole)[:-1]}.{micros:06d}Z"


@lru_cache(maxsize=4096)  # one text for all that happens within a second
def _format_second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None).isoformat() + "Z"
