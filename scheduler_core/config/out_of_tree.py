"""Plugins that do not come with the scheduler.

A configuration names one either as an entry point of the group ``kubesched.plugins``, or directly
as ``package.module:Class``. Only plugins that are named are imported.

Importing runs code. A configuration that came over the network must be read with
``dotted=False``: it then reaches installed entry points only, which an administrator chose; or with
the paths that a trusted file has named before.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from typing import Any, Final

from scheduler_core.config.errors import Fault
from scheduler_core.framework.interface import EXTENSION_POINTS, Plugin
from scheduler_core.framework.runtime.registry import Registry

__all__ = ["GROUP", "Resolved", "resolve_plugins"]

GROUP: Final = "kubesched.plugins"
_DOTTED = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")


@dataclass(slots=True)
class Resolved:
    """``registry`` has the out-of-tree plugins too; ``dotted`` is plugin name -> the dotted path
    that the configuration used for it; ``refused`` are names that ``faults`` speak of."""

    registry: Registry
    dotted: dict[str, str] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    refused: set[str] = field(default_factory=set)


def resolve_plugins(
    config: dict[str, Any], registry: Registry, *, dotted: bool | Collection[str]
) -> Resolved:
    """Import the out-of-tree plugins that a decoded configuration names, and replace dotted paths
    in it, in place, by the plugins' own names. ``dotted``: whether paths are allowed, or which."""
    resolved = Resolved(registry.merged({}))
    names: dict[str, str] = {}
    for path, entry in _named(config):
        given = entry.get("name", "")
        if given not in names:
            names[given] = _resolve(given, path, resolved, dotted)
        entry["name"] = names[given]
    return resolved


def _named(config: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every place that names a plugin which is wanted, and then those that may name it again."""
    later: list[tuple[str, dict[str, Any]]] = []
    for i, profile in enumerate(config.get("profiles", ())):
        for point, found in profile.get("plugins", {}).items():
            path = f"profiles[{i}].plugins.{point}"
            yield from _entries(f"{path}.enabled", found.get("enabled", ()))
            later.extend(_entries(f"{path}.disabled", found.get("disabled", ())))
        later.extend(_entries(f"profiles[{i}].pluginConfig", profile.get("pluginConfig", ())))
    yield from (place for place in later if ":" in place[1].get("name", ""))


def _entries(path: str, entries: Iterable[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    for index, entry in enumerate(entries):
        yield f"{path}[{index}].name", entry


def _resolve(name: str, path: str, resolved: Resolved, dotted: bool | Collection[str]) -> str:
    """The plugin's name in the registry; the given name where there is no such plugin."""
    if not name or name in resolved.registry:
        return name
    try:
        if ":" in name:
            return _add_dotted(name, resolved, _is_allowed(name, dotted))
        return _add_entry_point(name, resolved)
    except _Refused as refused:
        resolved.refused.add(name)
        resolved.faults.append(Fault(path, f'plugin "{name}": {refused}'))
        return name


def _is_allowed(name: str, dotted: bool | Collection[str]) -> bool:
    return dotted if isinstance(dotted, bool) else name in dotted


class _Refused(Exception):
    """Why a plugin cannot be had."""


def _add_dotted(name: str, resolved: Resolved, allowed: bool) -> str:
    if not allowed:
        raise _Refused("a dotted path is not allowed here; install it as an entry point")
    if not _DOTTED.fullmatch(name):
        raise _Refused('must have the form "package.module:Class"')
    module_name, _, attribute = name.partition(":")
    try:
        found = getattr(importlib.import_module(module_name), attribute)
    except Exception as error:
        raise _Refused(f"cannot be imported: {_text(error)}") from error
    plugin = _plugin_class(found)
    own = plugin.name
    if own in resolved.registry and resolved.registry[own].plugin_class is not plugin:
        raise _Refused(f'there is another plugin named "{own}"')
    if own not in resolved.registry:
        resolved.registry.register(own, plugin)
    resolved.dotted.setdefault(own, name)
    return own


def _add_entry_point(name: str, resolved: Resolved) -> str:
    found = next(iter(entry_points(group=GROUP, name=name)), None)
    if found is None:
        return name  # the expansion says that it does not exist
    try:
        loaded = found.load()
    except Exception as error:
        raise _Refused(f"its entry point {found.value} cannot be loaded: {_text(error)}") from error
    plugin = _plugin_class(loaded)
    if plugin.name != name:
        raise _Refused(f'its entry point {found.value} is a plugin named "{plugin.name}"')
    resolved.registry.register(name, plugin)
    return name


def _plugin_class(found: object) -> type[Plugin]:
    if not isinstance(found, type) or not issubclass(found, Plugin):
        raise _Refused("is not a plugin class (a subclass of scheduler_core's Plugin)")
    if not found.name:
        raise _Refused('has no name (set the class attribute "name")')
    if not any(issubclass(found, base) for base in EXTENSION_POINTS.values()):
        raise _Refused("implements no extension point")
    return found


def _text(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
