"""KubeCluster: a real cluster behind the `Cluster` port."""

from __future__ import annotations

import logging
import random as standard_random
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final, Literal, Protocol

from scheduler_core.api.kinds import Kind
from scheduler_core.clock import RealClock
from scheduler_core.cluster.sharing import Sharing
from scheduler_core.ports import (
    ApiError,
    Clock,
    Json,
    ObjectList,
    PodCondition,
    Subscription,
    WatchEvent,
)

from . import binding
from .api import CONNECTIONS, KubeApi, Patience
from .election import LeaderElector, LeaseSettings
from .event_writer import Emission, EventWriter, reference_of
from .fence import NO_FENCE, Fence, Gate
from .pod_status import patch_pod_status
from .rate_limit import RateLimit
from .reflector import Reflector, WatchOptions, list_pages
from .resources import kind_named, not_served, object_path, path_of, typed, versions_of
from .statuses import LostAnswer
from .timing import Random, RealTiming, Timing
from .transport import MERGE_PATCH, Transport

__all__ = ["LIVE_PODS", "Endpoint", "KubeCluster"]

log = logging.getLogger(__name__)

#: field selectors for schedulers: a pod that has ended holds nothing
LIVE_PODS: Final[Mapping[str, str]] = MappingProxyType(
    {"Pod": "status.phase!=Succeeded,status.phase!=Failed"}
)
#: connections for watches and the lease
_WATCHES, _LEASE = 32, 1
#: seconds that events may still be written at the end
_EVENTS_AT_END: Final = 2.0
#: for people who wait for an answer
_AT_ONCE: Final = Patience(timeout=10.0, budget=0.0)


class Endpoint(Protocol):
    """Makes transports to one API server; `connect.Connection` is the real one."""

    server: str

    def open(self, connections: int, *, waits: bool = True) -> Transport:
        """With at most so many connections at once."""


