"""Places in a YAML (or JSON) text: the line of a field path, and secrets to be hidden.

Works on the node tree, so a text that means nonsense but has YAML's form is fine; one without it
has no places.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import yaml

from dashboard.redacted import (
    HIDDEN,
    in_text_without_userinfo,
    is_secret_key,
    without_userinfo,
)
from scheduler_core.yaml_levels import check_levels

_Loader: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")
_LINE = re.compile(r"\bline (\d+)\b")
_QUOTED = re.compile(r'"([^"]+)"')


def line_of(text: str, path: str, message: str) -> int | None:
    """Where a fault is: the deepest field of ``path`` that is there, else a line that the message
    names, else the first value that it quotes; None where nothing is found. Lines count from 1."""
    try:
        root = _compose(text)
    except ValueError:
        root = None
    if root is not None and path:
        found = _follow(root, path)
        if found is not None:
            return found
    named = _LINE.search(message)
    if named:
        return int(named[1])
    if root is None:
        return None
    quoted = frozenset(_QUOTED.findall(message))
    lines = (node.start_mark.line + 1 for node in _scalars(root) if node.value in quoted)
    return next(lines, None)


def hide_secrets(text: str) -> str | None:
    """The text without secrets (``dashboard.redacted``), in comments neither; None where it is not
    YAML."""
    try:
        root = _compose(text)
    except ValueError:
        return None
    if root is None:
        return in_text_without_userinfo(text)
    written = {
        _span(node): json.dumps(without_userinfo(node.value), ensure_ascii=False)
        for node in _scalars(root)
        if without_userinfo(node.value) != node.value
    }
    spans = [_span(value) for key, value in _pairs(root) if is_secret_key(key)]
    written |= dict.fromkeys(spans, f'"{HIDDEN}"')
    for start, end in _outermost(written):
        new = f"{written[start, end]}{_line_end(text[start:end])}"
        text = text[:start] + new + text[end:]
    return in_text_without_userinfo(text)  # comments


def _compose(text: str) -> yaml.Node | None:
    """The document's node, None where it is empty.

    Raises:
        ValueError: it is not YAML.
    """
    try:
        check_levels(text)
        node = yaml.compose(text, Loader=_Loader)
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError(str(error)) from error
    return node if isinstance(node, yaml.Node) else None


def _follow(root: yaml.Node, path: str) -> int | None:
    """The line of the deepest step that exists; None where not even the first one does."""
    node, line = root, None
    for name, index in _STEP.findall(path):
        child = _item(node, int(index)) if index else _value(node, name)
        if child is None:
            return line
        node, line = child
    return line


def _value(node: yaml.Node, name: str) -> tuple[yaml.Node, int] | None:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == name:
                return value, key.start_mark.line + 1
    return None


def _item(node: yaml.Node, index: int) -> tuple[yaml.Node, int] | None:
    if isinstance(node, yaml.SequenceNode) and index < len(node.value):
        item = node.value[index]
        return item, item.start_mark.line + 1
    return None


def _nodes(root: yaml.Node) -> Iterator[yaml.Node]:
    """Every node once, also where aliases repeat it, in the order of the text."""
    seen: set[int] = set()
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        yield node
        waiting.extend(reversed(_children(node)))


def _children(node: yaml.Node) -> Sequence[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [child for pair in node.value for child in pair]
    return node.value if isinstance(node, yaml.SequenceNode) else ()


def _scalars(root: yaml.Node) -> Iterator[yaml.ScalarNode]:
    return (node for node in _nodes(root) if isinstance(node, yaml.ScalarNode))


def _pairs(root: yaml.Node) -> Iterator[tuple[str, yaml.Node]]:
    for node in _nodes(root):
        if isinstance(node, yaml.MappingNode):
            yield from ((str(key.value), value) for key, value in node.value)


def _span(node: yaml.Node) -> tuple[int, int]:
    return node.start_mark.index, node.end_mark.index


def _outermost(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Those in no other one, from the text's end to its beginning."""
    found: list[tuple[int, int]] = []
    for start, end in sorted(spans, key=lambda span: (span[0], -span[1])):
        if not found or start >= found[-1][1]:
            found.append((start, end))
    return found[::-1]


def _line_end(taken: str) -> str:
    """A block scalar's span includes the end of its last line."""
    return "\n" if taken.endswith("\n") else ""
