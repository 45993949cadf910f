"""An OpenAPI v2 document as protobuf (gnostic's openapi.v2), which older kubectls insist on.

Only the fields that `openapi` writes are written here; the numbers are those of OpenAPIv2.proto.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import yaml

from scheduler_core.ports import Json

__all__ = ["encode_document"]

_METHODS: Final = {"get": 2, "put": 3, "post": 4, "delete": 5, "patch": 8}


def encode_document(document: Json) -> bytes:
    """The document as a message `openapi.v2.Document`."""
    paths = b"".join(
        _part(2, _named(name, _path(item))) for name, item in document["paths"].items()
    )
    definitions = b"".join(
        _part(1, _named(name, _schema(schema))) for name, schema in document["definitions"].items()
    )
    info = document["info"]
    return b"".join(
        (
            _text(1, document["swagger"]),
            _part(2, _text(1, info["title"]) + _text(2, info["version"])),
            _part(8, paths),
            _part(9, definitions),
        )
    )


# -- wire format ---------------------------------------------------------------------------------


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    found.append(number)
    return bytes(found)


def _part(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def _text(field: int, text: str) -> bytes:
    return _part(field, text.encode())


def _named(name: str, content: bytes) -> bytes:
    return _text(1, name) + _part(2, content)


def _extensions(field: int, obj: Json) -> Iterator[bytes]:
    for key, value in obj.items():
        if key.startswith("x-"):
            yield _part(field, _named(key, _text(2, yaml.safe_dump(value))))


# -- messages ------------------------------------------------------------------------------------


def _path(item: Json) -> bytes:
    return b"".join(_part(_METHODS[method], _operation(found)) for method, found in item.items())


def _operation(operation: Json) -> bytes:
    parts = [_text(5, operation["operationId"])]
    for parameter in operation["parameters"]:
        query = _text(2, "query") + _text(4, parameter["name"]) + _text(6, parameter["type"])
        # ParametersItem.parameter, Parameter.non_body_parameter, its query_parameter_sub_schema
        parts.append(_part(8, _part(1, _part(2, _part(3, query)))))
    answers = b"".join(
        _part(1, _named(code, _part(1, _response(answer))))
        for code, answer in operation["responses"].items()
    )
    parts.append(_part(9, answers))
    parts.extend(_extensions(13, operation))
    return b"".join(parts)


def _response(answer: Json) -> bytes:
    return _text(1, answer["description"]) + _part(2, _part(1, _schema(answer["schema"])))


def _schema(schema: Json) -> bytes:
    parts: list[bytes] = []
    if "$ref" in schema:
        parts.append(_text(1, schema["$ref"]))
    if "format" in schema:
        parts.append(_text(2, schema["format"]))
    parts.extend(_text(19, name) for name in schema.get("required", ()))
    if "additionalProperties" in schema:
        parts.append(_part(21, _part(1, _schema(schema["additionalProperties"]))))
    if "type" in schema:
        parts.append(_part(22, _text(1, schema["type"])))
    if "items" in schema:
        parts.append(_part(23, _part(1, _schema(schema["items"]))))
    properties: dict[str, Any] = schema.get("properties", {})
    if properties:
        named = (_part(1, _named(key, _schema(found))) for key, found in properties.items())
        parts.append(_part(25, b"".join(named)))
    parts.extend(_extensions(31, schema))
    return b"".join(parts)
