"""What is wrong with a defaulted configuration, in the order and words of kube-scheduler 1.36."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from scheduler_core.api.errors import duplicate, invalid, required
from scheduler_core.api.resource_names import is_extended_resource
from scheduler_core.api.syntax import check_label_key
from scheduler_core.config.args_validation import CHECKED_WHEN_MADE, validate_args
from scheduler_core.config.component import PLUGIN_POINTS
from scheduler_core.config.defaults import API_VERSION
from scheduler_core.config.durations import seconds
from scheduler_core.config.errors import Faults
from scheduler_core.config.merge import REMOVED_PLUGINS

__all__ = ["validate"]

Config = Mapping[str, Any]


def validate(config: Config, faults: Faults) -> None:
    """Note every fault that has a field path. Plugins must be merged and arguments defaulted."""
    _client_connection(config["clientConnection"], faults)
    _leader_election(config["leaderElection"], faults)
    parallelism = config["parallelism"]
    if parallelism <= 0:
        text = "should be an integer value greater than zero"
        faults.add("parallelism", invalid(parallelism, text))
    _profiles(config["profiles"], faults)
    _percentage(config["percentageOfNodesToScore"], "percentageOfNodesToScore", faults)
    initial, longest = config["podInitialBackoffSeconds"], config["podMaxBackoffSeconds"]
    if initial <= 0:
        faults.add("podInitialBackoffSeconds", invalid(initial, "must be greater than 0"))
    if longest < initial:
        text = "must be greater than or equal to PodInitialBackoffSeconds"
        faults.add("podMaxBackoffSeconds", invalid(longest, text))
    _extenders(config["extenders"], faults)


def _client_connection(connection: Config, faults: Faults) -> None:
    if connection["burst"] < 0:
        faults.add("clientConnection.burst", invalid(connection["burst"], "must be non-negative"))


def _leader_election(election: Config, faults: Faults) -> None:
    if not election["leaderElect"]:
        return
    for name in ("leaseDuration", "renewDeadline", "retryPeriod"):
        if seconds(election[name]) <= 0:
            faults.add(
                f"leaderElection.{name}", invalid(election[name], "must be greater than zero")
            )
    if seconds(election["leaseDuration"]) <= seconds(election["renewDeadline"]):
        text = invalid(election["leaseDuration"], "must be greater than `RenewDeadline`")
        faults.add("leaderElection.leaseDuration", text)
    lock = election["resourceLock"]
    if lock != "leases":
        text = invalid(lock, 'resourceLock value must be "leases"')
        faults.add("leaderElection.resourceLock", text)


def _percentage(value: int, path: str, faults: Faults) -> None:
    if not 0 <= value <= 100:
        faults.add(path, invalid(value, "not in valid range [0-100]"))


# -- profiles --------------------------------------------------------------------------------------


def _profiles(profiles: Sequence[Config], faults: Faults) -> None:
    names: set[str] = set()
    for index, profile in enumerate(profiles):
        path = f"profiles[{index}]"
        name = profile.get("schedulerName", "")
        if not name:
            faults.add(f"{path}.schedulerName", required())
        if "percentageOfNodesToScore" in profile:
            share = profile["percentageOfNodesToScore"]
            _percentage(share, f"{path}.percentageOfNodesToScore", faults)
        _removed_plugins(profile["plugins"], f"{path}.plugins", faults)
        _plugin_config(profile["pluginConfig"], f"{path}.pluginConfig", faults)
        if name in names:
            # The reference prints the first one's path here, which comes out as {}.
            faults.add(f"{path}.schedulerName", duplicate({}))
        names.add(name)
    _common_queue_sort(profiles, faults)


def _removed_plugins(plugins: Config, path: str, faults: Faults) -> None:
    for point in PLUGIN_POINTS:
        if point == "multiPoint":
            continue
        for index, entry in enumerate(plugins[point].get("enabled", ())):
            if entry["name"] in REMOVED_PLUGINS:
                where = f"{path}.{point}.enabled[{index}]"
                faults.add(where, invalid(entry["name"], _REMOVED))


_REMOVED = f'was invalid in version "v1" (KubeSchedulerConfiguration is version "{API_VERSION}")'


def _plugin_config(entries: Sequence[Config], path: str, faults: Faults) -> None:
    seen: set[str] = set()
    for index, entry in enumerate(entries):
        where, name = f"{path}[{index}]", entry.get("name", "")
        if name in seen:
            faults.add(where, duplicate(name))
        seen.add(name)
        if name in REMOVED_PLUGINS:
            faults.add(where, invalid(name, _REMOVED))
        elif name not in CHECKED_WHEN_MADE:
            validate_args(name, entry.get("args", {}), f"{where}.args", faults)


def _common_queue_sort(profiles: Sequence[Config], faults: Faults) -> None:
    """All profiles share one queue, so they must sort it alike."""
    common = profiles[0]["plugins"]["queueSort"]
    count = len(common.get("enabled", ()))
    if count > 1:
        text = invalid(count, "only one queue sort plugin can be enabled")
        faults.add("profiles[0].plugins.queueSort.Enabled", text)
    sorter = common["enabled"][0]["name"] if count else ""
    args = _args_of(profiles[0], sorter)
    for index, profile in enumerate(profiles[1:], start=1):
        path = f"profiles[{index}]"
        own = profile["plugins"]["queueSort"]
        if own != common:
            text = invalid(own, "must be the same for all profiles")
            faults.add(f"{path}.plugins.queueSort", text)
        own_args = _args_of(profile, sorter)
        if own_args is not None and own_args != args:
            text = invalid(own_args, "queueSort must be the same for all profiles")
            faults.add(f"{path}.pluginConfig.args", text)


def _args_of(profile: Config, plugin: str) -> Any | None:
    return next((e.get("args") for e in profile["pluginConfig"] if e.get("name") == plugin), None)


# -- extenders -------------------------------------------------------------------------------------


def _extenders(extenders: Sequence[Config], faults: Faults) -> None:
    managed: set[str] = set()
    for index, extender in enumerate(extenders):
        path = f"extenders[{index}]"
        weight = extender.get("weight", 0)
        if extender.get("prioritizeVerb") and weight <= 0:
            text = invalid(weight, "must have a positive weight applied to it")
            faults.add(f"{path}.weight", text)
        for j, resource in enumerate(extender.get("managedResources", ())):
            where = f"{path}.managedResources[{j}].name"
            _managed_resource(resource.get("name", ""), where, managed, faults)
    binders = sum(1 for extender in extenders if extender.get("bindVerb"))
    if binders > 1:
        found = f"found {binders} extenders implementing bind"
        faults.add("extenders", invalid(found, "only one extender can implement bind"))


def _managed_resource(name: str, path: str, managed: set[str], faults: Faults) -> None:
    problem = check_label_key(name)
    if problem:
        faults.add(path, invalid(name, problem))
    elif not is_extended_resource(name):
        faults.add(path, invalid(name, "is an invalid extended resource name"))
    if name in managed:
        faults.add(path, invalid(name, "duplicate extender managed resource name"))
    managed.add(name)
