"""Reads bodies in Kubernetes' protobuf encoding, which stock Go clients send for built-in kinds.

A body is `k8s\\0` and a `runtime.Unknown`: which kind it is, and the object. Answers are written in
JSON, which every client takes that can also send JSON.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any, Final

from scheduler_core.api.reader import format_time
from scheduler_core.ports import Json

from .protobuf_numbers import NUMBERS
from .schema import AnyType, ListType, MapType, Scalar, Struct, Type

__all__ = ["PROTOBUF", "BadProtobuf", "decode_envelope", "decode_message"]

PROTOBUF: Final = "application/vnd.kubernetes.protobuf"

_MAGIC: Final = b"k8s\x00"
_VARINT: Final = 0
_BYTES: Final = 2
_FIXED: Final = {1: 8, 5: 4}


class BadProtobuf(ValueError):
    """The bytes are no such message, or hold what is not read here."""


def decode_envelope(body: bytes) -> tuple[str, str, bytes]:
    """apiVersion, kind and the object's own bytes.

    Raises:
        BadProtobuf: it is something else.
    """
    if body[: len(_MAGIC)] != _MAGIC:
        raise BadProtobuf("the bytes do not begin as a Kubernetes message does")
    version = kind = ""
    raw = b""
    for number, value in _fields(body[len(_MAGIC) :]):
        if number == 1 and isinstance(value, bytes):
            for inner, text in _fields(value):
                if inner == 1:
                    version = _text(text)
                elif inner == 2:
                    kind = _text(text)
        elif number == 2 and isinstance(value, bytes):
            raw = value
    return version, kind, raw


def decode_message(of: Struct, raw: bytes) -> Json:
    """An object as JSON would have it.

    Raises:
        BadProtobuf: it holds a field that is not read.
    """
    found: Json = {}
    _read_into(found, of, NUMBERS.get(of.name, {}), raw)
    return found


def _read_into(found: Json, of: Struct, numbers: Any, raw: bytes) -> None:
    for number, value in _fields(raw):
        name = numbers.get(number)
        if name is None:
            raise BadProtobuf(
                f"field {number} of {of.name} is not read from protobuf; send it as JSON"
            )
        if name.startswith("+"):
            _read_into(found, of, NUMBERS[name[1:]], _bytes(value))
            continue
        _put(found, name, of.fields[name].type, value)


def _put(found: Json, name: str, of: Type, value: int | bytes) -> None:
    if isinstance(of, ListType):
        found.setdefault(name, []).append(_value(of.item, value))
    elif isinstance(of, MapType):
        key, part = "", None
        for number, entry in _fields(_bytes(value)):
            if number == 1:
                key = _text(entry)
            else:
                part = _value(of.value, entry)
        # What is left out of an entry is the zero of its type.
        found.setdefault(name, {})[key] = _value(of.value, b"") if part is None else part
    else:
        found[name] = _value(of, value)


def _value(of: Type, value: int | bytes) -> Any:
    if isinstance(of, Struct):
        return decode_message(of, _bytes(value))
    if isinstance(of, AnyType):
        raw = next((v for n, v in _fields(_bytes(value)) if n == 1), b"{}")
        return json.loads(_bytes(raw))
    if isinstance(of, Scalar):
        return _scalar(of, value)
    raise BadProtobuf("a list in a list is not read")


def _scalar(of: Scalar, value: int | bytes) -> Any:
    if of.name == "boolean":
        return bool(value)
    if of.name == "integer":
        return _signed(value)
    if of.name == "string":
        return _text(value)
    parts = dict(_fields(_bytes(value)))
    if of.name == "quantity":
        return _text(parts.get(1, b"0"))
    if of.name in ("time", "microtime"):
        seconds = _signed(parts.get(1, 0)) + _signed(parts.get(2, 0)) / 1e9
        return format_time(seconds, micro=of.name == "microtime") if parts else None
    return _text(parts.get(3, b"")) if parts.get(1) else _signed(parts.get(2, 0))


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, bytes):
        return value
    raise BadProtobuf("a number stands where a message is expected")


def _text(value: int | bytes) -> str:
    raw = _bytes(value)
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return base64.b64encode(raw).decode()


def _signed(value: int | bytes) -> int:
    if not isinstance(value, int):
        raise BadProtobuf("bytes stand where a number is expected")
    return value - (1 << 64) if value >= 1 << 63 else value


def _fields(raw: bytes) -> Iterator[tuple[int, int | bytes]]:
    """(number, value) of each field."""
    at = 0
    while at < len(raw):
        tag, at = _varint(raw, at)
        number, kind = tag >> 3, tag & 7
        if kind == _VARINT:
            value, at = _varint(raw, at)
            yield number, value
            continue
        if kind == _BYTES:
            size, at = _varint(raw, at)
        elif kind in _FIXED:
            size = _FIXED[kind]
        else:
            raise BadProtobuf(f"wire type {kind} is not known")
        if at + size > len(raw):
            raise BadProtobuf("unexpected end of the message")
        yield number, raw[at : at + size]
        at += size


def _varint(raw: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        if at >= len(raw) or shift > 63:
            raise BadProtobuf("unexpected end of the message")
        byte = raw[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return number, at
        shift += 7
