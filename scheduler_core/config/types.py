"""A configuration that has been checked: what a Scheduler is made from."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from scheduler_core.framework.runtime.registry import Registry

__all__ = [
    "ClientConnection",
    "Extender",
    "ExtenderTLS",
    "LeaderElection",
    "ManagedResource",
    "PluginRef",
    "Profile",
    "SchedulerConfiguration",
]


class PluginRef(NamedTuple):
    """A plugin at an extension point. ``weight`` is 0 at points that do not score."""

    name: str
    weight: int = 0


@dataclass(frozen=True, slots=True)
class Profile:
    """One schedulerName and its plugins.

    Attributes:
        percentage_of_nodes_to_score: 1 to 100; 0 is kube-scheduler's adaptive share.
        plugins: extension point -> plugins in order, every point of ``EXTENSION_POINTS``, with
            defaults merged and multiPoint expanded.
        plugin_args: plugin -> defaulted and validated arguments, in the v1 JSON shape; an entry for
            every plugin of the profile, ``{}`` where it takes none.
    """

    scheduler_name: str
    percentage_of_nodes_to_score: int
    plugins: Mapping[str, tuple[PluginRef, ...]]
    plugin_args: Mapping[str, Mapping[str, Any]]

    def plugin_names(self) -> tuple[str, ...]:
        """Every plugin of the profile once, in the order of the extension points."""
        return tuple(dict.fromkeys(ref.name for refs in self.plugins.values() for ref in refs))


@dataclass(frozen=True, slots=True)
class LeaderElection:
    """``leaderElection``; durations in seconds."""

    leader_elect: bool
    lease_duration: float
    renew_deadline: float
    retry_period: float
    resource_lock: str
    resource_name: str
    resource_namespace: str


@dataclass(frozen=True, slots=True)
class ClientConnection:
    """``clientConnection``."""

    kubeconfig: str
    accept_content_types: str
    content_type: str
    qps: float
    burst: int


@dataclass(frozen=True, slots=True)
class ManagedResource:
    """An extended resource that an extender looks after."""

    name: str
    ignored_by_scheduler: bool = False


@dataclass(frozen=True, slots=True)
class ExtenderTLS:
    """``tlsConfig`` of an extender. The ``*_data`` fields hold base64 text."""

    insecure: bool = False
    server_name: str = ""
    cert_file: str = ""
    key_file: str = ""
    ca_file: str = ""
    cert_data: str = field(default="", repr=False)
    key_data: str = field(default="", repr=False)
    ca_data: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Extender:
    """One entry of ``extenders``; ``http_timeout`` in seconds."""

    url_prefix: str
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    weight: int = 0
    bind_verb: str = ""
    enable_https: bool = False
    tls: ExtenderTLS | None = None
    http_timeout: float = 5.0
    node_cache_capable: bool = False
    managed_resources: tuple[ManagedResource, ...] = ()
    ignorable: bool = False


@dataclass(frozen=True, slots=True)
class SchedulerConfiguration:
    """A checked KubeSchedulerConfiguration.

    Attributes:
        percentage_of_nodes_to_score: as in Profile, for profiles that do not say.
        registry: where the profiles' plugins are, out-of-tree ones included.
        source: the file it came from, or "".
    """

    parallelism: int
    leader_election: LeaderElection
    client_connection: ClientConnection
    percentage_of_nodes_to_score: int
    pod_initial_backoff_seconds: int
    pod_max_backoff_seconds: int
    profiles: tuple[Profile, ...]
    extenders: tuple[Extender, ...]
    enable_profiling: bool
    enable_contention_profiling: bool
    delay_cache_until_active: bool
    registry: Registry = field(repr=False)
    source: str = ""
    _completed: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def completed(self) -> dict[str, Any]:
        """The v1 document with every default filled in, in the shape of ``/configz``: multiPoint
        holds the merged plugins, and it can be loaded again."""
        return copy.deepcopy(dict(self._completed))

    def profile(self, scheduler_name: str) -> Profile | None:
        """The profile of that name, or None."""
        return next((p for p in self.profiles if p.scheduler_name == scheduler_name), None)
