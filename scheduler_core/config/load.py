"""Text -> checked SchedulerConfiguration, or every fault at once."""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from scheduler_core.config import types
from scheduler_core.config.args_validation import CHECKED_WHEN_MADE, validate_args
from scheduler_core.config.completed import completed_document
from scheduler_core.config.component import PLUGIN_POINTS, decode
from scheduler_core.config.defaults import (
    API_VERSION,
    KIND,
    default_args,
    set_args_defaults,
    set_defaults,
)
from scheduler_core.config.document import parse_document
from scheduler_core.config.durations import seconds
from scheduler_core.config.errors import Fault, Faults, InvalidConfiguration
from scheduler_core.config.merge import expand_plugins, merge_plugins, profile_fault
from scheduler_core.config.out_of_tree import Resolved, resolve_plugins
from scheduler_core.config.types import PluginRef, Profile, SchedulerConfiguration
from scheduler_core.config.validation import validate
from scheduler_core.framework.runtime.registry import Registry

__all__ = [
    "configuration_from",
    "default_configuration",
    "load_configuration",
    "load_configuration_file",
]

Json = dict[str, Any]


def default_configuration(registry: Registry) -> SchedulerConfiguration:
    """The default profile with those default plugins that ``registry`` has."""
    return configuration_from({"apiVersion": API_VERSION, "kind": KIND}, registry)


def load_configuration_file(
    path: str | Path, registry: Registry, *, dotted_plugins: bool = True
) -> SchedulerConfiguration:
    """Read a YAML or JSON file.

    Raises:
        InvalidConfiguration: it cannot be read, or is faulty; the text begins with the file's name.
    """
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise InvalidConfiguration([Fault("", f"cannot be read: {reason}")], str(path)) from error
    return load_configuration(text, registry, source=str(path), dotted_plugins=dotted_plugins)


def load_configuration(
    text: str,
    registry: Registry,
    *,
    source: str = "",
    dotted_plugins: bool | Collection[str] = True,
) -> SchedulerConfiguration:
    """Decode, default, validate and expand one document.

    Args:
        registry: the in-tree plugins; entry points of ``kubesched.plugins`` are found by name.
        source: what errors call the text, usually a file's name.
        dotted_plugins: whether a plugin may be named ``package.module:Class``, which imports it;
            False, or the paths that are known already, for text that came over the network.

    Raises:
        InvalidConfiguration: with every fault.
    """
    tree = parse_document(text, source)
    return configuration_from(tree, registry, source=source, dotted_plugins=dotted_plugins)


def configuration_from(
    tree: Mapping[str, Any],
    registry: Registry,
    *,
    source: str = "",
    dotted_plugins: bool | Collection[str] = True,
) -> SchedulerConfiguration:
    """``load_configuration`` of a document that is parsed already (it is not changed).

    Raises:
        InvalidConfiguration: with every fault.
    """
    faults = Faults()
    config = decode(tree, faults)
    if config is None:
        raise InvalidConfiguration(faults, source)
    resolved = resolve_plugins(config, registry, dotted=dotted_plugins)
    faults.extend(resolved.faults)
    set_defaults(config)
    for profile in config["profiles"]:
        _complete_profile(profile, resolved.registry)
    validate(config, faults)
    ignored = _ignored_by_scheduler(config["extenders"])
    profiles = [_profile(p, config, resolved, ignored, faults) for p in config["profiles"]]
    if faults:
        raise InvalidConfiguration(faults, source)
    return _build(config, profiles, resolved, source)


def _complete_profile(profile: Json, registry: Registry) -> None:
    """Merged plugins, and arguments for every plugin that takes some, in place."""
    profile["plugins"] = merge_plugins(profile.get("plugins", {}), registry)
    entries = profile.setdefault("pluginConfig", [])
    for entry in entries:
        set_args_defaults(entry.get("name", ""), entry.setdefault("args", {}))
    present = {entry.get("name", "") for entry in entries}
    for name in sorted(_enabled(profile["plugins"]) - present):
        args = default_args(name)
        if args is not None:
            entries.append({"name": name, "args": args})


def _enabled(plugins: Mapping[str, Json]) -> set[str]:
    return {entry["name"] for point in PLUGIN_POINTS for entry in plugins[point].get("enabled", ())}


# -- profiles --------------------------------------------------------------------------------------


