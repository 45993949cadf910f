"""From the plugins a profile names to the plugins of each extension point.

Two steps, as in kube-scheduler 1.36: the profile's plugin sets are merged with the default ones
(only multiPoint has defaults), then multiPoint is expanded into each extension point.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from scheduler_core.config.component import PLUGIN_POINTS
from scheduler_core.config.defaults import DEFAULT_PLUGINS
from scheduler_core.config.errors import Faults
from scheduler_core.config.types import PluginRef
from scheduler_core.framework.interface import EXTENSION_POINTS, MAX_NODE_SCORE
from scheduler_core.framework.runtime.registry import Registry

__all__ = ["REMOVED_PLUGINS", "expand_plugins", "merge_plugins"]

PluginSet = dict[str, Any]
Plugins = dict[str, PluginSet]

#: Plugins that v1 no longer knows.
REMOVED_PLUGINS: Final = ("AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits")

_MAX_TOTAL: Final = 2**63 - 1

#: Points of native pod groups; no plugin here has them.
_PLACEMENT: Final = {
    "placementGenerate": "PlacementGeneratePlugin",
    "placementScore": "PlacementScorePlugin",
}

#: The order in which the reference fills the points, which decides what an error names.
_FILL_ORDER: Final = (
    "preFilter",
    "filter",
    "postFilter",
    "reserve",
    "preScore",
    "score",
    "preBind",
    "bind",
    "postBind",
    "permit",
    "preEnqueue",
    "queueSort",
    *_PLACEMENT,
)


def merge_plugins(plugins: Mapping[str, PluginSet], registry: Registry) -> Plugins:
    """The profile's sets, with those default plugins that ``registry`` has merged into multiPoint.

    A default plugin that the profile enables again keeps its place and takes the new entry; one it
    disables is left out, all of them with ``*``.
    """
    merged: Plugins = {}
    for point in PLUGIN_POINTS:
        found = plugins.get(point, {})
        merged[point] = {
            key: [_plain(entry) for entry in found[key]]
            for key in ("enabled", "disabled")
            if found.get(key)
        }
    multi = merged["multiPoint"]
    multi["enabled"] = _merge_defaults(multi, registry)
    return merged


def _plain(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": entry.get("name", ""), "weight": entry.get("weight", 0)}


def _merge_defaults(custom: PluginSet, registry: Registry) -> list[dict[str, Any]]:
    disabled = {entry["name"] for entry in custom.get("disabled", ())}
    enabled = custom.get("enabled", [])
    # With a repeated name the last entry replaces the default; the others stay, and fail later.
    last = {entry["name"]: index for index, entry in enumerate(enabled)}
    replaced: set[int] = set()
    kept: list[dict[str, Any]] = []
    for name, weight in DEFAULT_PLUGINS if "*" not in disabled else ():
        if name in disabled or name not in registry:
            continue
        if name in last:
            replaced.add(last[name])
            kept.append(enabled[last[name]])
        else:
            kept.append({"name": name, "weight": weight})
    return kept + [entry for index, entry in enumerate(enabled) if index not in replaced]


def expand_plugins(
    plugins: Plugins,
    registry: Registry,
    scheduler_name: str,
    faults: Faults,
    *,
    refused: Collection[str] = (),
) -> dict[str, tuple[PluginRef, ...]]:
    """Extension point -> plugins in order, out of merged sets.

    Faults carry the reference's words for a profile that cannot be made; plugins in ``refused``
    have been spoken of already.
    """
    report = _Report(scheduler_name, faults, refused)
    expanded: dict[str, tuple[str, ...]] = {}
    for point in _FILL_ORDER:
        _check_named(point, plugins[point], registry, report)
    for point in _FILL_ORDER:
        expanded[point] = _expand(point, plugins, registry, report)
    weights = _weights(plugins, expanded["score"])
    _check_weights(weights, report)
    _check_single_points(plugins, expanded, report)
    return {
        point: tuple(
            PluginRef(name, weights[name] if point == "score" else 0) for name in expanded[point]
        )
        for point in EXTENSION_POINTS
    }


class _Report:
    """Faults of one profile, each named once."""

    def __init__(self, scheduler_name: str, faults: Faults, refused: Collection[str]) -> None:
        self.scheduler_name = scheduler_name
        self.refused = frozenset(refused)
        self.missing: set[str] = set(refused)
        self.repeated: set[str] = set()
        self._faults = faults

    def add(self, message: str) -> None:
        self._faults.add("", profile_fault(self.scheduler_name, message))


def profile_fault(scheduler_name: str, message: str) -> str:
    """A fault found while a profile is made, in the reference's words."""
    place = f"creating profile for scheduler name {scheduler_name}"
    return f"initializing profiles: {place}: {message}"


