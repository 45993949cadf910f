"""Requests to an extender: field names in any case, unknown ones ignored, null means absent.

kube-scheduler 1.36 writes ``Pod``, ``Nodes``, ``NodeNames``, ... as Go's encoding/json writes
fields without tags.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from scheduler_core.api import InvalidObject, Pod

__all__ = [
    "BindingArgs",
    "ExtenderArgs",
    "InvalidArgs",
    "PreemptionArgs",
    "VictimArgs",
    "read_binding",
    "read_nodes",
    "read_preemption",
]

Json = Mapping[str, Any]


class InvalidArgs(ValueError):
    """The request cannot be read; the text names what and where."""


@dataclass(frozen=True, slots=True)
class ExtenderArgs:
    """Of ``filter`` and ``prioritize``. One of ``nodes`` (whole, as JSON) and ``node_names`` is
    None: which one it is decides the form of the answer."""

    pod: Pod
    nodes: Sequence[Json] | None
    node_names: Sequence[str] | None

    @property
    def names(self) -> list[str]:
        """Of the nodes that are asked about, in their order."""
        if self.node_names is not None:
            return list(self.node_names)
        return [node["metadata"]["name"] for node in self.nodes or ()]


@dataclass(frozen=True, slots=True)
class VictimArgs:
    """Pods that would have to go from one node, by uid."""

    uids: tuple[str, ...]
    pdb_violations: int


@dataclass(frozen=True, slots=True)
class PreemptionArgs:
    pod: Pod
    victims: Mapping[str, VictimArgs]


@dataclass(frozen=True, slots=True)
class BindingArgs:
    name: str
    namespace: str
    uid: str
    node: str


def read_nodes(document: object) -> ExtenderArgs:
    """ExtenderArgs.

    Raises:
        InvalidArgs: it is none.
    """
    fields = _fields(document, "the request")
    pod = _pod(fields.get("pod"))
    names, nodes = fields.get("nodenames"), fields.get("nodes")
    if names is not None:
        listed = [_text(n, f"NodeNames[{i}]") for i, n in enumerate(_list(names, "NodeNames"))]
        return ExtenderArgs(pod, None, listed)
    if nodes is None:
        raise InvalidArgs("neither Nodes nor NodeNames is there; one of them is needed")
    items = _list(_fields(nodes, "Nodes").get("items"), "Nodes.items")
    for index, item in enumerate(items):
        _named(item, f"Nodes.items[{index}]")
    return ExtenderArgs(pod, items, None)


def read_preemption(document: object) -> PreemptionArgs:
    """ExtenderPreemptionArgs; victims as whole pods or by uid.

    Raises:
        InvalidArgs: it is none.
    """
    fields = _fields(document, "the request")
    pod = _pod(fields.get("pod"))
    meta, whole = fields.get("nodenametometavictims"), fields.get("nodenametovictims")
    if meta is None and whole is None:
        raise InvalidArgs(
            "neither NodeNameToVictims nor NodeNameToMetaVictims is there; one of them is needed"
        )
    field = "NodeNameToMetaVictims" if meta is not None else "NodeNameToVictims"
    by_node = _mapping(meta if meta is not None else whole, field)
    victims = {
        node: _victims(entry, f"{field}[{node}]", meta is not None)
        for node, entry in by_node.items()
    }
    return PreemptionArgs(pod, victims)


def read_binding(document: object) -> BindingArgs:
    """ExtenderBindingArgs.

    Raises:
        InvalidArgs: it is none, or a field is empty.
    """
    fields = _fields(document, "the request")
    values = [
        _text(fields.get(name.lower()), name)
        for name in ("PodName", "PodNamespace", "PodUID", "Node")
    ]
    for name, value in zip(("PodName", "PodNamespace", "PodUID", "Node"), values, strict=True):
        if not value:
            raise InvalidArgs(f"{name} is missing")
    return BindingArgs(*values)


def _victims(entry: object, where: str, meta: bool) -> VictimArgs:
    fields = _fields(entry, where)
    uids = []
    for index, pod in enumerate(_list(fields.get("pods"), f"{where}.Pods")):
        at = f"{where}.Pods[{index}]"
        holder = pod if meta else _fields(pod, at).get("metadata")
        uid = _text(_fields(holder, at).get("uid"), f"{at}.UID")
        if not uid:
            raise InvalidArgs(f"{at} has no uid")
        uids.append(uid)
    count = fields.get("numpdbviolations")
    if count is None:
        count = 0
    if isinstance(count, bool) or not isinstance(count, int):
        _wrong(count, f"{where}.NumPDBViolations", "a whole number")
    return VictimArgs(tuple(uids), count)


def _pod(value: object) -> Pod:
    if value is None:
        raise InvalidArgs("Pod is missing")
    try:
        return Pod.from_dict(_mapping(value, "Pod"))
    except InvalidObject as error:
        raise InvalidArgs(f"Pod: {error}") from None


def _named(value: object, where: str) -> None:
    """A node has to have a name; the rest is read where it is needed."""
    meta = _mapping(value, where).get("metadata")
    name = _mapping(meta, f"{where}.metadata").get("name")
    if not isinstance(name, str) or not name:
        raise InvalidArgs(f"{where}.metadata.name is missing")


def _fields(value: object, what: str) -> dict[str, Any]:
    return {key.lower(): entry for key, entry in _mapping(value, what).items()}


def _mapping(value: object, what: str) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        _wrong(value, what, "an object")
    return value


def _list(value: object, what: str) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        _wrong(value, what, "a list")
    return value


def _text(value: object, what: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        _wrong(value, what, "a string")
    return value


def _wrong(value: object, what: str, wanted: str) -> NoReturn:
    found = "true or false" if isinstance(value, bool) else _KINDS.get(type(value), "a number")
    raise InvalidArgs(f"{what} is {found}, not {wanted}")


_KINDS: dict[type, str] = {dict: "an object", list: "a list", str: "a string"}
