"""A sandbox of another process, behind the same port."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal

from scheduler_core.ports import (
    ApiError,
    Gone,
    Json,
    ObjectList,
    PodCondition,
    Subscription,
    WatchEvent,
)

from .connections import Connections, Line
from .objects import clone, key_of, name_of, namespace_of
from .packed import Unpacker
from .sharing import Sharing
from .watch import StreamEvent
from .wire import error_of

__all__ = ["RemoteSandbox"]

log = logging.getLogger(__name__)

#: a watch that hears nothing for so long is begun again; the server speaks every 5 s
_SILENCE_SECONDS: Final = 20.0
_FIRST_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 2.0


class RemoteSandbox:
    """`Cluster` over a unix socket. Thread-safe; connections are kept and used again.

    Every method raises ApiError 503 `sandbox is not running` where nobody serves, and 504 where
    the answer takes longer than `timeout` seconds.
    """

    def __init__(
        self, socket_path: str | Path, *, actor: str = "remote", timeout: float = 30.0
    ) -> None:
        self.actor = actor
        self._connections = Connections(Path(socket_path), timeout)
        self._sharing = Sharing()

    def as_actor(self, actor: str) -> RemoteSandbox:
        """The same sandbox, acting in this name."""
        view = RemoteSandbox.__new__(RemoteSandbox)
        view.actor = actor
        view._connections = self._connections
        view._sharing = self._sharing
        return view

    def close(self) -> None:
        """Close idle connections. Watches are stopped through their subscriptions."""
        self._connections.close()

    def command(self, name: str, **arguments: Any) -> Any:
        """Have the owner run one of its commands (see SandboxServer)."""
        return self._call("command", name=name, arguments=arguments)

    def list_watch(self, kind: str, sink: Callable[[WatchEvent], None]) -> Subscription:
        watch = _RemoteWatch(self, self._connections, kind, sink)
        watch.start()
        return watch

    def get(self, kind: str, namespace: str, name: str) -> Json:
        found: Json = self._call("get", kind=kind, namespace=namespace, name=name)
        return found

    def list(
        self,
        kind: str,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
    ) -> ObjectList:
        found, _ = self.list_of_store(kind, namespace, label_selector, field_selector)
        return found

    def list_of_store(
        self,
        kind: str,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
    ) -> tuple[ObjectList, str]:
        """The list, and the identity of the store that it is of."""
        request = self._request(
            "list",
            kind=kind,
            namespace=namespace,
            label_selector=label_selector,
            field_selector=field_selector,
        )
        items: Sequence[Json]
        read = partial(_with_items, share=self.share)
        found, items = self._connections.call(request, read)
        return ObjectList(items, found["resource_version"]), str(found["store"])

    def share(self, obj: Json) -> Json:
        """`obj`, with the parts that it has in common with others kept once."""
        return self._sharing.of(obj)

    def share_part(self, part: Any) -> Any:
        """As `share`, for a part of an object."""
        return self._sharing.part(part)

    def create(self, kind: str, obj: Json) -> Json:
        found: Json = self._call("create", kind=kind, object=clone(obj))
        return found

    def create_all(self, objects: Sequence[Json]) -> Sequence[Json]:
        """Create objects of any kinds, all or none."""
        found: Sequence[Json] = self._call("create_all", objects=[clone(obj) for obj in objects])
        return found

    def update(self, kind: str, obj: Json, *, subresource: str = "") -> Json:
        found: Json = self._call("update", kind=kind, object=clone(obj), subresource=subresource)
        return found

    def patch(
        self, kind: str, namespace: str, name: str, patch: Json, *, subresource: str = ""
    ) -> Json:
        found: Json = self._call(
            "patch",
            kind=kind,
            namespace=namespace,
            name=name,
            patch=clone(patch),
            subresource=subresource,
        )
        return found

    def delete(
        self,
        kind: str,
        namespace: str,
        name: str,
        *,
        uid: str = "",
        grace_period_seconds: int | None = None,
    ) -> None:
        self._call(
            "delete",
            kind=kind,
            namespace=namespace,
            name=name,
            uid=uid,
            grace_period_seconds=grace_period_seconds,
        )

    def bind(self, namespace: str, name: str, uid: str, node: str) -> None:
        self._call("bind", namespace=namespace, name=name, uid=uid, node=node)

    def patch_pod_status(
        self,
        namespace: str,
        name: str,
        uid: str,
        *,
        condition: PodCondition | None = None,
        nominated_node_name: str | None = None,
    ) -> None:
        self._call(
            "patch_pod_status",
            namespace=namespace,
            name=name,
            uid=uid,
            condition=None if condition is None else asdict(condition),
            nominated_node_name=nominated_node_name,
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
        try:
            self._call(
                "emit_event",
                regarding=clone(regarding),
                type=type,
                reason=reason,
                action=action,
                note=note,
                reporting_controller=reporting_controller,
            )
        except ApiError:
            log.debug("an event was not recorded", exc_info=True)

    def _call(self, op: str, **arguments: Any) -> Any:
        return self._connections.call(self._request(op, **arguments), _whole)

    def _request(self, op: str, **arguments: Any) -> Json:
        return {"op": op, "actor": self.actor, "args": arguments}


def _with_items(line: Line, found: Json, share: Callable[[Json], Json]) -> tuple[Json, list[Json]]:
    items: list[Json] = []
    while len(items) < found["count"]:
        items += map(share, line.receive()["items"])
    return found, items


def _whole(line: Line, answer: Any) -> Any:
    return answer


class _RemoteWatch:
    """List and watch of one kind; after a break it goes on where it was, or tells differences."""

    def __init__(
        self,
        cluster: RemoteSandbox,
        connections: Connections,
        kind: str,
        sink: Callable[[WatchEvent], None],
    ) -> None:
        self._cluster = cluster
        self._connections = connections
        self._kind = kind
        self._sink = sink
        self._known: dict[str, Json] = {}
        self._version: int | None = None  # None: list again
        self._store = ""
        self._lock = threading.RLock()  # held while the sink is told
        self._stopped = threading.Event()
        self._line: Line | None = None
        self._thread = threading.Thread(target=self._run, name=f"watch-{kind}", daemon=True)

    def start(self) -> None:
        """Tell the initial list on the caller's thread, then go on in the background.

        Raises:
            ApiError: the sandbox is not running, or refuses.
        """
        self._relist()
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        with self._lock:
            line, self._line = self._line, None
        if line is not None:
            line.close()

    def _run(self) -> None:
        pause = _FIRST_PAUSE
        while not self._stopped.is_set():
            try:
                self._relist_if_needed()
                self._follow()
                pause = _FIRST_PAUSE
            except Gone:
                self._version = None
            except (ApiError, OSError):
                self._stopped.wait(pause)
                pause = min(pause * 2, _LONGEST_PAUSE)

    def _relist_if_needed(self) -> None:
        if self._version is None:
            self._relist()

    def _relist(self) -> None:
        found, store = self._cluster.list_of_store(self._kind)
        objects = {key_of(namespace_of(obj), name_of(obj)): obj for obj in found.items}
        with self._lock:
            for key, old in tuple(self._known.items()):
                new = objects.get(key)
                if new is None or new["metadata"]["uid"] != old["metadata"]["uid"]:
                    self._tell("DELETED", key, old)
            for key, obj in objects.items():
                before = self._known.get(key)
                if before is None:
                    self._tell("ADDED", key, obj)
                elif _version(before) != _version(obj):
                    self._tell("MODIFIED", key, obj)
            if not self._stopped.is_set():
                self._sink(WatchEvent("SYNCED", self._kind, {}))
        self._version, self._store = int(found.resource_version), store

    def _follow(self) -> None:
        """Hear events until the connection breaks, which it tells by an exception."""
        line = self._connections.open()
        with self._lock:
            if self._stopped.is_set():
                line.close()
                return
            self._line = line
        try:
            where = {"resource_version": self._version, "store": self._store}
            request = {"op": "watch", "actor": self._cluster.actor}
            line.send({**request, "args": {"kind": self._kind, **where}})
            answer = line.receive()
            if "error" in answer:
                raise error_of(answer["error"])
            line.silence(_SILENCE_SECONDS)
            unpacker = Unpacker(self._cluster.share_part)
            while not self._stopped.is_set():
                self._hear(unpacker.unpack(line.receive()))
        except ValueError:
            return  # stop() closed the line under the reader
        finally:
            line.close()

    def _hear(self, events: Sequence[StreamEvent]) -> None:
        with self._lock:
            for event in events:
                if event.type != "BOOKMARK":
                    obj = event.object
                    self._tell(event.type, key_of(namespace_of(obj), name_of(obj)), obj)
                self._version = event.resource_version

    def _tell(self, type_: Literal["ADDED", "MODIFIED", "DELETED"], key: str, obj: Json) -> None:
        if self._stopped.is_set():
            return
        if type_ == "DELETED":
            self._known.pop(key, None)
        else:
            self._known[key] = obj
        self._sink(WatchEvent(type_, self._kind, obj))


def _version(obj: Json) -> str:
    return str(obj["metadata"].get("resourceVersion"))
