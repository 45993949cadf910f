"""One YAML or JSON document as a tree of plain JSON values.

The file is text that somebody wrote: it is bounded in size (aliases that multiply count as often
as they are used), keys may not repeat, and only JSON's types come out.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable
from typing import Any

import yaml

from scheduler_core.config.errors import Fault, InvalidConfiguration
from scheduler_core.yaml_levels import check_levels

__all__ = ["parse_document"]

MAX_CHARACTERS = 1_000_000
MAX_VALUES = 50_000
MAX_DEPTH = 64

_Loader: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def parse_document(text: str, source: str = "") -> dict[str, Any]:
    """The document's mapping.

    Raises:
        InvalidConfiguration: it is not one YAML or JSON document that holds a mapping; the message
            has the line where the parser knows it.
    """
    if len(text) > MAX_CHARACTERS:
        raise _refused(f"must have at most {MAX_CHARACTERS} characters, has {len(text)}", source)
    try:
        tree = _read(text)
        plain = _Plain().value(tree, "", 0)
    except (yaml.YAMLError, json.JSONDecodeError, ValueError, RecursionError) as error:
        raise _refused(_reason(error), source) from error
    if not isinstance(plain, dict):
        raise _refused("must be a mapping with apiVersion and kind", source)
    return plain


def _read(text: str) -> object:
    if text.lstrip().startswith("{"):
        try:
            return json.loads(text, object_pairs_hook=_json_object)
        except json.JSONDecodeError:
            pass  # a flow mapping of YAML looks like JSON; its parser has the last word
    check_levels(text)
    return yaml.load(text, Loader=_StrictLoader)  # noqa: S506 - a subclass of the safe loader


def _json_object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"strict decoding error: duplicate field {json.dumps(key)}")
        found[key] = value
    return found


class _StrictLoader(_Loader):  # type: ignore[misc]  # its parent is chosen at run time
    """The safe loader, but a key that repeats is an error."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[object] = set()
        for key_node, _ in node.value:
            if not isinstance(key_node, yaml.ScalarNode) or key_node.tag.endswith(":merge"):
                continue
            if key_node.value in seen:
                line = key_node.start_mark.line + 1
                raise ValueError(
                    "strict decoding error: yaml: unmarshal errors:\n"
                    f"  line {line}: key {json.dumps(key_node.value)} already set in map"
                )
            seen.add(key_node.value)
        answer: dict[Hashable, Any] = super().construct_mapping(node, deep)
        return answer


class _Plain:
    """Copies a tree as JSON: text keys, no dates, no sets, bounded."""

    def __init__(self) -> None:
        self._count = 0

    def value(self, found: object, path: str, depth: int) -> object:
        self._count += 1
        if self._count > MAX_VALUES or depth > MAX_DEPTH:
            raise ValueError("the document is too large or nested too deeply")
        if found is None or isinstance(found, str | bool | int | float):
            return found
        if isinstance(found, dict):
            return self._mapping(found.items(), path, depth)
        if isinstance(found, list):
            return [self.value(v, f"{path}[{i}]", depth + 1) for i, v in enumerate(found)]
        kind = type(found).__name__
        raise ValueError(f"{path}: a {kind} is not allowed here; put it in quotes to make it text")

    def _mapping(
        self, items: Iterable[tuple[object, object]], path: str, depth: int
    ) -> dict[str, object]:
        answer: dict[str, object] = {}
        for key, value in items:
            if not isinstance(key, str | bool | int | float):
                raise ValueError(  # noqa: TRY004 - the file is wrong, not the program
                    f"{path or 'the document'}: a key must be text"
                )
            name = key if isinstance(key, str) else json.dumps(key)
            answer[name] = self.value(value, f"{path}.{name}" if path else name, depth + 1)
        return answer


def _reason(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "the document is too large or nested too deeply"
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        mark = error.problem_mark
        context = f" {error.context}" if error.context else ""
        return f"line {mark.line + 1}, column {mark.column + 1}: {error.problem}{context}"
    return str(error)


def _refused(reason: str, source: str) -> InvalidConfiguration:
    return InvalidConfiguration([Fault("", reason)], source)
