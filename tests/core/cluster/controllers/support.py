"""A sandbox with its controllers and its kubelet, in virtual time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from scheduler_core.clock import VirtualClock
from scheduler_core.cluster.controllers import CONTROLLERS
from scheduler_core.cluster.controllers.manager import ControllerManager
from scheduler_core.cluster.kubelet import SandboxKubelet
from scheduler_core.cluster.sandbox import SandboxCluster
from scheduler_core.ports import Json
from tests.contract.support import node

__all__ = ["World", "template"]

START = 1_800_000_000.0


def template(image: str = "app:1", *, labels: dict[str, str] | None = None, **spec: Any) -> Json:
    """A pod template with one container."""
    return {
        "metadata": {"labels": labels or {"app": "web"}},
        "spec": {"containers": [{"name": "main", "image": image}], **spec},
    }


class World:
    """Time passes from deadline to deadline; a new pod is bound to the first node at once."""

    def __init__(self, *, bind: bool = True, start_seconds: float = 1.0) -> None:
        self.clock = VirtualClock(START)
        self.cluster = SandboxCluster(self.clock)
        self.bind = bind
        self.cluster.create("Node", node("n1"))
        self.kubelet = SandboxKubelet(
            self.cluster, start_seconds=start_seconds, stop_seconds=0.0, keep_terminal=1000
        )
        self.manager = ControllerManager(self.cluster, CONTROLLERS)

    def run(self, seconds: float = 30.0) -> None:
        """Let so much time pass."""
        end = self.clock.now() + seconds
        while True:
            if self.bind:
                self._bind_all()
            due = [d for d in (p.next_deadline() for p in (self.manager, self.kubelet)) if d]
            if not due or min(due) > end:
                break
            self.clock.set(max(min(due), self.clock.now()))
            self.manager.tick(self.clock.now())
            self.kubelet.tick(self.clock.now())
        self.clock.set(end)

    def _bind_all(self) -> None:
        for pod in self.pods():
            if not pod["spec"].get("nodeName") and not pod["metadata"].get("deletionTimestamp"):
                self.cluster.bind("default", pod["metadata"]["name"], "", "n1")

    def pods(self, selector: str = "") -> Sequence[Json]:
        return self.cluster.list("Pod", "default", selector).items

    def sets(self) -> Sequence[Json]:
        return self.cluster.list("ReplicaSet", "default").items

    def get(self, kind: str, name: str) -> Json:
        return self.cluster.get(kind, "default", name)

    def fail(self, pod: Json) -> None:
        """Its container ends with an error."""
        at = self.clock.now()
        from scheduler_core.cluster.objects import timestamp

        ended = {"terminated": {"exitCode": 1, "finishedAt": timestamp(at)}}
        status = {
            "phase": "Failed",
            "conditions": [],
            "containerStatuses": [{"name": "main", "state": ended}],
        }
        name = pod["metadata"]["name"]
        self.cluster.patch("Pod", "default", name, {"status": status}, subresource="status")

    def events(self, reason: str) -> list[str]:
        return [e["note"] for e in self.cluster.list("Event").items if e["reason"] == reason]
