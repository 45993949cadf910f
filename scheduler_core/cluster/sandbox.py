"""SandboxCluster: an API server in memory, behind the same port as a real cluster.

It is no shortcut into the scheduler: it has resourceVersions, watches, conflicts, grace periods
and the words of kube-apiserver 1.36. What it stores outlives the process if it has a journal.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Final, TypeVar

from scheduler_core.ports import ApiError, Clock, Json, ObjectList, Subscription, WatchEvent

from . import pod_verbs
from .commit import PACE_SECONDS, GroupCommit
from .errors import not_found, unavailable
from .event_log import Emission, EventLog
from .journal import Journal, StoreSnapshot, Write
from .objects import key_of
from .requests import Requests, resource_of
from .resources import Resource
from .selection import everything, selection
from .store import Change, Store, Transaction
from .watch import Hub, StreamEvent, WatchSubscription, seen_through, watch_event

__all__ = ["ActingView", "SandboxCluster"]

T = TypeVar("T")

_HISTORY: Final = 20_000
_EVENTS_KEPT: Final = 2_000
_DEFAULT_ACTOR: Final = "sandbox"

_SYSTEM_OBJECTS: Final[tuple[Json, ...]] = (
    {"kind": "Namespace", "metadata": {"name": "default"}},
    {"kind": "Namespace", "metadata": {"name": "kube-system"}},
    {
        "kind": "PriorityClass",
        "metadata": {"name": "system-cluster-critical"},
        "value": 2_000_000_000,
    },
    {
        "kind": "PriorityClass",
        "metadata": {"name": "system-node-critical"},
        "value": 2_000_001_000,
    },
)


class SandboxCluster(Requests):
    """The store, its watchers and its journal; `Cluster` port plus what a host needs.

    Without a journal nothing runs beside the caller: a write is told to every watcher before it
    returns, and with a seeded `rng` and a virtual clock two runs are the same. With a journal a
    write returns, and is seen by readers and watchers, once its batch is kept; a sink must not
    write to the cluster then (it would wait for itself; RuntimeError).

    Thread-safe. To act in someone's name use `as_actor`; to pipeline writes use `batch`.
    """

    def __init__(
        self,
        clock: Clock,
        journal: Journal | None = None,
        *,
        rng: random.Random | None = None,
        history: int = _HISTORY,
        events_kept: int = _EVENTS_KEPT,
        pace: float = PACE_SECONDS,
        share: bool = True,
    ) -> None:
        """
        Args:
            rng: where uids and generated names come from; not to be seeded alike twice for one
                store, or a restored store gives a uid again.
            history: changes kept for watches that resume.
            events_kept: Events stored before the oldest is removed; 0 stores none.
            pace: seconds between two batches of the journal.
            share: keep equal parts of objects once; it costs a tenth of a write and is worth it
                for a store that lives long.

        Raises:
            ApiError: 503, the journal refused the first objects (namespaces, priority classes).
        """
        self._prepare(clock, journal, rng, history, events_kept, pace, share)
        self._start()

    @classmethod
    def restore(
        cls,
        snapshot: StoreSnapshot | None,
        writes: Sequence[Write],
        clock: Clock,
        journal: Journal | None = None,
        *,
        rng: random.Random | None = None,
        history: int = _HISTORY,
        events_kept: int = _EVENTS_KEPT,
        pace: float = PACE_SECONDS,
    ) -> SandboxCluster:
        """The store that a snapshot and the writes after it make; both may be empty.

        Writes that the snapshot holds already are skipped. Watches can resume from any of the
        writes that fit into the history.

        Raises:
            ValueError: the writes are not in order of resourceVersion.
        """
        self = cls.__new__(cls)
        self._prepare(clock, journal, rng, history, events_kept, pace)
        self._store.load(snapshot, writes)
        self._events.load(self._store.objects("Event").values())
        self._start()
        return self

    def _prepare(
        self,
        clock: Clock,
        journal: Journal | None,
        rng: random.Random | None,
        history: int,
        events_kept: int,
        pace: float,
        share: bool = True,
    ) -> None:
        self.clock = clock
        self._journal = journal
        self._pace = pace
        self._rng = rng or random.Random()  # noqa: S311 - uids need to differ, not to be secret
        self._lock = threading.RLock()
        self._store = Store(history, share=share)
        self._hub = Hub()
        self._events = EventLog(events_kept)
        self._closed = False
        self._given_up = False
        self._commit: GroupCommit | None = None

    def _start(self) -> None:
        if self._journal is not None:
            self._commit = GroupCommit(
                self._journal,
                self._show,
                self._store.drop_accepted,
                self._give_up,
                self._lock,
                self._pace,
            )
        if self._store.committed_version == 0:
            self.as_actor("system:bootstrap").create_all(_SYSTEM_OBJECTS)

    def close(self) -> None:
        """Keep what was accepted, then refuse every write. May be called twice."""
        with self._lock:
            self._closed = True
        if self._commit is not None:
            self._commit.close()

    @property
    def given_up(self) -> bool:
        """Whether its state may not be the journal's: it must be restored, and takes no write."""
        return self._given_up

    def _give_up(self) -> None:
        self._given_up = True
        self._store.drop_accepted()

    def __enter__(self) -> SandboxCluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- reading ---------------------------------------------------------------------------------

    def get(self, kind: str, namespace: str, name: str) -> Json:
        resource = resource_of(kind)
        with self._lock:
            found = self._store.get(kind, key_of(namespace if resource.namespaced else "", name))
        if found is None:
            raise not_found(resource, name)
        return found

    def list(
        self,
        kind: str,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
    ) -> ObjectList:
        select = selection(resource_of(kind), namespace, label_selector, field_selector)
        with self._lock:
            found = dict(self._store.objects(kind))
            version = self._store.committed_version
        if select is everything:
            items = [found[key] for key in sorted(found)]
        else:
            items = [found[key] for key in sorted(found) if select(found[key])]
        return ObjectList(items, str(version))

    def list_at(self, resource: Resource, version: int | None) -> tuple[dict[str, Json], int]:
        """Every object of a resource by key, now or at an earlier version, and that version.

        Raises:
            ApiError: 410 where that version is forgotten, 504 where it lies ahead.
        """
        with self._lock:
            if version is None:
                return dict(self._store.objects(resource.kind)), self._store.committed_version
            return self._store.objects_at(resource.kind, version), version

    def snapshot(self) -> StoreSnapshot:
        """All that is kept, at one moment."""
        with self._lock:
            return self._store.snapshot(self.clock.now())

    @property
    def object_count(self) -> int:
        """How many objects are kept."""
        with self._lock:
            return sum(len(self._store.objects(kind)) for kind in self._store.kinds)

    @property
    def resource_version(self) -> int:
        """Of the latest write that is kept."""
        with self._lock:
            return self._store.committed_version

    @property
    def identity(self) -> str:
        """Tells this store from every other: a resourceVersion means nothing elsewhere."""
        return str(self.get("Namespace", "", "kube-system")["metadata"]["uid"])

    # -- watching --------------------------------------------------------------------------------

    def list_watch(self, kind: str, sink: Callable[[WatchEvent], None]) -> Subscription:
        resource_of(kind)

        def tell(change: Change) -> None:
            sink(watch_event(change))

        with self._hub.lock:
            with self._lock:
                objects = list(self._store.objects(kind).values())
                version = self._store.committed_version
            for obj in objects:
                sink(WatchEvent("ADDED", kind, obj))
            sink(WatchEvent("SYNCED", kind, {}))
            subscription = WatchSubscription(self._hub, kind, version, tell)
            self._hub.add(subscription)
        self._hub.drain()
        return subscription

    def watch_from(
        self,
        kind: str | Resource,
        resource_version: int,
        sink: Callable[[StreamEvent], None],
        *,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
    ) -> Watch:
        """Every change of a selection after `resource_version`, then a bookmark, then what comes.

        Raises:
            ApiError: 410 where the changes since then are forgotten, 504 where it lies ahead,
                400 for a bad selector.
        """
        resource = resource_of(kind)
        kind = resource.kind
        select = selection(resource, namespace, label_selector, field_selector)
        watch = Watch(self, kind, sink)

        def tell(change: Change) -> None:
            event = seen_through(select, change)
            if event is not None:
                sink(event)

        with self._hub.lock:
            with self._lock:
                missed = list(self._store.changes_after(kind, resource_version))
                version = self._store.committed_version
            for change in missed:
                tell(change)
            sink(StreamEvent("BOOKMARK", kind, {}, version))
            watch.subscription = WatchSubscription(self._hub, kind, version, tell)
            self._hub.add(watch.subscription)
        self._hub.drain()
        return watch

    def _bookmark(self, kind: str, sink: Callable[[StreamEvent], None]) -> None:
        with self._hub.lock:
            self._hub.drain()
            with self._lock:
                version = self._store.committed_version
                quiet = not self._hub.is_behind
            if quiet:
                sink(StreamEvent("BOOKMARK", kind, {}, version))

    # -- writing ---------------------------------------------------------------------------------

    def as_actor(self, actor: str) -> ActingView:
        """The same cluster, acting in this name."""
        return ActingView(self, actor)

    @contextmanager
    def batch(self, actor: str = _DEFAULT_ACTOR) -> Iterator[ActingView]:
        """A view whose writes are accepted one by one and kept together at the end.

        Each call returns, or raises, what the server makes of the request; leaving the block
        waits until all are kept. For many writes in a row, which else cost one batch each.

        Raises:
            ApiError: 503 on leaving, where the journal failed.
        """
        waiting: list[Future[None]] = []
        try:
            yield ActingView(self, actor, waiting)
        finally:
            for future in waiting:
                future.result()

    def bind_async(
        self, namespace: str, name: str, uid: str, node: str, actor: str = _DEFAULT_ACTOR
    ) -> Future[None]:
        """As `bind`, without a thread that waits. A refusal is in the future too.

        Callbacks of the future run on the journal's thread: they must be quick and write nothing.
        """
        try:
            _, kept = self.submit(actor, lambda tx: pod_verbs.bind(tx, namespace, name, uid, node))
        except ApiError as error:
            kept = Future()
            kept.set_exception(error)
        return kept

    def submit(self, actor: str, work: Callable[[Transaction], T]) -> tuple[T, Future[None]]:
        """Run a request. Its outcome is certain once the future is done.

        Raises:
            ApiError: the request is refused; nothing of it remains.
        """
        with self._lock:
            if self._closed:
                raise unavailable("sandbox is not running")
            if self._given_up:
                raise unavailable("whether the sandbox has kept its last writes is unknown")
            tx = Transaction(self._store, self.clock.now(), actor, self._rng)
            result = work(tx)
            kept = self._accept(tx.writes)
        if self._commit is None:
            self._hub.drain()
        return result, kept

    def _accept(self, writes: Sequence[Write]) -> Future[None]:
        if not writes:
            # Nothing to change may rest on writes that are not kept yet: then wait for those.
            pending = self._commit.last if self._commit is not None else None
            return pending or _done()
        self._store.accept(writes)
        if self._commit is not None:
            return self._commit.add(writes)
        self._hub.enqueue(self._store.commit(writes))
        return _done()

    def _show(self, writes: Sequence[Write]) -> None:
        with self._lock:
            self._hub.enqueue(self._store.commit(writes))
        self._hub.drain()

    def wait(self, kept: Future[None]) -> None:
        """Wait until a request is kept.

        Raises:
            ApiError: 503, it was not.
            RuntimeError: the caller is a sink, which the journal's thread waits for.
        """
        if not kept.done() and self._commit is not None and self._commit.is_own_thread:
            raise RuntimeError("a watcher must not write to the sandbox while it is being told")
        kept.result()

    def _request(self, work: Callable[[Transaction], T]) -> T:
        return self.as_actor(_DEFAULT_ACTOR)._request(work)

    def _emit(self, emission: Emission) -> None:
        self.as_actor(_DEFAULT_ACTOR)._emit(emission)

    def emit(self, actor: str, emission: Emission) -> None:
        """Write an Event; a store that cannot is not the emitter's concern."""
        if self._events.is_off:
            return
        try:
            self.submit(actor, lambda tx: self._events.emit(tx, emission))
        except ApiError:
            return


