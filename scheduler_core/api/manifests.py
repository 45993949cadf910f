"""Manifests: Kubernetes objects in YAML or JSON text, one or many documents, Lists included.

A text is taken whole or not at all. Each fault names the source, the document, the line of the
faulty field, the object, the field and the reason:

    pods.yaml, document 2, line 17: Pod default/web: spec.containers[0].image: Required value
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from .errors import InvalidObject, invalid
from .kinds import kind_of
from .known_fields import unknown_fields
from .metadata import KubeObject, subject_of
from .reader import Raw
from .validation import validate

__all__ = ["Manifest", "load_manifest_file", "load_manifests", "parse_documents"]

#: nodes in one text once aliases are followed; a short text could otherwise stand for billions
_MOST_NODES: Final = 5_000_000
#: levels of nesting; composing nodes takes C stack for each
_MOST_LEVELS: Final = 200
_TAG: Final = "tag:yaml.org,2002:"
#: what JSON has as well, and the merge key
_TAGS: Final = frozenset(
    _TAG + name for name in ("str", "int", "float", "bool", "null", "map", "seq", "merge")
)
_MERGE_KEY: Final = "<<"
_STEP = re.compile(r"\[([^\]]*)\]|([^.\[]+)")


class _Loader(yaml.CSafeLoader):
    """YAML as Kubernetes reads it: times stay text, and 12:30 is no number."""


def _set_resolvers() -> None:
    dropped = {_TAG + name for name in ("timestamp", "int", "float", "value")}
    _Loader.yaml_implicit_resolvers = {
        first: [(tag, rule) for tag, rule in rules if tag not in dropped]
        for first, rules in yaml.CSafeLoader.yaml_implicit_resolvers.items()
    }
    for tag, rule, first in (
        ("int", r"[-+]?(0|[1-9][0-9]*|0o?[0-7]+|0x[0-9a-fA-F]+)", "-+0123456789"),
        (
            "float",
            r"[-+]?([0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))([eE][-+]?[0-9]+)?",
            "-+0123456789.",
        ),
    ):
        pattern = re.compile(rf"^(?:{rule})$", re.ASCII)
        _Loader.add_implicit_resolver(f"{_TAG}{tag}", pattern, list(first))


_set_resolvers()


@dataclass(frozen=True, slots=True)
class Manifest:
    """One object of a text.

    Attributes:
        raw: its JSON.
        source: the file's name, or what the caller called the text.
        document: number of the YAML document, from 1.
        line: the line on which the object begins, from 1.
    """

    raw: Raw
    source: str
    document: int
    line: int

    def parse(self) -> KubeObject:
        """The object itself."""
        return kind_of(self.raw).parse(self.raw)


@dataclass(frozen=True, slots=True)
class _Document:
    """Data and the YAML nodes that it came from, which know their lines."""

    data: Any
    node: yaml.Node
    source: str
    number: int

    def where(self, line: int) -> str:
        return f"{self.source}, document {self.number}, line {line}"


def load_manifest_file(path: Path) -> list[Manifest]:
    """The objects of a file; see `load_manifests`.

    Raises:
        InvalidObject: also if the file is not UTF-8.
        OSError: it cannot be read.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        reason = f"not UTF-8 text (byte {error.start})"
        raise InvalidObject("", reason, subject=path.name) from error
    return load_manifests(text, path.name)


def load_manifests(text: str, source: str = "manifest") -> list[Manifest]:
    """The objects of a text, in order, each checked by `api.validation` and for unknown fields.

    Empty documents are skipped; the items of a List count as objects of their own.

    Raises:
        InvalidObject: it is not YAML or JSON, or an object is refused; then none is returned, and
            `causes` holds every fault of every object.
    """
    manifests: list[Manifest] = []
    faults: list[InvalidObject] = []
    for document in _documents(text, source):
        for data, node in _objects(document):
            manifests.append(Manifest(data, source, document.number, _line(node)))
            faults.extend(_faults(document, data, node))
    if faults:
        raise faults[0] if len(faults) == 1 else InvalidObject.of(faults)
    return manifests


def parse_documents(text: str, source: str = "text") -> list[Any]:
    """The data of every document that is not empty, without looking at what it means.

    Raises:
        InvalidObject: it is not YAML or JSON, a key is doubled or no text, or aliases blow it up.
    """
    return [document.data for document in _documents(text, source)]


def _documents(text: str, source: str) -> Iterator[_Document]:
    number = 0
    try:
        _scan(text, source)
        loader = _Loader(text)
        while loader.check_node():
            number += 1
            node = loader.get_node()
            if node is None:
                return
            _check_nodes(node, source, number)
            data = _construct(loader, node, source, number)
            if data is not None:
                yield _Document(data, node, source, number)
    except yaml.MarkedYAMLError as error:
        raise _not_yaml(error, text, source, number) from error
    except yaml.YAMLError as error:
        raise InvalidObject("", f"not YAML: {error}", subject=source) from error
    except UnicodeEncodeError as error:
        reason = f"not UTF-8 text (character {error.start})"
        raise InvalidObject("", reason, subject=source) from error


