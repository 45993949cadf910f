"""The completed document: every default filled in, in the field order of the v1 types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from scheduler_core.config.component import PLUGIN_POINTS
from scheduler_core.config.defaults import API_VERSION, KIND

__all__ = ["completed_document"]

Json = dict[str, Any]

_FIELDS: Final = (
    "parallelism",
    "leaderElection",
    "clientConnection",
    "enableProfiling",
    "enableContentionProfiling",
    "percentageOfNodesToScore",
    "podInitialBackoffSeconds",
    "podMaxBackoffSeconds",
)


def completed_document(config: Mapping[str, Any], dotted: Mapping[str, str]) -> Json:
    """What ``/configz`` shows: only multiPoint has the merged plugins, weights are 0 where unset,
    arguments carry apiVersion and kind.

    ``dotted`` is plugin name -> dotted path, which is written back so that the document can be
    loaded again.
    """
    answer: Json = {"apiVersion": API_VERSION, "kind": KIND}
    answer.update((key, config[key]) for key in _FIELDS if key in config)
    answer["profiles"] = [_profile(profile, dotted) for profile in config["profiles"]]
    if config["extenders"]:
        answer["extenders"] = list(config["extenders"])
    answer["delayCacheUntilActive"] = config["delayCacheUntilActive"]
    return answer


def _profile(profile: Mapping[str, Any], dotted: Mapping[str, str]) -> Json:
    answer: Json = {"schedulerName": profile.get("schedulerName", "")}
    if "percentageOfNodesToScore" in profile:
        answer["percentageOfNodesToScore"] = profile["percentageOfNodesToScore"]
    answer["plugins"] = {
        point: _plugin_set(profile["plugins"][point], dotted) for point in PLUGIN_POINTS
    }
    answer["pluginConfig"] = [_plugin_config(entry, dotted) for entry in profile["pluginConfig"]]
    return answer


def _plugin_set(found: Mapping[str, Any], dotted: Mapping[str, str]) -> Json:
    return {
        key: [{**entry, "name": dotted.get(entry["name"], entry["name"])} for entry in entries]
        for key, entries in found.items()
    }


def _plugin_config(entry: Mapping[str, Any], dotted: Mapping[str, str]) -> Json:
    name, args = entry.get("name", ""), entry.get("args", {})
    head = {key: args[key] for key in ("apiVersion", "kind") if key in args}
    return {"name": dotted.get(name, name), "args": {**head, **args}}
