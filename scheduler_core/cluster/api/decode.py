"""A body becomes an object, as the server's decoder makes it.

What is not said is left out or gets its zero value, quantities and times are written the server's
way, and fields that the kind does not have are dropped and told.
"""

from __future__ import annotations

import re
from typing import Any, Final

from scheduler_core.api.reader import format_time, parse_time
from scheduler_core.ports import Json

from .quantities import BAD_QUANTITY, canonical
from .schema import Field, ListType, MapType, Scalar, Struct, Type

__all__ = ["Decoder", "Undecodable", "decode", "json_name"]

_KIND_FIELDS: Final = ("apiVersion", "kind", "metadata")
_JSON_NAMES: Final[dict[type, str]] = {
    str: "string", bool: "bool", int: "number", float: "number", list: "array", dict: "object",
}  # fmt: skip
_FITTING: Final[dict[str, tuple[type, ...]]] = {
    "boolean": (bool,), "number": (int, float), "int-or-string": (int, str),
}  # fmt: skip
_SECONDS: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")
_MICRO: Final = re.compile(r":\d\d\.\d{6}(?!\d)")
_DEEPEST: Final = 200


class Undecodable(ValueError):
    """A value of the wrong type; the message is the decoder's."""


def decode(kind: Struct, body: Json) -> tuple[Json, list[str]]:
    """The object that a body describes, and the paths of fields that were dropped.

    Raises:
        Undecodable: something in it has the wrong type.
    """
    decoder = Decoder()
    return decoder.object(kind, body), decoder.unknown


class Decoder:
    """Decodes one body. `unknown`: paths such as `spec.containers[0].imagee`, in order."""

    def __init__(self, *, fill: bool = True) -> None:
        """`fill`: give its zero value to what is always written and was not said."""
        self._fill = fill
        self.unknown: list[str] = []
        # Where we are: names and list positions. Made into text when there is something to say.
        self._path: list[str | int] = []

    def object(self, kind: Struct, body: Json) -> Json:
        """An object of a kind: identity first, then metadata, then the rest."""
        found = self._struct(kind, body)
        metadata = found.get("metadata")
        head: Json = {key: found[key] for key in _KIND_FIELDS[:2] if key in found}
        head["metadata"] = metadata if isinstance(metadata, dict) else {}
        head.update((key, value) for key, value in found.items() if key not in _KIND_FIELDS)
        return head

    def value(self, of: Type, value: Any, go_struct: str = "") -> Any:
        """A value of any type; null gives the type's zero value."""
        if type(of) is Scalar:
            return self._scalar(of, value, go_struct)
        if type(of) is Struct:
            return self._struct(of, value, go_struct)
        if type(of) is ListType:
            return self._list(of, value, go_struct)
        if type(of) is MapType:
            return self._map(of, value, go_struct)
        return value

    def _struct(self, of: Struct, value: Any, go_struct: str = "") -> Json:
        if type(value) is not dict:
            if value is None:
                value = {}
            elif of.lenient:
                return value  # type: ignore[no-any-return]
            else:
                raise self._mismatch(value, go_struct or of.name, go_type(of))
        if len(self._path) > _DEEPEST:
            raise Undecodable("the object is nested too deeply")
        fields = of.fields
        found: Json = {}
        for key, part in value.items():
            field = fields.get(key)
            if field is None:
                self._not_known(of, key, part, found)
            elif part is not None or field.nullable:
                made = None if part is None else self._member(of, field, part)
                if made or field.keeps_zero or not self._fill:
                    found[key] = made
        if self._fill:
            found.update((each.name, each.empty) for each in of.always if each.name not in found)
        return found

    def _member(self, of: Struct, field: Field, part: Any) -> Any:
        if of.lenient and not _fits(field.type, part):
            return part
        self._path.append(field.name)
        made = self.value(field.type, part, of.name)
        self._path.pop()
        return made

    def _not_known(self, of: Struct, key: str, part: Any, found: Json) -> None:
        if of.open:
            found[key] = part
            return
        self._path.append(key)
        self.unknown.append(self._where())
        self._path.pop()

    def _list(self, of: ListType, value: Any, go_struct: str) -> list[Any]:
        if type(value) is not list:
            raise self._mismatch(value, go_struct, go_type(of))
        made = []
        for index, item in enumerate(value):
            self._path.append(index)
            made.append(self.value(of.item, item, go_struct))
            self._path.pop()
        return made

    def _map(self, of: MapType, value: Any, go_struct: str) -> Json:
        if type(value) is not dict:
            raise self._mismatch(value, go_struct, go_type(of))
        made = {}
        for key, part in value.items():
            if type(of.value) is Scalar:
                # Keys are no part of a path of fields, in what the decoder says.
                made[key] = self._scalar(of.value, part, go_struct)
                continue
            self._path.append(key)
            made[key] = self.value(of.value, part, go_struct)
            self._path.pop()
        return made

    def _scalar(self, of: Scalar, value: Any, go_struct: str) -> Any:
        name = of.name
        if name == "string" and (type(value) is str or value is None):
            return value or ""
        if name == "quantity":
            return _quantity(value)
        if name == "integer" and type(value) is int:
            return self._integer(of, value, go_struct)
        if name in ("time", "microtime"):
            return None if value is None else _time(value, micro=name == "microtime")
        if type(value) in _FITTING.get(name, ()):
            return value
        raise self._mismatch(value, go_struct, of.go)

    def _integer(self, of: Scalar, value: int, go_struct: str) -> int:
        bits = 63 if of.go == "int64" else 31
        if not -(1 << bits) <= value < 1 << bits:
            shown = f"number {value}"
            raise Undecodable(self._cannot(shown, go_struct, of.go))
        return value

    def _mismatch(self, value: Any, go_struct: str, wanted: str) -> Undecodable:
        return Undecodable(self._cannot(_JSON_NAMES.get(type(value), "null"), go_struct, wanted))

    def _cannot(self, shown: str, go_struct: str, wanted: str) -> str:
        names = ".".join(step for step in self._path if isinstance(step, str))
        if not names:
            return f"json: cannot unmarshal {shown} into Go value of type {wanted}"
        return (
            f"json: cannot unmarshal {shown} into Go struct field {go_struct}.{names} "
            f"of type {wanted}"
        )

    def _where(self) -> str:
        text = ""
        for step in self._path:
            text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
        return text


