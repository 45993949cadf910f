"""JSON of the extender API, version 1, as kube-scheduler 1.36 writes and reads it.

Requests: field names are capitalised, nothing is left out, what is absent is null; pods and nodes
inside are ordinary Kubernetes JSON without kind and apiVersion. Replies: field names in any case,
unknown ones ignored, null means absent.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeVar

from scheduler_core.api import Node, Pod
from scheduler_core.extender.errors import ExtenderError, cut
from scheduler_core.framework.types import Candidate

__all__ = [
    "FilterReply",
    "NodeTexts",
    "VictimsReply",
    "bind_request",
    "nodes_request",
    "parse",
    "preempt_request",
    "read_bind",
    "read_filter",
    "read_preempt",
    "read_prioritize",
]

V = TypeVar("V")


# -- requests --------------------------------------------------------------------------------------


class NodeTexts:
    """The JSON of nodes, kept as long as a node stays the same object: most do from one pod to the
    next, and thousands of them are much to write. Not for several threads."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Node, str]] = {}

    def join(self, nodes: Sequence[Node]) -> str:
        """The nodes as the items of a JSON list."""
        if len(self._known) > 2 * len(nodes) + 64:  # most of them have left, or did not fit
            self._known.clear()
        return ",".join(map(self._text, nodes))

    def _text(self, node: Node) -> str:
        known = self._known.get(node.name)
        if known is None or known[0] is not node:
            known = self._known[node.name] = (node, _object(node.raw))
        return known[1]


def nodes_request(pod: Pod, names: Sequence[str] | None, nodes: str | None) -> bytes:
    """Body of ``filter`` and ``prioritize``: names for an extender that caches nodes, else the
    whole nodes, as ``NodeTexts.join`` gives them."""
    node_list = "null" if nodes is None else f'{{"metadata":{{}},"items":[{nodes}]}}'
    return (f'{{"Pod":{_object(pod.raw)},"Nodes":{node_list},"NodeNames":{_text(names)}}}').encode()


def preempt_request(pod: Pod, candidates: Mapping[str, Candidate], meta: bool) -> bytes:
    """Body of ``preempt``. ``meta``: victims by uid, for an extender that caches nodes."""

    def victims(write: Callable[[Pod], str]) -> str:
        entries = (
            f'{_text(name)}:{{"Pods":[{",".join(map(write, c.victims))}],'
            f'"NumPDBViolations":{c.pdb_violations}}}'
            for name, c in candidates.items()
        )
        return f"{{{','.join(entries)}}}"

    whole = "null" if meta else victims(lambda victim: _object(victim.raw))
    brief = victims(lambda victim: _text({"UID": victim.uid})) if meta else "null"
    return (
        f'{{"Pod":{_object(pod.raw)},"NodeNameToVictims":{whole},"NodeNameToMetaVictims":{brief}}}'
    ).encode()


def bind_request(pod: Pod, node: str) -> bytes:
    """Body of ``bind``."""
    args = {"PodName": pod.name, "PodNamespace": pod.namespace, "PodUID": pod.uid, "Node": node}
    return _text(args).encode()


def _object(raw: Mapping[str, Any]) -> str:
    return _text({k: v for k, v in raw.items() if k not in ("kind", "apiVersion")})


