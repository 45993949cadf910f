"""The fields of the kinds that are served, and how each is written, merged and owned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType
from typing import Any, Final, Literal

from . import schema_facts as facts
from .schema_digest import PACKAGES, TYPES

__all__ = ["ANY", "Field", "ListType", "MapType", "Scalar", "Struct", "Type", "struct"]

ScalarName = Literal[
    "string", "integer", "number", "boolean", "time", "microtime", "quantity", "int-or-string"
]


@dataclass(frozen=True, slots=True)
class Scalar:
    """A value without parts. `go`: its type as the server's errors name it."""

    name: ScalarName
    go: str


@dataclass(frozen=True, slots=True)
class AnyType:
    """JSON that is taken as it is (`fieldsV1`, a schema in a CustomResourceDefinition)."""

    atomic: bool = True


@dataclass(frozen=True, slots=True)
class ListType:
    """A list.

    Attributes:
        keys: entries are known by these fields (`x-kubernetes-list-type: map`).
        is_set: entries are values, each once.
        merge_key: how a strategic merge patch knows entries; "" where it replaces the list.
        merges_values: a strategic merge patch adds to it (finalizers).
    """

    item: Type
    keys: tuple[str, ...] = ()
    is_set: bool = False
    merge_key: str = ""
    merges_values: bool = False

    @property
    def atomic(self) -> bool:
        return not self.keys and not self.is_set


@dataclass(frozen=True, slots=True)
class MapType:
    """A map from text to one type."""

    value: Type
    atomic: bool = False


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a struct.

    Attributes:
        always: it is written even if it was not said (as `empty` says).
        keeps_zero: "", 0 and false are told apart from "not said".
        retains_keys: a strategic merge patch may say which of its fields stay.
        nullable: null is a value of it.
        empty: what is written for it when nothing was said; `is_null`: that is null.
    """

    name: str
    type: Type
    required: bool
    always: bool
    keeps_zero: bool
    retains_keys: bool = False
    is_null: bool = False
    nullable: bool = False

    @property
    def empty(self) -> Any:
        return None if self.is_null else zero(self.type)


@dataclass(eq=False, slots=True)
class Struct:
    """An object with named fields.

    Attributes:
        open: fields that are not named are kept too.
        lenient: values of a wrong type are kept, for a schema to judge them.
    """

    name: str
    package: str
    fields: Mapping[str, Field] = field(default_factory=dict)
    atomic: bool = False
    open: bool = False
    lenient: bool = False
    always: tuple[Field, ...] = ()

    def __repr__(self) -> str:
        return f"Struct({self.name})"


Type = Scalar | AnyType | ListType | MapType | Struct

ANY: Final = AnyType()

_SCALARS: Final[Mapping[str, Scalar]] = MappingProxyType(
    {
        "string": Scalar("string", "string"),
        "integer": Scalar("integer", "int32"),
        "number": Scalar("number", "float64"),
        "boolean": Scalar("boolean", "bool"),
        "time": Scalar("time", "v1.Time"),
        "int-or-string": Scalar("int-or-string", "intstr.IntOrString"),
    }
)
_INT64: Final = Scalar("integer", "int64")
_MICRO_TIME: Final = Scalar("microtime", "v1.MicroTime")
_QUANTITY: Final = Scalar("quantity", "resource.Quantity")

_NATIVE_PACKAGE: Final = "io.k8s.api.scheduling.v1alpha2"


def zero(of: Type) -> Any:
    """What the server writes where nothing was said."""
    if isinstance(of, Struct):
        return {each.name: each.empty for each in of.always}
    if not isinstance(of, Scalar):
        return None
    zeros: Mapping[str, Any] = {"string": "", "integer": 0, "number": 0, "boolean": False}
    if of.name == "int-or-string":
        return 0
    if of.name == "quantity":
        return "0"
    return zeros.get(of.name)


@cache
def struct(name: str) -> Struct:
    """The struct of this name (`Pod`, `ContainerPort`).

    Raises:
        KeyError: there is none.
    """
    return _STRUCTS[name]


def _load() -> dict[str, Struct]:
    types: dict[str, Mapping[str, str]] = {**TYPES, **facts.OWN_TYPES}
    found = {
        name: Struct(name, PACKAGES.get(name, _NATIVE_PACKAGE), atomic=name in facts.ATOMIC_TYPES)
        for name in types
    }
    for name, fields in types.items():
        made = {
            key: _field(found, name, key, spelled)
            for key, spelled in fields.items()
            if f"{name}.{key}" not in facts.NEWER
        }
        found[name].fields = MappingProxyType(made)
        found[name].always = tuple(each for each in made.values() if each.always)
    return found


def _field(found: Mapping[str, Struct], owner: str, key: str, spelled: str) -> Field:
    name = f"{owner}.{key}"
    required = spelled.endswith("!")
    of = _type(found, name, key, spelled.rstrip("!"))
    always = required or name in facts.ALWAYS or name in facts.NULLS
    if isinstance(of, Scalar) and of.name in ("integer", "boolean", "number", "int-or-string"):
        keeps_zero = name not in facts.ZERO_OMITTED
    else:
        # An empty struct behind a pointer says something, an empty list or map does not.
        keeps_zero = name in facts.TEXT_POINTERS or isinstance(of, Struct | AnyType)
    keeps_zero = keeps_zero or always
    retains = name in facts.RETAIN_KEYS
    return Field(key, of, required, always, keeps_zero, retains, name in facts.NULLS)


def _type(found: Mapping[str, Struct], name: str, key: str, spelled: str) -> Type:
    if spelled.startswith("[]"):
        item = _type(found, f"{name}[]", key, spelled[2:])
        return ListType(
            item,
            facts.LIST_KEYS.get(name, ()),
            name in facts.SETS,
            facts.MERGE_KEYS.get(name, ""),
            name in facts.PRIMITIVE_MERGES,
        )
    if spelled.startswith("{}"):
        if spelled == "{}any" and name in facts.ATOMIC_MAPS:
            return ANY
        inner = _QUANTITY if name in facts.QUANTITY_MAPS else None
        value = inner or _type(found, f"{name}{{}}", key, spelled[2:])
        return MapType(value, name in facts.ATOMIC_MAPS)
    if name in facts.QUANTITIES:
        return _QUANTITY
    if name in facts.MICRO_TIMES:
        return _MICRO_TIME
    if spelled == "integer" and key in facts.INT64:
        return _INT64
    return _SCALARS.get(spelled) or (ANY if spelled == "any" else found[spelled])


_STRUCTS: Final = _load()
