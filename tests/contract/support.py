"""Objects, and a way to wait for events that arrive in their own time."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any, Protocol

from scheduler_core.ports import WatchEvent

Json = dict[str, Any]
#: seconds; a deadline for what is sure to come, also from a server that is busy with other things
PATIENCE = 30.0


def pod(name: str = "web", namespace: str = "default", **spec: Any) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": {"app": "web"}},
        "spec": {
            "containers": [
                {"name": "c", "image": "app:v1", "resources": {"requests": {"cpu": "100m"}}}
            ],
            **spec,
        },
    }


def node(name: str = "n1", **labels: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"capacity": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
    }


class Recorder:
    """A sink that remembers."""

    def __init__(self) -> None:
        self.events: list[WatchEvent] = []

    def __call__(self, event: WatchEvent) -> None:
        self.events.append(event)

    @property
    def seen(self) -> list[tuple[str, str]]:
        """(type, name) of each event; SYNCED without a name."""
        return [(e.type, e.object.get("metadata", {}).get("name", "")) for e in self.events]

    @property
    def objects(self) -> dict[str, Json]:
        """What somebody holds who applied every event, by namespace and name."""
        held: dict[str, Json] = {}
        for event in self.events:
            if event.type == "SYNCED":
                continue
            meta = event.object["metadata"]
            key = f"{meta.get('namespace', '')}/{meta['name']}"
            if event.type == "DELETED":
                held.pop(key, None)
            else:
                held[key] = event.object
        return held


def eventually(condition: Callable[[], bool]) -> None:
    """Wait for what happens on other threads."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.002)


# -- time ----------------------------------------------------------------------------------------


class TestClock(Protocol):
    """Virtual where the server is ours; else the real one, which has to be waited for.

    Attributes:
        start: when the test began.
        tolerance: seconds by which the server's times may be off.
    """

    __test__ = False
    start: float
    tolerance: float

    def now(self) -> float: ...

    def sleep(self, seconds: float) -> None: ...

    def advance(self, seconds: float) -> None: ...


class WaitingClock:
    """The time of a server that is not ours."""

    tolerance = 3.0

    def __init__(self) -> None:
        self.start = time.time()

    def now(self) -> float:
        return time.time()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def advance(self, seconds: float) -> None:
        time.sleep(seconds)


class Moment:
    """Equal to every text of that time, in Kubernetes' way of writing it."""

    def __init__(self, clock: TestClock, after: float = 0.0, *, micro: bool = False) -> None:
        self._at = clock.start + after
        self._tolerance = clock.tolerance
        self._form = r".*T[\d:]{8}\.\d{6}Z" if micro else r".*T[\d:]{8}Z"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, str) or not re.fullmatch(self._form, other):
            return False
        return abs(datetime.fromisoformat(other).timestamp() - self._at) <= self._tolerance

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<{self._at} give or take {self._tolerance} s>"