class KubeCluster:
    """`Cluster` over HTTP. Every method may be called from any thread.

    Requests are limited to ``qps`` a second in the long run and ``burst`` at once (a negative
    ``qps``: not limited); events have a limit of their own.

    Args:
        fields: kind -> field selector of its watches.
        fence: asked before every write; see `elect`.
        clock: time of day, for times that are written.
        timing, random: waits and their spread.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        qps: float = 50.0,
        burst: int = 100,
        fields: Mapping[str, str] = MappingProxyType({}),
        fence: Fence = NO_FENCE,
        clock: Clock | None = None,
        timing: Timing | None = None,
        random: Random | None = None,
        options: WatchOptions | None = None,
        patience: Patience | None = None,
    ) -> None:
        self.server = endpoint.server
        self._endpoint = endpoint
        self._clock = clock or RealClock()
        timing = timing or RealTiming()
        self._gate = Gate(fence)
        self._fields = fields
        self._options = options
        self._api = KubeApi(
            endpoint.open(CONNECTIONS),
            endpoint.open(_WATCHES, waits=False),
            timing,
            random or standard_random.random,
            RateLimit(qps, burst, timing),
            self._gate,
            patience or Patience(),
        )
        self._event_limit = RateLimit(qps, burst, timing)
        self._events = EventWriter(self._api.with_limit(self._event_limit), self._clock)
        self._sharing = Sharing()
        self._lock = threading.Lock()
        self._reflectors: list[Reflector] = []
        self._versions: dict[str, str] = {}
        self._troubles: dict[str, str] = {}
        self._pods: Reflector | None = None

    def hurry(self) -> None:
        """The end is near: what fails from now on is not tried again."""
        self._api.hurried.set()

    def close(self) -> None:
        """Stop watches, write the last events, close connections. May be called twice."""
        with self._lock:
            reflectors = tuple(self._reflectors)
        for reflector in reflectors:
            reflector.stop()
        self._api.hurried.set()
        self._events.close(_EVENTS_AT_END)
        self._api.closed.set()
        self._api.transport.close()
        self._api.watches.close()

    def __enter__(self) -> KubeCluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def as_actor(self, actor: str) -> KubeCluster:
        """Itself: a real cluster knows who acts by the credentials."""
        return self

    def limit(self, qps: float, burst: int) -> None:
        """Another rate limit, from now on."""
        self._api.limit.change(qps, burst)
        self._event_limit.change(qps, burst)

    def version(self) -> str:
        """The server's, as v1.36.0; also a way to see at once whether it can be reached.

        Raises:
            ApiError
        """
        api = replace(self._api, patience=_AT_ONCE)
        return str(api.get("/version").get("gitVersion") or "unknown")

    @property
    def troubles(self) -> Mapping[str, str]:
        """Kind -> what keeps its watch from hearing, of those that do not."""
        with self._lock:
            return dict(self._troubles)

    @property
    def events_dropped(self) -> int:
        """Events that were not written because too many waited."""
        return self._events.dropped

    def elect(
        self,
        settings: LeaseSettings,
        identity: str,
        on_change: Callable[[bool], None] = lambda leads: None,
    ) -> LeaderElector:
        """A candidate for a lease of this cluster, to be started. From now on this cluster is
        written to only while it leads. It has a connection of its own."""
        elector = LeaderElector(
            settings,
            identity,
            self._endpoint.open(_LEASE),
            clock=self._clock,
            timing=self._api.timing,
            random=self._api.random,
            on_change=on_change,
        )
        self._gate.fence = elector
        return elector

    def check_writable(self) -> None:
        """As `ports.Fenced`."""
        self._gate.check()

    # -- reading -----------------------------------------------------------------------------------

    def list_watch(self, kind: str, sink: Callable[[WatchEvent], None]) -> Subscription:
        reflector = Reflector(
            self._api,
            kind_named(kind),
            sink,
            fields=self._fields.get(kind, ""),
            options=self._options,
            share=self._sharing.of,
            on_version=self._version_found,
            on_trouble=self._trouble_changed,
            ended=self._ended,
        )
        with self._lock:
            self._reflectors.append(reflector)
            if kind == "Pod":
                self._pods = reflector
        try:
            # A server that has just kept somebody waiting would keep everybody waiting.
            reflector.start(at_once=not self._troubles)
        except ApiError:
            reflector.stop()
            raise
        return reflector

    def get(self, kind: str, namespace: str, name: str) -> Json:
        found = kind_named(kind)
        version = self._version_of(found)
        path = object_path(found, version, namespace, name)
        return typed(found, version, self._api.get(path))

    def list(
        self,
        kind: str,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
    ) -> ObjectList:
        found = kind_named(kind)
        version = self._version_of(found)
        selectors = (("labelSelector", label_selector), ("fieldSelector", field_selector))
        query = [(key, value) for key, value in selectors if value]
        path = path_of(found, version, namespace or "")
        return ObjectList(*list_pages(self._api, found, path, query, version))

    # -- writing -----------------------------------------------------------------------------------

    def create(self, kind: str, obj: Json) -> Json:
        found = kind_named(kind)
        version = self._version_of(found)
        metadata = obj.get("metadata") or {}
        namespace = str(metadata.get("namespace") or "default")
        path = path_of(found, version, namespace)
        return typed(found, version, self._api.call("POST", path, body=typed(found, version, obj)))

    def update(self, kind: str, obj: Json) -> Json:
        found = kind_named(kind)
        version = self._version_of(found)
        metadata = obj.get("metadata") or {}
        namespace, name = str(metadata.get("namespace") or ""), str(metadata.get("name") or "")
        path = object_path(found, version, namespace, name)
        return typed(found, version, self._api.call("PUT", path, body=typed(found, version, obj)))

    def patch(
        self, kind: str, namespace: str, name: str, patch: Json, *, subresource: str = ""
    ) -> Json:
        found = kind_named(kind)
        version = self._version_of(found)
        path = object_path(found, version, namespace, name, subresource)
        answer = self._api.call(
            "PATCH", path, body=patch, content_type=MERGE_PATCH, repeatable=_is_safe_twice(patch)
        )
        return typed(found, version, answer)

    def delete(
        self,
        kind: str,
        namespace: str,
        name: str,
        *,
        uid: str = "",
        grace_period_seconds: int | None = None,
    ) -> None:
        found = kind_named(kind)
        path = object_path(found, self._version_of(found), namespace, name)
        options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if uid:
            options["preconditions"] = {"uid": uid}
        if grace_period_seconds is not None:
            options["gracePeriodSeconds"] = grace_period_seconds
        # With the uid nobody else can be hit, however often it is sent.
        self._api.call("DELETE", path, body=options, repeatable=bool(uid))

    def bind(self, namespace: str, name: str, uid: str, node: str) -> None:
        binding.bind(self._api, binding.Binding(namespace, name, uid, node))

    def patch_pod_status(
        self,
        namespace: str,
        name: str,
        uid: str,
        *,
        condition: PodCondition | None = None,
        nominated_node_name: str | None = None,
    ) -> None:
        patch_pod_status(
            self._api,
            namespace,
            name,
            uid,
            condition,
            nominated_node_name,
            seen=lambda: self._seen(f"{namespace or 'default'}/{name}"),
            now=self._clock.now(),
        )

    def emit_event(
        self,
        regarding: Mapping[str, Any],
        *,
        type: Literal["Normal", "Warning"],
        reason: str,
        action: str,
        note: str,
        reporting_controller: str,
    ) -> None:
        reference = reference_of(regarding)
        now = self._clock.now()
        self._events.emit(
            Emission(reference, type, reason, action, note, reporting_controller, now)
        )

    # -- what is known of the server ---------------------------------------------------------------

    def _seen(self, key: str) -> Json | None:
        """The pod as the watch has it, while that hears."""
        pods = self._pods
        return None if pods is None or "Pod" in self._troubles else pods.known(key)

    def _version_of(self, kind: Kind) -> str:
        """The apiVersion of a kind that this server has.

        Raises:
            ApiError: 404, none of them.
        """
        versions = versions_of(kind)
        if len(versions) == 1:
            return versions[0]
        known = self._versions.get(kind.kind)
        return known or self._look_for(kind, versions)

    def _look_for(self, kind: Kind, versions: tuple[str, ...]) -> str:
        for version in versions:
            try:
                self._api.get(path_of(kind, version), [("limit", "1")])
            except LostAnswer:
                raise
            except ApiError as refusal:
                if refusal.code == 404:
                    continue
                raise
            self._version_found(kind.kind, version)
            return version
        raise not_served(kind.kind)

    def _version_found(self, kind: str, version: str) -> None:
        self._versions[kind] = version

    def _trouble_changed(self, kind: str, text: str) -> None:
        with self._lock:
            if text and any(reflector.kind == kind for reflector in self._reflectors):
                self._troubles[kind] = text
            else:
                self._troubles.pop(kind, None)

    def _ended(self, reflector: Reflector) -> None:
        with self._lock:
            if reflector in self._reflectors:
                self._reflectors.remove(reflector)
            if self._pods is reflector:
                self._pods = None
            if all(other.kind != reflector.kind for other in self._reflectors):
                self._troubles.pop(reflector.kind, None)  # nobody listens any more


def _is_safe_twice(patch: Json) -> bool:
    """A merge patch says how it shall be, so it may be sent again unless it names a version."""
    metadata = patch.get("metadata")
    return not (isinstance(metadata, Mapping) and metadata.get("resourceVersion"))
