"""Scenarios: a state of a cluster, a configuration, and the pods to evaluate in it.

Read from JSON Lines (one scenario a line, the format of tests/data/vectors/README.md, with or
without ``expected``) or from one document that is a scenario, or a snapshot as ``snapshot_file``
reads it. Lines are read one by one, so a file may be of any length.
"""

from __future__ import annotations

import gzip
import io
import itertools
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from scheduler_core.config import (
    InvalidConfiguration,
    SchedulerConfiguration,
    default_configuration,
    load_configuration,
)
from scheduler_core.framework.runtime.registry import Registry
from scheduler_core.snapshot_file import (
    InvalidSnapshot,
    SnapshotFile,
    parse_snapshot,
    snapshot_of,
)

__all__ = ["InvalidScenario", "Scenario", "ScenarioReader", "text_lines"]

_GZIP: Final = b"\x1f\x8b"
#: Different configurations that are kept; those of one file repeat.
_CONFIGURATIONS: Final = 256


class InvalidScenario(ValueError):
    """The input cannot be used; the text says where (file, line, field) and why."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """What ``Evaluation`` needs, and what it is for.

    Attributes:
        name: the scenario's own, or the file's.
        pending: "namespace/name" of the pods to evaluate; None: every pod without a node.
        where: what errors call it: file and line.
    """

    name: str
    snapshot: SnapshotFile
    config: SchedulerConfiguration
    pending: tuple[str, ...] | None
    where: str


class ScenarioReader:
    """Reads scenarios with the plugins of ``registry``.

    Args:
        config: used for every scenario instead of its own; None: the scenario's own
            configuration without its extenders, or else the default profile.
    """

    def __init__(self, registry: Registry, config: SchedulerConfiguration | None = None) -> None:
        self._registry = registry
        self._config = config
        self._load = lru_cache(_CONFIGURATIONS)(self._load_text)

    def read(self, lines: Iterable[str], source: str) -> Iterator[Scenario]:
        """The scenarios of a text.

        Raises:
            InvalidScenario: at the first that is faulty, with its faults.
        """
        numbered = enumerate(lines, 1)
        start, first = next(((n, line) for n, line in numbered if line.strip()), (1, ""))
        if not _begins_json_lines(first):
            yield self._whole("".join([first, *(line for _, line in numbered)]), source)
            return
        for number, line in itertools.chain([(start, first)], numbered):
            if line.strip():
                where = f"{source}, line {number}"
                yield self._scenario(_parsed(line, where), where, f"line {number}")

    def _whole(self, text: str, source: str) -> Scenario:
        tree = _tree(text)
        if _is_scenario(tree):
            return self._scenario(tree, source, source)
        try:
            snapshot = parse_snapshot(text, source)
        except InvalidSnapshot as error:
            raise InvalidScenario(str(error)) from error
        config = self._configuration(snapshot.scheduler_config, source, "schedulerConfig")
        return Scenario(source, snapshot, config, None, source)

    def _scenario(self, tree: Any, where: str, default_name: str) -> Scenario:
        if not _is_scenario(tree):
            raise InvalidScenario(f"{where}: objects: Required value: a scenario lists its objects")
        try:
            snapshot = snapshot_of(_list(tree, "objects", where), where)
        except InvalidSnapshot as error:
            raise InvalidScenario(str(error)) from error
        config = self._configuration(tree.get("config"), where, "config")
        name = tree.get("name", default_name)
        if not isinstance(name, str):
            raise InvalidScenario(f"{where}: name: Invalid value: {name!r}: must be a string")
        return Scenario(name, snapshot, config, _pending(tree, where), where)

    def _configuration(self, given: Any, where: str, field: str) -> SchedulerConfiguration:
        if self._config is not None:
            return self._config
        if isinstance(given, Mapping):
            given = json.dumps(given)
        if given is not None and not isinstance(given, str):
            text = "must be a KubeSchedulerConfiguration, as an object or as text"
            raise InvalidScenario(f"{where}: {field}: Invalid value: {text}")
        try:
            return self._load(given or "")
        except InvalidConfiguration as error:
            lines = [f"{where}: {field}: {line}" for line in error.lines()]
            raise InvalidScenario("\n".join(lines)) from error

    def _load_text(self, text: str) -> SchedulerConfiguration:
        if not text:
            return default_configuration(self._registry)
        # Text that came with data does not get to import modules, nor to call anybody.
        config = load_configuration(text, self._registry, dotted_plugins=False)
        return replace(config, extenders=())


def text_lines(path: Path) -> Iterator[str]:
    """The lines of a UTF-8 file, compressed with gzip or not.

    Raises:
        InvalidScenario: the file cannot be read.
    """
    try:
        with path.open("rb") as raw:
            packed = raw.read(len(_GZIP)) == _GZIP
            raw.seek(0)
            data = gzip.GzipFile(fileobj=raw) if packed else raw
            with io.TextIOWrapper(data, encoding="utf-8-sig") as lines:
                yield from lines
    except UnicodeDecodeError as error:
        raise InvalidScenario(f"{path}: not UTF-8 text") from error
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InvalidScenario(f"{path}: damaged gzip data: {error}") from error
    except OSError as error:
        raise InvalidScenario(f"{path} cannot be read: {error.strerror or error}") from error


# -- JSON ------------------------------------------------------------------------------------------


def _begins_json_lines(line: str) -> bool:
    """Whether a first line is a scenario of its own, or was meant to be one."""
    tree = _tree(line)
    return _is_scenario(tree) or (
        tree is None and line.startswith("{") and line.rstrip()[-1] == "}"
    )


def _is_scenario(tree: Any) -> bool:
    """Of a snapshot's own shapes none has this key."""
    return isinstance(tree, Mapping) and "objects" in tree


def _tree(text: str) -> Any:
    """What the text says, or None where it is not JSON by itself."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _parsed(line: str, where: str) -> Any:
    try:
        return json.loads(line)
    except json.JSONDecodeError as error:
        text = f"{where}, column {error.colno}: not JSON: {error.msg}"
        raise InvalidScenario(text) from error
    except (ValueError, RecursionError) as error:
        raise InvalidScenario(f"{where}: not JSON: {error}") from error


def _list(tree: Mapping[str, Any], field: str, where: str) -> list[Any]:
    found = tree[field]
    if not isinstance(found, list):
        raise InvalidScenario(f"{where}: {field}: Invalid value: must be a list")
    return found


def _pending(tree: Mapping[str, Any], where: str) -> tuple[str, ...] | None:
    if tree.get("pending") is None:
        return None
    found = _list(tree, "pending", where)
    for i, key in enumerate(found):
        if not isinstance(key, str) or not key:
            text = f'Invalid value: {key!r}: must be "namespace/name"'
            raise InvalidScenario(f"{where}: pending[{i}]: {text}")
    return tuple(found)
