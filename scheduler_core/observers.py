"""ObserverSet: tells the scheduler's observers, free of charge where nobody listens."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any

from scheduler_core.ports import Observer

log = logging.getLogger(__name__)

HOOKS = (
    "cycle_finished",
    "binding_finished",
    "pod_waiting",
    "pod_resolved",
    "decision_applied",
    "queues_listed",
    "usage_changed",
    "pod_observed",
)


class ObserverSet:
    """Knows which hooks each observer really defines. An observer that raises is logged, detached
    and told so (``detached``), so that its owner can act: it never hurts a cycle."""

    def __init__(self, observers: Iterable[Observer] = ()) -> None:
        self._listeners: dict[str, list[tuple[object, Callable[..., None]]]] = {
            hook: [] for hook in HOOKS
        }
        for observer in observers:
            self.attach(observer)

    def attach(self, observer: object) -> None:
        for hook in HOOKS:
            defined = getattr(type(observer), hook, None)
            if defined is not None and defined is not getattr(Observer, hook):
                self._listeners[hook].append((observer, getattr(observer, hook)))

    def detach(self, observer: object) -> None:
        for hook, listeners in self._listeners.items():
            self._listeners[hook] = [entry for entry in listeners if entry[0] is not observer]

    def wants(self, hook: str) -> bool:
        """Whether anybody listens: where not, the caller need not make the record."""
        return bool(self._listeners[hook])

    def tell(self, hook: str, *args: Any) -> None:
        for observer, listener in tuple(self._listeners[hook]):
            try:
                listener(*args)
            except Exception as error:
                log.exception("observer %r raised in %s and is detached", observer, hook)
                self.detach(observer)
                _tell_detached(observer, error)


def _tell_detached(observer: object, error: Exception) -> None:
    told = getattr(observer, "detached", None)
    if told is None:
        return
    try:
        told(error)
    except Exception:
        log.exception("observer %r raised when it was told that it is detached", observer)
