"""Events of events.k8s.io: counted up when they repeat, the oldest forgotten when many."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from scheduler_core.api.reader import parse_time
from scheduler_core.ports import Json

from .objects import key_of, name_of, namespace_of, timestamp
from .resources import RESOURCES
from .store import Transaction

__all__ = ["Emission", "EventLog", "reference_to"]

#: a repetition later than this is a new event (client-go's events recorder: 6 minutes)
_SERIES_SECONDS: Final = 360.0
_REFERENCE: Final = ("apiVersion", "kind", "namespace", "name", "uid", "resourceVersion")
_LONGEST_NOTE: Final = 1024


@dataclass(frozen=True, slots=True)
class Emission:
    """What a controller wants to be known."""

    regarding: Json
    type: str
    reason: str
    action: str
    note: str
    reporting_controller: str

    @property
    def reference(self) -> Json:
        """The object it is about, as a reference, also when it was given as a whole."""
        return reference_to(self.regarding)


def reference_to(regarding: Mapping[str, Any]) -> Json:
    """An object, or a reference to one, as a reference."""
    metadata = regarding.get("metadata")
    found = {**metadata, **regarding} if isinstance(metadata, Mapping) else regarding
    return {field: found[field] for field in _REFERENCE if found.get(field)}


_Series = tuple[str, ...]


class EventLog:
    """Writes at most `keep` Events. What it remembers is a hint; the store is the truth."""

    def __init__(self, keep: int) -> None:
        self._keep = keep
        self._latest: OrderedDict[_Series, str] = OrderedDict()  # series -> key of its Event
        self._kept: OrderedDict[str, None] = OrderedDict()  # keys of Events, oldest first

    @property
    def is_off(self) -> bool:
        """No Event is ever written."""
        return self._keep <= 0

    def load(self, events: Iterable[Json]) -> None:
        """Take over the Events of a restored store."""
        for event in sorted(events, key=lambda e: int(e["metadata"]["resourceVersion"])):
            self._remember(_series_of(event), key_of(namespace_of(event), name_of(event)))

    def emit(self, tx: Transaction, emission: Emission) -> None:
        """Write an Event, or count one up; nothing where its namespace is not there."""
        if self._keep <= 0:
            return
        reference = emission.reference
        namespace = str(reference.get("namespace") or "default")
        if tx.get("Namespace", namespace) is None:
            return
        event = _new_event(tx, emission, reference, namespace)
        series = _series_of(event)
        earlier = tx.get("Event", self._latest.get(series, ""))
        if earlier is not None and tx.now - _last_seen(earlier) <= _SERIES_SECONDS:
            tx.put("event", RESOURCES["Event"], _counted(earlier, tx.now, emission.note))
            return
        stored = tx.put("create", RESOURCES["Event"], event)
        self._remember(series, key_of(namespace, name_of(stored)))
        self._forget_oldest(tx)

    def _remember(self, series: _Series, key: str) -> None:
        self._latest[series] = key
        self._latest.move_to_end(series)
        self._kept[key] = None
        while len(self._latest) > self._keep:
            self._latest.popitem(last=False)

    def _forget_oldest(self, tx: Transaction) -> None:
        while len(self._kept) > self._keep:
            key, _ = self._kept.popitem(last=False)
            oldest = tx.get("Event", key)
            if oldest is not None:
                tx.remove(RESOURCES["Event"], oldest)


def _new_event(tx: Transaction, emission: Emission, reference: Json, namespace: str) -> Json:
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {
            "name": f"{reference.get('name', 'cluster')}.{tx.new_uid()[-12:]}",
            "namespace": namespace,
            "uid": tx.new_uid(),
            "creationTimestamp": tx.timestamp,
        },
        "eventTime": timestamp(tx.now, micro=True),
        "type": emission.type,
        "reason": emission.reason,
        "action": emission.action,
        "note": emission.note[:_LONGEST_NOTE],
        "regarding": reference,
        "reportingController": emission.reporting_controller,
        "reportingInstance": emission.reporting_controller,
    }


def _counted(event: Json, now: float, note: str) -> Json:
    """The Event seen once more; it tells the latest note, which is the one that still holds."""
    count = int(event.get("series", {}).get("count", 1)) + 1
    series = {"count": count, "lastObservedTime": timestamp(now, micro=True)}
    return {**event, "note": note[:_LONGEST_NOTE], "series": series}


def _series_of(event: Json) -> _Series:
    about = event.get("regarding") or {}
    return (
        *(str(about.get(field, "")) for field in ("kind", "namespace", "name", "uid")),
        *(str(event.get(field, "")) for field in ("type", "reason", "action")),
        str(event.get("reportingController", "")),
    )


def _last_seen(event: Json) -> float:
    seen = event.get("series", {}).get("lastObservedTime") or event.get("eventTime") or ""
    return parse_time(str(seen)) if seen else 0.0
