"""Label and field selectors as they are written in a list request (`a=b,c in (d,e)`)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from scheduler_core.api.selectors import Requirement
from scheduler_core.api.syntax import check_label_key, check_label_value, parse_int64
from scheduler_core.ports import Json

from .errors import bad_request
from .objects import labels_of
from .resources import RESOURCES, Resource

__all__ = ["Selection", "everything", "parse_label_selector", "selection"]

#: decides whether an object is selected
Selection = Callable[[Json], bool]

_TOKEN = re.compile(r"\s*(==|!=|=|!|,|\(|\)|<|>|[^\s=!,()<>]+)")
_COMPARE: Final = {"=": "In", "==": "In", "!=": "NotIn", ">": "Gt", "<": "Lt"}
_SETS: Final = {"in": "In", "notin": "NotIn"}
_NO_BEGINNING: Final = ("=", "==", "!=", ",", "(", ")", "<", ">")
_SYMBOLS: Final = frozenset({"=", "==", "!=", "!", ",", "(", ")", "<", ">"})

#: field -> where it is, beyond metadata.name and metadata.namespace (kube-apiserver 1.36)
_FIELDS: Final[dict[str, dict[str, tuple[str, ...]]]] = {
    "Pod": {
        "spec.nodeName": ("spec", "nodeName"),
        "spec.restartPolicy": ("spec", "restartPolicy"),
        "spec.schedulerName": ("spec", "schedulerName"),
        "spec.serviceAccountName": ("spec", "serviceAccountName"),
        "spec.hostNetwork": ("spec", "hostNetwork"),
        "status.phase": ("status", "phase"),
        "status.podIP": ("status", "podIP"),
        "status.podIPs": ("status", "podIP"),
        "status.nominatedNodeName": ("status", "nominatedNodeName"),
    },
    "Node": {"spec.unschedulable": ("spec", "unschedulable")},
    "Namespace": {"status.phase": ("status", "phase")},
    "Event": {
        "reason": ("reason",),
        "type": ("type",),
        "reportingController": ("reportingController",),
        "regarding.kind": ("regarding", "kind"),
        "regarding.namespace": ("regarding", "namespace"),
        "regarding.name": ("regarding", "name"),
        "regarding.uid": ("regarding", "uid"),
        "regarding.apiVersion": ("regarding", "apiVersion"),
        "regarding.resourceVersion": ("regarding", "resourceVersion"),
        "regarding.fieldPath": ("regarding", "fieldPath"),
        # The same fields by their names in the core group.
        "involvedObject.kind": ("regarding", "kind"),
        "involvedObject.namespace": ("regarding", "namespace"),
        "involvedObject.name": ("regarding", "name"),
        "involvedObject.uid": ("regarding", "uid"),
        "involvedObject.apiVersion": ("regarding", "apiVersion"),
        "involvedObject.resourceVersion": ("regarding", "resourceVersion"),
        "involvedObject.fieldPath": ("regarding", "fieldPath"),
        "reportingComponent": ("reportingController",),
        "source": ("deprecatedSource", "component"),
    },
    "Job": {"status.successful": ("status", "succeeded")},
    "Service": {"spec.clusterIP": ("spec", "clusterIP"), "spec.type": ("spec", "type")},
    "ReplicationController": {"status.replicas": ("status", "replicas")},
}
#: kinds that say in words of their own that a field is not known
_OWN_WORDS: Final = frozenset(
    {"Event", "Job", "Namespace", "Node", "Pod", "PodGroup", "ReplicationController", "Service"}
)
_FALSE_WHEN_ABSENT: Final = frozenset({"spec.unschedulable", "spec.hostNetwork"})


def everything(obj: Json) -> bool:
    """Selects every object."""
    return True


def selection(
    resource: Resource, namespace: str | None, label_selector: str, field_selector: str
) -> Selection:
    """What a list or watch request asks for.

    Raises:
        ApiError: 400 for a selector that does not parse, or a field that cannot be selected by.
    """
    checks: list[Selection] = []
    if namespace and resource.namespaced:
        wanted = namespace
        checks.append(lambda obj: obj["metadata"].get("namespace") == wanted)
    requirements = parse_label_selector(label_selector)
    if requirements:
        checks.append(lambda obj: all(r.matches(labels_of(obj)) for r in requirements))
    checks.extend(_field_checks(resource, field_selector))
    if not checks:
        return everything
    if len(checks) == 1:
        return checks[0]
    return lambda obj: all(check(obj) for check in checks)


def parse_label_selector(text: str) -> tuple[Requirement, ...]:
    """The requirements of a label selector; none for empty text.

    Raises:
        ApiError: 400, with the words of kube-apiserver.
    """
    tokens = _Tokens(text)
    if tokens.peek() == "":
        return ()
    if tokens.peek() in _NO_BEGINNING:
        expected = "!, identifier, or 'end of string'"
        raise bad_request(f"found '{tokens.peek()}', expected: {expected}")
    found = [_requirement(tokens)]
    while tokens.peek() == ",":
        tokens.take()
        if tokens.peek() in ("", *_NO_BEGINNING):
            raise bad_request(f"found '{tokens.peek()}', expected: identifier after ','")
        found.append(_requirement(tokens))
    if tokens.peek() != "":
        raise bad_request(f"found '{tokens.peek()}', expected: ',' or 'end of string'")
    return tuple(found)


class _Tokens:
    """The words and signs of a selector, one at a time; "" stands for the end."""

    def __init__(self, text: str) -> None:
        self._left: Iterator[str] = (match[1] for match in _TOKEN.finditer(text))
        self._next = next(self._left, "")

    def peek(self) -> str:
        return self._next

    def take(self) -> str:
        taken, self._next = self._next, next(self._left, "")
        return taken


def _requirement(tokens: _Tokens) -> Requirement:
    absent = tokens.peek() == "!"
    if absent:
        tokens.take()
    key = _identifier(tokens)
    problem = check_label_key(key)
    if problem:
        problem = problem.replace("a qualified name", "a valid label key")
        raise bad_request(f'unable to parse requirement: <nil>: Invalid value: "{key}": {problem}')
    if absent:
        return Requirement(key, "DoesNotExist")
    sign = tokens.peek()
    if sign in ("", ","):
        return Requirement(key, "Exists")
    tokens.take()
    if sign in _SETS:
        return _checked(key, _SETS[sign], _value_set(tokens))
    if sign in _COMPARE:
        return _checked(key, _COMPARE[sign], (_exact_value(tokens),))
    raise _unparsable(sign, "in, notin, =, ==, !=, gt, lt")


def _identifier(tokens: _Tokens) -> str:
    token = tokens.peek()
    if token in _SYMBOLS or token == "":
        raise _unparsable(token, "identifier")
    return tokens.take()


def _exact_value(tokens: _Tokens) -> str:
    # Nothing after the sign means the empty value.
    return "" if tokens.peek() in ("", ",") else _identifier(tokens)


def _value_set(tokens: _Tokens) -> tuple[str, ...]:
    if tokens.peek() != "(":
        raise bad_request(f"unable to parse requirement: found '{tokens.peek()}' expected: '('")
    tokens.take()
    values: list[str] = []
    while True:
        values.append("" if tokens.peek() in (",", ")") else _identifier(tokens))
        sign = tokens.take()
        if sign == ")":
            return tuple(values)
        if sign != ",":
            raise _unparsable(sign, "',' or ')'")


def _checked(key: str, operator: str, values: tuple[str, ...]) -> Requirement:
    if operator in ("Gt", "Lt"):
        bound = parse_int64(values[0])
        if bound is None:
            why = "for 'Gt', 'Lt' operators, the value must be an integer"
            raise bad_request(
                f'unable to parse requirement: values[0]: Invalid value: "{values[0]}": {why}'
            )
        return Requirement(key, operator, values, _bound=bound)
    for value in values:
        problem = check_label_value(value)
        if problem:
            raise bad_request(
                f"unable to parse requirement: values[0][{key}]: "
                f'Invalid value: "{value}": {problem}'
            )
    return Requirement(key, operator, values)


def _unparsable(found: str, expected: str) -> Exception:
    return bad_request(f"unable to parse requirement: found '{found}', expected: {expected}")


def _field_checks(resource: Resource, text: str) -> Iterator[Selection]:
    for term in filter(None, text.split(",")):
        match = re.fullmatch(r"([^=!]+)(==|!=|=)(.*)", term)
        if match is None:
            raise bad_request(f"invalid selector: '{text}'; can't understand '{term}'")
        name, sign, value = match[1], match[2], match[3]
        yield _field_check(name, _path_of(resource, name), value, sign != "!=")


def _path_of(resource: Resource, name: str) -> tuple[str, ...]:
    by_name_alone = resource.kind in RESOURCES and resource.kind not in _OWN_WORDS
    if name == "metadata.name" or (
        name == "metadata.namespace" and (resource.namespaced or by_name_alone)
    ):
        return tuple(name.split("."))
    path = _FIELDS.get(resource.kind, {}).get(name)
    if path is None and by_name_alone:
        raise bad_request(
            f'"{name}" is not a known field selector: only "metadata.name", "metadata.namespace"'
        )
    if path is None and resource.kind == "Job":
        raise bad_request(f'field label "{name}" not supported for Job')
    if path is None:
        raise bad_request(f"field label not supported: {name}")
    return path


def _field_check(name: str, path: tuple[str, ...], value: str, equal: bool) -> Selection:
    default = "false" if name in _FALSE_WHEN_ABSENT else ""

    def check(obj: Json) -> bool:
        return (_field_text(obj, path, default) == value) is equal

    return check


def _field_text(obj: Json, path: tuple[str, ...], default: str) -> str:
    found: Any = obj
    for step in path:
        found = found.get(step) if isinstance(found, dict) else None
    if found is None:
        return default
    if isinstance(found, bool):
        return "true" if found else "false"
    return str(found)