def _fits(of: Type, value: Any) -> bool:
    if isinstance(of, ListType):
        return type(value) is list
    return type(value) is dict or not isinstance(of, Struct | MapType)


def json_name(value: Any) -> str:
    """What Go's decoder calls a value: `object`, `number`."""
    return _JSON_NAMES.get(type(value), "null")


def _quantity(value: Any) -> str:
    try:
        return canonical(value)
    except ValueError as error:
        raise Undecodable(BAD_QUANTITY) from error


def _time(value: Any, *, micro: bool) -> str:
    if type(value) is not str:
        raise Undecodable("Time.UnmarshalJSON: input is not a JSON string")
    if micro and not _MICRO.search(value) and _SECONDS.match(value):
        rest = value[19:]
        raise Undecodable(
            f'parsing time "{value}" as "2006-01-02T15:04:05.000000Z07:00": cannot parse '
            f'"{rest}" as ".000000"'
        )
    try:
        return format_time(parse_time(value), micro=micro)
    except ValueError as error:
        layout = "2006-01-02T15:04:05.000000Z07:00" if micro else "2006-01-02T15:04:05Z07:00"
        shown = f'parsing time "{value}" as "{layout}": cannot parse "{value}" as "2006"'
        raise Undecodable(shown) from error


def go_type(of: Type) -> str:
    """The type as the server's errors name it."""
    if isinstance(of, Struct):
        return f"{of.package.rsplit('.', 1)[-1]}.{of.name}"
    if isinstance(of, ListType):
        return f"[]{go_type(of.item)}"
    if isinstance(of, MapType):
        return f"map[string]{go_type(of.value)}"
    return of.go if isinstance(of, Scalar) else "interface {}"