def _interface(point: str) -> str:
    """The reference's name of the plugin interface: ``FilterPlugin``."""
    return _PLACEMENT.get(point) or EXTENSION_POINTS[point].__name__


def _implements(name: str, point: str, registry: Registry) -> bool:
    return name in registry and point in registry[name].extension_points


def _check_named(point: str, found: PluginSet, registry: Registry, report: _Report) -> None:
    """Plugins that the point itself enables must exist, have the point, and come once."""
    seen: set[str] = set()
    for entry in found.get("enabled", ()):
        name = entry["name"]
        if name in REMOVED_PLUGINS or name in report.refused:
            continue  # refused with its field path already
        quoted, interface = json.dumps(name), _interface(point)
        if name not in registry:
            report.missing.add(name)
            report.add(f"{interface} {quoted} does not exist")
        elif not _implements(name, point, registry):
            report.add(f"plugin {quoted} does not extend {interface} plugin")
        elif name in seen:
            report.repeated.add(name)
            report.add(f'plugin {quoted} already registered as "{interface}"')
        seen.add(name)


def _expand(point: str, plugins: Plugins, registry: Registry, report: _Report) -> tuple[str, ...]:
    found = plugins[point]
    own = [e["name"] for e in found.get("enabled", ()) if _implements(e["name"], point, registry)]
    own = list(dict.fromkeys(own))
    disabled = {entry["name"] for entry in found.get("disabled", ())}
    if "*" in disabled:
        return tuple(own)
    overriding: set[str] = set()
    multi: list[str] = []
    for entry in plugins["multiPoint"]["enabled"]:
        name = entry["name"]
        if name not in registry:
            _note_missing(name, point, report)
        elif not _implements(name, point, registry) or name in disabled:
            continue
        elif name in own:
            overriding.add(name)
        elif name in multi:
            _note_repeated(name, point, report)
        else:
            multi.append(name)
    front = [name for name in own if name in overriding]
    return (*front, *multi, *(name for name in own if name not in overriding))


def _note_missing(name: str, point: str, report: _Report) -> None:
    """For multiPoint the first point tried is named."""
    if name not in report.missing:
        report.missing.add(name)
        report.add(f"{_interface(point)} {json.dumps(name)} does not exist")


def _note_repeated(name: str, point: str, report: _Report) -> None:
    if name not in report.repeated:
        report.repeated.add(name)
        report.add(f'plugin {json.dumps(name)} already registered as "{_interface(point)}"')


def _weights(plugins: Plugins, scoring: Sequence[str]) -> dict[str, int]:
    """score.enabled beats multiPoint; 0 is 1."""
    found: dict[str, int] = {}
    for point in ("score", "multiPoint"):
        for entry in plugins[point].get("enabled", ()):
            found.setdefault(entry["name"], entry["weight"] or 1)
    return {name: found.get(name, 1) for name in scoring}


def _check_weights(weights: Mapping[str, int], report: _Report) -> None:
    total = sum(weights.values()) * MAX_NODE_SCORE
    if total > _MAX_TOTAL or any(weight < 0 for weight in weights.values()):
        report.add("score plugins: total score of Score plugins could overflow")


def _check_single_points(
    plugins: Plugins, expanded: Mapping[str, tuple[str, ...]], report: _Report
) -> None:
    name = json.dumps(report.scheduler_name)
    # Two in the queueSort set itself are refused with their field path already.
    named = plugins["queueSort"].get("enabled", ())
    count = len(expanded["queueSort"])
    missing = any(entry["name"] in report.missing for entry in named)
    if count != 1 and len(named) < 2 and not missing:
        text = f"only one queue sort plugin required for profile with scheduler name {name}"
        report.add(f"{text}, but got {count}")
    missing = any(e["name"] in report.missing for e in plugins["bind"].get("enabled", ()))
    if not expanded["bind"] and not missing:
        report.add(f"at least one bind plugin is needed for profile with scheduler name {name}")