def _construct(loader: _Loader, node: yaml.Node, source: str, number: int) -> Any:
    try:
        return loader.construct_document(node)
    except (KeyError, ValueError) as error:
        # A scalar that is tagged as something it is not, or a number of thousands of digits.
        raise _refused(node, f"not YAML: {error}", source, number) from error


def _scan(text: str, source: str) -> None:
    """Refuses bad syntax and deep nesting, before anything recursive looks at the text."""
    depth = number = 0
    try:
        for event in yaml.parse(text, _Loader):
            if isinstance(event, yaml.DocumentStartEvent):
                number += 1
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
            elif isinstance(event, yaml.CollectionStartEvent):
                depth += 1
                if depth > _MOST_LEVELS:
                    line = event.start_mark.line + 1 if event.start_mark else 1
                    subject = f"{source}, document {number}, line {line}"
                    reason = f"nested deeper than {_MOST_LEVELS} levels"
                    raise InvalidObject("", reason, subject=subject)
    except yaml.MarkedYAMLError as error:
        raise _not_yaml(error, text, source, max(number, 1)) from error


def _not_yaml(error: yaml.MarkedYAMLError, text: str, source: str, number: int) -> InvalidObject:
    subject = f"{source}, document {number}"
    mark = error.problem_mark or error.context_mark
    if mark is not None:
        # The end of the text may count as a line of its own.
        subject += f", line {min(mark.line, text.rstrip().count(chr(10))) + 1}"
    problem = " ".join(filter(None, (error.context, error.problem)))
    return InvalidObject("", f"not YAML: {problem}", subject=subject)


def _check_nodes(root: yaml.Node, source: str, number: int) -> None:
    """Refuses doubled keys, what JSON cannot say, and aliases that grow without bound."""
    sizes: dict[int, int] = {}
    open_nodes: set[int] = set()
    stack: list[tuple[yaml.Node, bool]] = [(root, False)]
    while stack:
        node, done = stack.pop()
        children = _children(node)
        if done:
            open_nodes.discard(id(node))
            sizes[id(node)] = 1 + sum(sizes[id(child)] for child in children)
            if sizes[id(node)] > _MOST_NODES:
                raise _refused(node, "aliases make it too large", source, number)
            continue
        if id(node) in sizes:
            continue
        if id(node) in open_nodes:
            raise _refused(node, "an alias refers to what it is part of", source, number)
        if node.tag not in _TAGS:
            raise _refused(node, f"not JSON: tag {node.tag}", source, number)
        if isinstance(node, yaml.MappingNode):
            _check_keys(node, source, number)
        open_nodes.add(id(node))
        stack.append((node, True))
        stack.extend((child, False) for child in children)


def _children(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [child for pair in node.value for child in pair]
    return list(node.value) if isinstance(node, yaml.SequenceNode) else []


def _check_keys(node: yaml.MappingNode, source: str, number: int) -> None:
    seen = set()
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise _refused(key, "a key must be text", source, number)
        if key.value in seen:
            raise _refused(key, f'key "{key.value}" already set in map', source, number)
        seen.add(key.value)
        if key.value != _MERGE_KEY:
            # JSON knows only text as keys: an unquoted 1, true or null is meant as such.
            key.tag = f"{_TAG}str"


def _refused(node: yaml.Node, reason: str, source: str, number: int) -> InvalidObject:
    return InvalidObject("", reason, subject=f"{source}, document {number}, line {_line(node)}")


def _objects(document: _Document) -> Iterator[tuple[Any, yaml.Node]]:
    """The document's object, or the items of its List, each with the node it came from."""
    data, node = document.data, document.node
    if not (isinstance(data, Mapping) and isinstance(data.get("items"), list)):
        yield data, node
        return
    kind = data.get("kind")
    if not isinstance(kind, str) or not kind.endswith("List"):
        yield data, node
        return
    item_kind = kind.removesuffix("List")
    for index, item in enumerate(data["items"]):
        # Items of a typed list need not repeat what the list's kind says already.
        if item_kind and isinstance(item, Mapping):
            item = {"kind": item_kind, "apiVersion": data.get("apiVersion"), **item}
        yield item, _descend(node, f"items[{index}]")


def _faults(document: _Document, data: Any, node: yaml.Node) -> Iterable[InvalidObject]:
    if not isinstance(data, Mapping):
        reason = invalid(data, "must be an object")
        yield InvalidObject("", reason, subject=document.where(_line(node)))
        return
    kind = data.get("kind")
    name = subject_of(data, kind if isinstance(kind, str) else "object")
    unknown = [(path, f'unknown field "{path}"') for path in unknown_fields(data)]
    for path, reason in unknown + validate(data):
        where = document.where(_line(_descend(node, path)))
        yield InvalidObject(path, reason, subject=f"{where}: {name}")


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


def _descend(node: yaml.Node, path: str) -> yaml.Node:
    """The node at a field path, or the nearest one around it that exists."""
    for bracket, plain in _STEP.findall(path):
        if isinstance(node, yaml.MappingNode):
            step = plain or bracket
            found = next((value for key, value in node.value if key.value == step), None)
        elif isinstance(node, yaml.SequenceNode) and bracket.isdecimal():
            found = node.value[int(bracket)] if int(bracket) < len(node.value) else None
        else:
            found = None
        if found is None:
            return node
        node = found
    return node