def _profile(
    profile: Json,
    config: Json,
    resolved: Resolved,
    ignored: list[str],
    faults: Faults,
) -> Profile:
    name = profile.get("schedulerName", "")
    args = {e.get("name", ""): e.get("args", {}) for e in profile["pluginConfig"]}
    for plugin in sorted(CHECKED_WHEN_MADE & _enabled(profile["plugins"])):
        found = Faults()
        validate_args(plugin, args[plugin], "", found)
        for fault in found:
            text = f'initializing plugin "{plugin}": {fault}'
            faults.add("", profile_fault(name, text))
    if ignored and "NodeResourcesFit" not in args:
        faults.add("", "can't find NodeResourcesFitArgs in plugin config")
    shares = profile if "percentageOfNodesToScore" in profile else config
    plugins = expand_plugins(
        profile["plugins"], resolved.registry, name, faults, refused=resolved.refused
    )
    return Profile(
        scheduler_name=name,
        percentage_of_nodes_to_score=shares["percentageOfNodesToScore"],
        plugins=MappingProxyType(plugins),
        plugin_args=_plugin_args(plugins, args, ignored),
    )


def _plugin_args(
    plugins: Mapping[str, tuple[PluginRef, ...]], args: Mapping[str, Json], ignored: list[str]
) -> Mapping[str, Mapping[str, Any]]:
    names = dict.fromkeys(ref.name for refs in plugins.values() for ref in refs)
    found = {name: copy.deepcopy(args.get(name, {})) for name in names}
    if ignored and "NodeResourcesFit" in found:
        # What extenders look after is none of the plugin's business.
        found["NodeResourcesFit"]["ignoredResources"] = list(ignored)
    return MappingProxyType({name: MappingProxyType(value) for name, value in found.items()})


def _ignored_by_scheduler(extenders: list[Json]) -> list[str]:
    return sorted(
        {
            resource.get("name", "")
            for extender in extenders
            for resource in extender.get("managedResources", ())
            if resource.get("ignoredByScheduler")
        }
    )


# -- the result ------------------------------------------------------------------------------------


def _build(
    config: Json, profiles: list[Profile], resolved: Resolved, source: str
) -> SchedulerConfiguration:
    election, connection = config["leaderElection"], config["clientConnection"]
    return SchedulerConfiguration(
        parallelism=config["parallelism"],
        leader_election=types.LeaderElection(
            leader_elect=election["leaderElect"],
            lease_duration=seconds(election["leaseDuration"]),
            renew_deadline=seconds(election["renewDeadline"]),
            retry_period=seconds(election["retryPeriod"]),
            resource_lock=election["resourceLock"],
            resource_name=election["resourceName"],
            resource_namespace=election["resourceNamespace"],
        ),
        client_connection=types.ClientConnection(
            kubeconfig=connection["kubeconfig"],
            accept_content_types=connection["acceptContentTypes"],
            content_type=connection["contentType"],
            qps=connection["qps"],
            burst=connection["burst"],
        ),
        percentage_of_nodes_to_score=config["percentageOfNodesToScore"],
        pod_initial_backoff_seconds=config["podInitialBackoffSeconds"],
        pod_max_backoff_seconds=config["podMaxBackoffSeconds"],
        profiles=tuple(profiles),
        extenders=tuple(_extender(entry) for entry in config["extenders"]),
        enable_profiling=config["enableProfiling"],
        enable_contention_profiling=config.get("enableContentionProfiling", False),
        delay_cache_until_active=config["delayCacheUntilActive"],
        registry=resolved.registry,
        source=source,
        _completed=completed_document(config, resolved.dotted),
    )


def _extender(entry: Json) -> types.Extender:
    tls = entry.get("tlsConfig")
    return types.Extender(
        url_prefix=entry["urlPrefix"],
        filter_verb=entry.get("filterVerb", ""),
        preempt_verb=entry.get("preemptVerb", ""),
        prioritize_verb=entry.get("prioritizeVerb", ""),
        weight=entry.get("weight", 0),
        bind_verb=entry.get("bindVerb", ""),
        enable_https=entry.get("enableHTTPS", False),
        tls=None if tls is None else _tls(tls),
        http_timeout=seconds(entry["httpTimeout"]),
        node_cache_capable=entry.get("nodeCacheCapable", False),
        managed_resources=tuple(
            types.ManagedResource(r.get("name", ""), r.get("ignoredByScheduler", False))
            for r in entry.get("managedResources", ())
        ),
        ignorable=entry.get("ignorable", False),
    )


def _tls(tls: Json) -> types.ExtenderTLS:
    return types.ExtenderTLS(
        insecure=tls.get("insecure", False),
        server_name=tls.get("serverName", ""),
        cert_file=tls.get("certFile", ""),
        key_file=tls.get("keyFile", ""),
        ca_file=tls.get("caFile", ""),
        cert_data=tls.get("certData", ""),
        key_data=tls.get("keyData", ""),
        ca_data=tls.get("caData", ""),
    )
