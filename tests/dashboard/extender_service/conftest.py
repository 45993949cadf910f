"""A run that carries its own scheduler thread, and calls to it as an extender."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from dashboard.extender_service.service import answer
from dashboard.metrics import carried
from dashboard.metrics.carried import CarriedRun
from dashboard.recorder import Recorder
from dashboard.worker_http.messages import Request
from scheduler_core.clock import RealClock
from scheduler_core.records import CycleRecord
from scheduler_core.testing.builders import make_node, make_pod, make_priority_class
from scheduler_core.testing.harness import Harness

RUN = 7
PROFILE = "default-scheduler"


class ServedRun:
    """Nodes a (full), b (half full), c (empty), and d, which is closed."""

    def __init__(self) -> None:
        nodes = [make_node(name).capacity(cpu="4", memory="8Gi") for name in "abc"]
        nodes.append(make_node("d").capacity(cpu="4", memory="8Gi").unschedulable())
        self.harness = Harness(
            nodes=nodes,
            objects={"PriorityClass": [make_priority_class("high", 10)]},
            pods=[
                make_pod("full").req(cpu=4).node("a"),
                make_pod("half").req(cpu=2).node("b"),
            ],
            clock=RealClock(),  # type: ignore[arg-type]
        )
        self.harness.scheduler.run_once()
        recorder = Recorder(RUN, fence=None, clock=lambda: 0.0)
        self.carried = CarriedRun(RUN, "advice", "sandbox", recorder)
        self.carried.scheduler = self.harness.scheduler
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._turn)

    def _turn(self) -> None:
        self.harness.scheduler.run(self._stop.is_set)

    def start(self) -> None:
        carried.publish(self.carried)
        self._thread.start()

    def stop(self) -> None:
        carried.withdraw(self.carried)
        self._stop.set()
        self.harness.scheduler.wake()
        self._thread.join(10)

    # -- calls ---------------------------------------------------------------------------------

    def raw(self, verb: str, body: bytes, **options: Any) -> tuple[int, Any]:
        """Status and parsed answer."""
        path = f"/extender/{RUN}/{PROFILE}/{verb}"
        headers = options.pop("headers", {})
        request = Request("POST", path, {}, headers, body, **{"trusted": True, **options})
        found = answer(request, path.strip("/").split("/")[1:])
        return found.status, json.loads(found.body)

    def call(self, verb: str, **fields: Any) -> Any:
        status, document = self.raw(verb, json.dumps(fields).encode())
        assert status == 200, document
        return document

    def pod(self, cpu: str = "1", name: str = "asked", priority: int = 0) -> dict[str, Any]:
        """As kube-scheduler sends it: of another scheduler, without kind and apiVersion."""
        raw = make_pod(name).req(cpu=cpu).scheduler_name("stock").priority(priority).raw()
        return {key: value for key, value in raw.items() if key not in ("kind", "apiVersion")}

    def node(self, name: str) -> dict[str, Any]:
        raw = dict(self.harness.cluster.get("Node", "", name))
        return {key: value for key, value in raw.items() if key not in ("kind", "apiVersion")}

    def uid(self, name: str) -> str:
        return str(self.harness.cluster.get("Pod", "default", name)["metadata"]["uid"])

    @property
    def records(self) -> list[CycleRecord]:
        return self.harness.observer.cycles


@pytest.fixture
def served() -> Iterator[ServedRun]:
    run = ServedRun()
    run.start()
    yield run
    run.stop()
