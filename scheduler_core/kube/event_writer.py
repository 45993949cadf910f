"""Events of events.k8s.io/v1: best effort, beside everything else, repetitions as one series.

A repetition of an event (same object, type, reason, action, controller; kube-scheduler's recorder
compares the same) within six minutes is counted in the first one's series. The note stays that of
the first: the API lets nobody change it.
"""

from __future__ import annotations

import logging
import socket
import threading
from collections import OrderedDict, deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from scheduler_core.ports import ApiError, Clock, Json

from .api import KubeApi
from .pod_status import micro_time
from .transport import MERGE_PATCH

__all__ = ["Emission", "EventLane", "EventWriter", "reference_of"]

log = logging.getLogger(__name__)

#: events that may wait to be sent, of each lane; more are dropped
_WAITING: Final = 1_500
_LANES: Final = 4
#: series that each lane remembers
_SERIES: Final = 1_024
#: a repetition later than this, in seconds, is a new event
_SERIES_SECONDS: Final = 360.0
#: seconds between two writes of one series' count
_COUNT_SECONDS: Final = 30.0
_LONGEST_NOTE: Final = 1024
_REFERENCE: Final = ("apiVersion", "kind", "namespace", "name", "uid", "resourceVersion")
_IDENTITY: Final = ("kind", "namespace", "name", "uid")

_Key = tuple[str, ...]


def reference_of(regarding: Mapping[str, Any]) -> Json:
    """The object that an event is about, also where that is given as a whole."""
    metadata = regarding.get("metadata")
    found = {**metadata, **regarding} if isinstance(metadata, Mapping) else regarding
    return {field: found[field] for field in _REFERENCE if found.get(field)}


@dataclass(frozen=True, slots=True)
class Emission:
    """What is to be known.

    Attributes:
        reference: see `reference_of`.
        at: seconds since the epoch.
    """

    reference: Json
    type: str
    reason: str
    action: str
    note: str
    controller: str
    at: float

    @property
    def series(self) -> _Key:
        about = (str(self.reference.get(field, "")) for field in _IDENTITY)
        return (*about, self.type, self.reason, self.action, self.controller)


@dataclass(slots=True)
class _Series:
    """Attributes:
    count: how often it was seen; ``counted``: up to where the server knows.
    seen, written: when it was last seen and written.
    """

    path: str
    seen: float
    written: float
    count: int = 1
    counted: int = 1


class EventWriter:
    """Takes events from any thread; those of one object are written in order."""

    def __init__(self, api: KubeApi, clock: Clock) -> None:
        self._lanes = [EventLane(api, clock) for _ in range(_LANES)]

    def emit(self, emission: Emission) -> None:
        """Never waits and never raises."""
        about = emission.reference
        self._lanes[hash((about.get("namespace"), about.get("name"))) % _LANES].emit(emission)

    @property
    def dropped(self) -> int:
        """Events that nobody will see, because too many waited."""
        return sum(lane.dropped for lane in self._lanes)

    def close(self, seconds: float) -> None:
        """Write what waits, for so long at most."""
        for lane in self._lanes:
            lane.close()
        for lane in self._lanes:
            lane.join(seconds)


class EventLane:
    """A queue and the thread that empties it."""

    def __init__(self, api: KubeApi, clock: Clock) -> None:
        self._api = api
        self._clock = clock
        self._instance = socket.gethostname()[:63] or "kubesched"
        self._changed = threading.Condition()
        self._queue: deque[Emission] = deque()
        self._known: OrderedDict[_Key, _Series] = OrderedDict()
        self._thread: threading.Thread | None = None
        self._closed = False
        self.dropped = 0

    def emit(self, emission: Emission) -> None:
        with self._changed:
            if self._closed:
                return
            if len(self._queue) >= _WAITING:
                self.dropped += 1
                return
            self._queue.append(emission)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="events", daemon=True)
                self._thread.start()
            self._changed.notify()

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify()

    def join(self, seconds: float) -> None:
        if self._thread is not None:
            self._thread.join(seconds)

    def _work(self) -> None:
        while True:
            with self._changed:
                if not self._queue and not self._closed:
                    self._changed.wait(_COUNT_SECONDS)
                if not self._queue and self._closed:
                    break
                emission = self._queue.popleft() if self._queue else None
            try:
                if emission is not None:
                    self.write(emission)
                else:
                    self.count_up(self._clock.now())
            except Exception:
                log.exception("the events stumbled")  # and go on with the next one
        self.count_up(self._clock.now() + _COUNT_SECONDS)

    # -- on the lane's thread ----------------------------------------------------------------------

    def write(self, emission: Emission) -> None:
        """A new event, or one more of a series. What the server refuses is lost."""
        key = emission.series
        series = self._known.get(key)
        try:
            if series is None or emission.at - series.seen > _SERIES_SECONDS:
                self._known[key] = self._create(emission)
                if len(self._known) > _SERIES:
                    self._known.popitem(last=False)
                return
            series.count += 1
            series.seen = emission.at
            self._known.move_to_end(key)
            # That it repeats is news; how often, not every time.
            if series.counted == 1 or emission.at - series.written >= _COUNT_SECONDS:
                self._count(series)
        except ApiError as refusal:
            self._lost(key, refusal)

    def count_up(self, now: float) -> None:
        """Write counts that have waited long enough."""
        for key, series in tuple(self._known.items()):
            if series.count > series.counted and now - series.written >= _COUNT_SECONDS:
                try:
                    self._count(series)
                except ApiError as refusal:
                    self._lost(key, refusal)

    def _lost(self, key: _Key, refusal: ApiError) -> None:
        """The next one of its kind is a new event, should this one have expired."""
        self._known.pop(key, None)
        log.debug("an event was not written: %s", refusal)

    def _create(self, emission: Emission) -> _Series:
        reference, at = emission.reference, emission.at
        namespace = str(reference.get("namespace") or "default")
        collection = f"/apis/events.k8s.io/v1/namespaces/{quote(namespace, safe='')}/events"
        name = f"{str(reference.get('name') or 'cluster')[:230]}.{int(at * 1e9):x}"
        event = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": namespace},
            "eventTime": micro_time(at),
            "type": emission.type,
            "reason": emission.reason,
            "action": emission.action,
            "note": emission.note.encode()[:_LONGEST_NOTE].decode(errors="ignore"),
            "regarding": reference,
            "reportingController": emission.controller,
            "reportingInstance": f"{emission.controller}-{self._instance}"[:128],
        }
        self._api.call("POST", collection, body=event)
        return _Series(f"{collection}/{quote(name, safe='')}", at, at)

    def _count(self, series: _Series) -> None:
        counted = {"count": series.count, "lastObservedTime": micro_time(series.seen)}
        self._api.call(
            "PATCH",
            series.path,
            body={"series": counted},
            content_type=MERGE_PATCH,
            repeatable=True,
        )
        series.counted, series.written = series.count, series.seen
