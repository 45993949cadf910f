"""A small schema language for strict decoding of JSON into JSON.

A kind reads one value: it returns the value (or ``ABSENT``, where the field then does not exist)
and notes what is wrong. Null means absent, as in Kubernetes.
"""

from __future__ import annotations

import base64
import binascii
import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from scheduler_core.api.errors import invalid
from scheduler_core.config.durations import format_duration, parse_duration
from scheduler_core.config.errors import Faults

__all__ = [
    "ABSENT",
    "ANYTHING",
    "BOOLEAN",
    "BYTES",
    "DURATION",
    "INT32",
    "INT64",
    "NUMBER",
    "TEXT",
    "TEXTS",
    "Kind",
    "ListOf",
    "MapOf",
    "Sink",
    "Struct",
    "child",
]


class _Absent:
    """The type of ``ABSENT``."""


ABSENT: Final = _Absent()


@dataclass(slots=True)
class Sink:
    """Where faults and unknown fields go."""

    faults: Faults = field(default_factory=Faults)
    unknown: list[str] = field(default_factory=list)


class Kind(Protocol):
    def read(self, value: object, path: str, sink: Sink) -> object:
        """The decoded value, or ABSENT after a fault."""


def child(path: str, name: str) -> str:
    """``path.name``."""
    return f"{path}.{name}" if path else name


@dataclass(frozen=True, slots=True)
class _Scalar:
    wanted: str

    def _refuse(self, value: object, path: str, sink: Sink) -> object:
        sink.faults.add(path, invalid(value, f"must be {self.wanted}"))
        return ABSENT


class _Text(_Scalar):
    def read(self, value: object, path: str, sink: Sink) -> object:
        return value if isinstance(value, str) else self._refuse(value, path, sink)


class _Boolean(_Scalar):
    def read(self, value: object, path: str, sink: Sink) -> object:
        return value if isinstance(value, bool) else self._refuse(value, path, sink)


class _Number(_Scalar):
    def read(self, value: object, path: str, sink: Sink) -> object:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return self._refuse(value, path, sink)
        if value != value or value in (float("inf"), float("-inf")):
            return self._refuse(str(value), path, sink)
        return value


@dataclass(frozen=True, slots=True)
class _Integer(_Scalar):
    bits: int

    def read(self, value: object, path: str, sink: Sink) -> object:
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            return self._refuse(value, path, sink)
        if not -(2 ** (self.bits - 1)) <= value < 2 ** (self.bits - 1):
            sink.faults.add(path, invalid(value, f"must fit into {self.bits} bits"))
            return ABSENT
        return value


class _Duration(_Scalar):
    """Read as text, kept as Go prints it."""

    def read(self, value: object, path: str, sink: Sink) -> object:
        if not isinstance(value, str):
            return self._refuse(value, path, sink)
        try:
            return format_duration(parse_duration(value))
        except ValueError as error:
            sink.faults.add(path, invalid(value, str(error)))
            return ABSENT


class _Bytes(_Scalar):
    def read(self, value: object, path: str, sink: Sink) -> object:
        try:
            base64.b64decode(value if isinstance(value, str) else "?", validate=True)
        except (binascii.Error, ValueError):
            # Keys and certificates do not belong into a message.
            sink.faults.add(path, "Invalid value: must be base64")
            return ABSENT
        return value


class _Anything:
    def read(self, value: object, path: str, sink: Sink) -> object:
        return copy.deepcopy(value)


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list; a faulty scalar is left out."""

    item: Kind

    def read(self, value: object, path: str, sink: Sink) -> object:
        if not isinstance(value, list):
            sink.faults.add(path, invalid(value, "must be a list"))
            return ABSENT
        found = [
            self.item.read(entry, f"{path}[{index}]", sink) for index, entry in enumerate(value)
        ]
        return [entry for entry in found if entry is not ABSENT]


@dataclass(frozen=True, slots=True)
class MapOf:
    """A mapping with free keys."""

    item: Kind

    def read(self, value: object, path: str, sink: Sink) -> object:
        if not isinstance(value, Mapping):
            sink.faults.add(path, invalid(value, "must be an object"))
            return ABSENT
        found = {key: self.item.read(v, f"{path}[{key}]", sink) for key, v in value.items()}
        return {key: v for key, v in found.items() if v is not ABSENT}


@dataclass(frozen=True, slots=True)
class Struct:
    """A mapping with known fields; others are noted as unknown. What is no mapping is read as an
    empty one after the fault, so that the entries of a list keep their places."""

    fields: Mapping[str, Kind]

    def read(self, value: object, path: str, sink: Sink) -> object:
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            sink.faults.add(path, invalid(value, "must be an object"))
            return {}
        answer: dict[str, Any] = {}
        for key, entry in value.items():
            kind = self.fields.get(key)
            if kind is None:
                sink.unknown.append(child(path, key))
            elif entry is not None:
                found = kind.read(entry, child(path, key), sink)
                if found is not ABSENT:
                    answer[key] = found
        return answer


TEXT: Final = _Text("a string")
BOOLEAN: Final = _Boolean("true or false")
NUMBER: Final = _Number("a number")
INT32: Final = _Integer("an integer", 32)
INT64: Final = _Integer("an integer", 64)
DURATION: Final = _Duration('a duration such as "15s"')
BYTES: Final = _Bytes("base64")
ANYTHING: Final = _Anything()
TEXTS: Final = ListOf(TEXT)
