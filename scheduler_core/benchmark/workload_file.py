"""Workload files: YAML -> ``Workload``, or one error that says what is wrong where."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NoReturn

import yaml

from scheduler_core.api import KINDS, InvalidObject, unknown_fields
from scheduler_core.ports import Json
from scheduler_core.yaml_levels import check_levels

from .objects import object_from
from .workload import (
    PARAMETERS,
    Barrier,
    Churn,
    Count,
    CreateNodes,
    CreateObjects,
    CreatePods,
    InvalidWorkload,
    Op,
    Workload,
)

__all__ = ["builtin_workloads", "load_builtin", "load_workload_file", "parse_workload"]

_FOLDER: Final = Path(__file__).parent / "workloads"
_Loader: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def builtin_workloads() -> tuple[str, ...]:
    """Names of the workloads that come with KubeSched, sorted."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.yaml")))


def load_builtin(name: str) -> Workload:
    """
    Raises:
        InvalidWorkload: there is none of that name.
    """
    if name not in builtin_workloads():
        raise InvalidWorkload(
            f"workload {name!r}", "", f"unknown; there are {', '.join(builtin_workloads())}"
        )
    return load_workload_file(_FOLDER / f"{name}.yaml")


def load_workload_file(path: Path) -> Workload:
    """
    Raises:
        InvalidWorkload: it cannot be read, or is faulty.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise InvalidWorkload(str(path), "", f"cannot be read: {reason}") from error
    return parse_workload(text, str(path))


def parse_workload(text: str, source: str) -> Workload:
    """
    Raises:
        InvalidWorkload: the text is no workload; ``source`` is named as the file.
    """
    try:
        check_levels(text)
        tree = yaml.load(text, Loader=_Loader)  # noqa: S506 - a safe loader
    except yaml.YAMLError as error:
        raise InvalidWorkload(source, "", f"is not YAML: {' '.join(str(error).split())}") from error
    return _Reader(source).workload(tree)


class _Reader:
    """Reads one file; every fault ends it."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._templates: Mapping[str, Json] = {}

    def workload(self, tree: object) -> Workload:
        top = self._mapping(tree, "", {"name", "description", "parameters", "templates", "ops"})
        self._templates = self._read_templates(top.get("templates"))
        ops = self._list(top.get("ops"), "ops")
        read = tuple(self._op(op, f"ops[{index}]") for index, op in enumerate(ops))
        if sum(isinstance(op, CreatePods) and op.measured for op in read) != 1:
            self._refuse("ops", "exactly one createPods must have collectMetrics: true")
        return Workload(
            name=self._text(top.get("name"), "name"),
            description=self._text(top.get("description", ""), "description"),
            parameters=self._parameters(top.get("parameters")),
            templates=self._templates,
            ops=read,
        )

    def _parameters(self, found: object) -> Mapping[str, int]:
        given = self._mapping(found, "parameters", set(PARAMETERS))
        missing = [name for name in PARAMETERS if name not in given]
        if missing:
            self._refuse(f"parameters.{missing[0]}", "is missing")
        return MappingProxyType(
            {name: self._number(given[name], f"parameters.{name}", 1) for name in PARAMETERS}
        )

    # -- templates ---------------------------------------------------------------------------------

    def _read_templates(self, found: object) -> Mapping[str, Json]:
        given = self._mapping(found, "templates", None)
        return MappingProxyType(
            {name: self._template(obj, f"templates.{name}") for name, obj in given.items()}
        )

    def _template(self, found: object, path: str) -> Json:
        obj = self._mapping(found, path, None)
        kind = KINDS.get(str(obj.get("kind")))
        if kind is None:
            self._refuse(f"{path}.kind", f"{obj.get('kind')!r} is not a known kind")
        self._mapping(obj.get("metadata", {}), f"{path}.metadata", None)
        example = object_from(obj, "example", 0, namespace="default")
        try:
            kind.parse(example)
        except InvalidObject as error:
            first = error.causes[0]
            self._refuse(_under(path, first.field_path), first.message)
        unknown = unknown_fields(example)
        if unknown:
            self._refuse(_under(path, unknown[0]), "is an unknown field")
        return obj

    # -- operations --------------------------------------------------------------------------------

    def _op(self, found: object, path: str) -> Op:
        op = self._mapping(found, path, None)
        readers: Mapping[str, Callable[[Json, str], Op]] = {
            "createNodes": self._create_nodes,
            "createPods": self._create_pods,
            "createObjects": self._create_objects,
            "churn": self._churn,
            "barrier": self._barrier,
        }
        code = op.get("opcode")
        if not isinstance(code, str) or code not in readers:
            self._refuse(f"{path}.opcode", f"{code!r} is none of {', '.join(readers)}")
        return readers[code](op, f"{path} ({code})")

    def _create_nodes(self, op: Json, path: str) -> Op:
        self._known(op, path, {"count", "template", "templates", "labels", "prefix"})
        labels = self._mapping(op.get("labels", {}), f"{path}.labels", None)
        return CreateNodes(
            count=self._count(op.get("count"), f"{path}.count"),
            templates=self._template_names(op, path, "Node"),
            labels=MappingProxyType(
                {
                    key: tuple(
                        self._text(value, f"{path}.labels.{key}[{index}]")
                        for index, value in enumerate(self._list(values, f"{path}.labels.{key}"))
                    )
                    for key, values in labels.items()
                }
            ),
            prefix=self._text(op.get("prefix", "node-"), f"{path}.prefix"),
        )

    def _create_pods(self, op: Json, path: str) -> Op:
        allowed = {"count", "template", "templates", "namespace", "collectMetrics"}
        self._known(op, path, allowed | {"assign", "waitFor", "prefix"})
        wait_for = self._one_of(op.get("waitFor", "attempt"), f"{path}.waitFor", "attempt", "node")
        assign = self._one_of(
            op.get("assign", "byScheduler"), f"{path}.assign", "byScheduler", "inTurn"
        )
        measured = op.get("collectMetrics", False)
        if not isinstance(measured, bool):
            self._refuse(f"{path}.collectMetrics", "must be true or false")
        if measured and assign == "inTurn":
            self._refuse(f"{path}.assign", "pods that are measured are placed by the scheduler")
        return CreatePods(
            count=self._count(op.get("count"), f"{path}.count"),
            templates=self._template_names(op, path, "Pod"),
            namespace=self._text(op.get("namespace", "default"), f"{path}.namespace"),
            measured=measured,
            bound=assign == "inTurn",
            wait_for="node" if wait_for == "node" else "attempt",
            prefix=self._text(op.get("prefix", "pod-"), f"{path}.prefix"),
        )

    def _create_objects(self, op: Json, path: str) -> Op:
        self._known(op, path, {"count", "template"})
        (name,) = self._template_names(op, path, "")
        if self._templates[name]["kind"] in ("Node", "Pod"):
            self._refuse(f"{path}.template", f"use create{self._templates[name]['kind']}s")
        return CreateObjects(self._count(op.get("count", 1), f"{path}.count"), name)

    def _churn(self, op: Json, path: str) -> Op:
        self._known(op, path, {"template", "templates", "everyPods", "keep"})
        return Churn(
            templates=self._template_names(op, path, ""),
            every_pods=self._number(op.get("everyPods"), f"{path}.everyPods", 1),
            keep=self._number(op.get("keep", 1), f"{path}.keep", 1),
        )

    def _barrier(self, op: Json, path: str) -> Op:
        self._known(op, path, set())
        return Barrier()

    def _template_names(self, op: Json, path: str, kind: str) -> tuple[str, ...]:
        if ("template" in op) == ("templates" in op):
            self._refuse(f"{path}.template", "give either template or templates")
        if "template" in op:
            names, where = [op["template"]], f"{path}.template"
        else:
            names, where = self._list(op["templates"], f"{path}.templates"), f"{path}.templates"
        for name in names:
            if not isinstance(name, str) or name not in self._templates:
                self._refuse(where, f"there is no template {name!r}")
            if kind and self._templates[name]["kind"] != kind:
                self._refuse(where, f"template {name!r} is not a {kind}")
        return tuple(names)

    # -- values ------------------------------------------------------------------------------------

    def _count(self, found: object, path: str) -> Count:
        """A number, ``$nodes``, or ``4 * $nodes``."""
        if isinstance(found, int) and not isinstance(found, bool):
            return Count(self._number(found, path, 0))
        times, star, name = str(found).rpartition("*")
        number, name = times.strip() if star else "1", name.strip()
        if not (number.isascii() and number.isdigit()) or name[1:] not in PARAMETERS:
            self._refuse(path, f"{found!r} is neither a number nor $nodes, $pods or 4 * $nodes")
        return Count(int(number), name[1:])

    def _number(self, found: object, path: str, least: int) -> int:
        if not isinstance(found, int) or isinstance(found, bool) or found < least:
            self._refuse(path, f"{found!r} is not a whole number from {least} on")
        return found

    def _text(self, found: object, path: str) -> str:
        if not isinstance(found, str):
            self._refuse(path, f"{found!r} is not text")
        return found

    def _one_of(self, found: object, path: str, *choices: str) -> str:
        if found not in choices:
            self._refuse(path, f"{found!r} is none of {', '.join(choices)}")
        return str(found)

    def _list(self, found: object, path: str) -> list[Any]:
        if not isinstance(found, list) or not found:
            self._refuse(path, "must be a list with at least one entry")
        return found

    def _mapping(self, found: object, path: str, allowed: Collection[str] | None) -> Json:
        if not isinstance(found, dict) or not all(isinstance(key, str) for key in found):
            self._refuse(path, "must be a mapping")
        if allowed is not None:
            self._no_others(found, path, allowed)
        return found

    def _known(self, op: Json, path: str, allowed: Collection[str]) -> None:
        self._no_others(op, path, {"opcode", *allowed})

    def _no_others(self, found: Json, path: str, allowed: Collection[str]) -> None:
        for key in found:
            if key not in allowed:
                self._refuse(_under(path, key), "is an unknown field")

    def _refuse(self, path: str, message: str) -> NoReturn:
        raise InvalidWorkload(self._source, path, message)


def _under(path: str, field: str) -> str:
    return f"{path}.{field}" if path and field else path or field