def _text(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


# -- replies ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FilterReply:
    """``node_names`` and ``nodes`` (the names in it) are None where the field is absent."""

    node_names: tuple[str, ...] | None = None
    nodes: tuple[str, ...] | None = None
    failed: Mapping[str, str] = field(default_factory=dict)
    unresolvable: Mapping[str, str] = field(default_factory=dict)
    error: str = ""


@dataclass(frozen=True, slots=True)
class VictimsReply:
    """Victims on one node, by uid."""

    uids: tuple[str, ...]
    pdb_violations: int


def parse(body: bytes) -> object:
    """The first JSON value of a body; what follows it is ignored, as in the reference.

    Raises:
        ExtenderError: it is none.
    """
    text = body.decode("utf-8", errors="replace").lstrip(" \t\r\n")
    try:
        return json.JSONDecoder(parse_constant=_refuse).raw_decode(text)[0]
    except RecursionError:
        raise ExtenderError("the answer is not valid JSON: it is nested too deeply") from None
    except ValueError as exc:
        raise ExtenderError(f"the answer is not valid JSON: {exc}") from None


def _refuse(name: str) -> object:
    raise ValueError(f"{name} is no number")


def read_filter(reply: object) -> FilterReply:
    """Raises:
    ExtenderError: a field has the wrong type.
    """
    fields = _fields(reply, "the answer")
    return FilterReply(
        node_names=_optional(fields.get("nodenames"), lambda v: _texts(v, "NodeNames")),
        nodes=_optional(fields.get("nodes"), _node_names),
        failed=_reasons(fields.get("failednodes"), "FailedNodes"),
        unresolvable=_reasons(
            fields.get("failedandunresolvablenodes"), "FailedAndUnresolvableNodes"
        ),
        error=_string(fields.get("error"), "Error"),
    )


def read_prioritize(reply: object) -> list[tuple[str, int]]:
    """(host, score) of every entry.

    Raises:
        ExtenderError: as ``read_filter``.
    """
    answer = []
    for entry in _list(reply, "the answer"):
        fields = _fields(entry, "an entry")
        answer.append((_string(fields.get("host"), "Host"), _integer(fields.get("score"), "Score")))
    return answer


def read_preempt(reply: object) -> dict[str, VictimsReply]:
    """Node -> victims.

    Raises:
        ExtenderError: as ``read_filter``.
    """
    by_node = _fields(reply, "the answer").get("nodenametometavictims")
    return {
        name: _victims(victims)
        for name, victims in _mapping(by_node, "NodeNameToMetaVictims").items()
    }


def read_bind(reply: object) -> str:
    """The error, or "".

    Raises:
        ExtenderError: as ``read_filter``.
    """
    return _string(_fields(reply, "the answer").get("error"), "Error")


def _victims(value: object) -> VictimsReply:
    fields = _fields(value, "an entry of NodeNameToMetaVictims")
    pods = [_fields(pod, "an entry of Pods") for pod in _list(fields.get("pods"), "Pods")]
    return VictimsReply(
        tuple(_string(pod.get("uid"), "UID") for pod in pods),
        _integer(fields.get("numpdbviolations"), "NumPDBViolations"),
    )


def _node_names(value: object) -> tuple[str, ...]:
    items = _list(_fields(value, "Nodes").get("items"), "Nodes.items")
    metas = (_fields(_fields(item, "a node").get("metadata"), "metadata") for item in items)
    return tuple(_string(meta.get("name"), "metadata.name") for meta in metas)


def _fields(value: object, what: str) -> dict[str, Any]:
    """The fields by their name in lower case; of several the last one counts."""
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


def _texts(value: object, what: str) -> tuple[str, ...]:
    return tuple(_string(entry, f"an entry of {what}") for entry in _list(value, what))


def _reasons(value: object, what: str) -> dict[str, str]:
    entries: Iterable[tuple[str, Any]] = _mapping(value, what).items()
    return {name: cut(_string(text, f"an entry of {what}")) for name, text in entries}


def _string(value: object, what: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        _wrong(value, what, "a string")
    return value


def _integer(value: object, what: str) -> int:
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int):
        _wrong(value, what, "a 64-bit integer")
    if not -(2**63) <= value < 2**63:
        _wrong(value, what, "a 64-bit integer")
    return value


def _optional(value: object, read: Callable[[object], V]) -> V | None:
    return None if value is None else read(value)


def _wrong(value: object, what: str, wanted: str) -> NoReturn:
    found = "true or false" if isinstance(value, bool) else _KINDS.get(type(value), "a number")
    raise ExtenderError(f"the answer cannot be read: {what} is {found}, not {wanted}")


_KINDS: dict[type, str] = {dict: "an object", list: "a list", str: "a string"}