class Watch:
    """A running watch that was begun with `watch_from`."""

    subscription: WatchSubscription

    def __init__(
        self, cluster: SandboxCluster, kind: str, sink: Callable[[StreamEvent], None]
    ) -> None:
        self._cluster = cluster
        self._kind = kind
        self._sink = sink

    def stop(self) -> None:
        """No event is delivered after this returns. May be called twice."""
        self.subscription.stop()

    def bookmark(self) -> None:
        """Tell the sink up to which resourceVersion it has been told all."""
        self._cluster._bookmark(self._kind, self._sink)

    def bookmark_to(self, tell: Callable[[int], None]) -> None:
        """As `bookmark`, to a listener of its own, which is given the version."""
        self._cluster._bookmark(self._kind, lambda event: tell(event.resource_version))


class ActingView(Requests):
    """A `Cluster` whose writes carry one actor's name."""

    def __init__(
        self, cluster: SandboxCluster, actor: str, waiting: list[Future[None]] | None = None
    ) -> None:
        """`waiting`: where to leave what is not kept yet, instead of waiting for it."""
        self._cluster = cluster
        self.actor = actor
        self._waiting = waiting

    def get(self, kind: str, namespace: str, name: str) -> Json:
        return self._cluster.get(kind, namespace, name)

    def list(
        self,
        kind: str,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
    ) -> ObjectList:
        return self._cluster.list(kind, namespace, label_selector, field_selector)

    def list_watch(self, kind: str, sink: Callable[[WatchEvent], None]) -> Subscription:
        return self._cluster.list_watch(kind, sink)

    def begin_binding(self, namespace: str, name: str, uid: str, node: str) -> Future[None]:
        """See `SandboxCluster.bind_async`."""
        return self._cluster.bind_async(namespace, name, uid, node, self.actor)

    def put_pod_status(self, namespace: str, name: str, uid: str, fields: Json) -> None:
        """For parts of the sandbox: fields of a status that need not be checked or copied."""
        self._request(lambda tx: pod_verbs.put_status(tx, namespace, name, uid, fields))

    def _request(self, work: Callable[[Transaction], T]) -> T:
        result, kept = self._cluster.submit(self.actor, work)
        if self._waiting is None:
            self._cluster.wait(kept)
        elif not kept.done() and (not self._waiting or self._waiting[-1] is not kept):
            self._waiting.append(kept)  # a batch of the journal has one future for all
        return result

    def _emit(self, emission: Emission) -> None:
        self._cluster.emit(self.actor, emission)


def _done() -> Future[None]:
    """One for all: it has happened, and nothing will happen to it."""
    return _DONE


_DONE: Final[Future[None]] = Future()
_DONE.set_result(None)
