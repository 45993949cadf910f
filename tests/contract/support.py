"""Objects, and a way to wait for events that arrive in their own time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from scheduler_core.ports import WatchEvent

Json = dict[str, Any]
PATIENCE = 10.0


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
