"""``benchmark extender``: how long another scheduler waits for this one's word.

A scheduler with the default profile and pods on its nodes, behind the worker's HTTP server on a
loopback socket; asked over one kept connection, as a kube-scheduler asks. What is timed is from the
first byte sent to the last byte read.
"""

from __future__ import annotations

import http.client
import json
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any, Final

from dashboard import interpreter
from dashboard.extender_service import service
from dashboard.health.probes import Probes
from dashboard.metrics import carried
from dashboard.metrics.carried import CarriedRun
from dashboard.recorder import Recorder
from dashboard.worker_http.messages import Answer, Request
from dashboard.worker_http.routes import WorkerRoutes
from dashboard.worker_http.server import WorkerServer
from scheduler_core.benchmark.cluster import BenchmarkCluster
from scheduler_core.benchmark.report import peak_rss_mib, percentile
from scheduler_core.config import default_configuration
from scheduler_core.plugins.registry import in_tree_registry
from scheduler_core.scheduler import Scheduler

__all__ = ["ExtenderOptions", "ExtenderReport", "measure"]

Json = dict[str, Any]

RUN: Final = 1
PROFILE: Final = "default-scheduler"
#: Bytes of the JSON of a node, as in a real cluster: labels, conditions, images.
NODE_BYTES: Final = 4_096
KINDS_OF_CALLS: Final = 6
PODS_PER_NODE: Final = 10
WARM_UP: Final = 3
_NO_ERROR: Final = b'"Error":""}'


@dataclass(frozen=True, slots=True)
class ExtenderOptions:
    """``calls`` of each kind are timed."""

    nodes: int = 1000
    calls: int = 50

    @property
    def all_calls(self) -> int:
        return KINDS_OF_CALLS * self.calls


@dataclass(frozen=True, slots=True)
class ExtenderReport:
    """``seconds``: call -> seconds of each of its calls."""

    options: ExtenderOptions
    node_bytes: int
    seconds: Mapping[str, Sequence[float]]
    peak_rss: float

    def as_json(self) -> Json:
        return {
            "nodes": self.options.nodes,
            "node_bytes": self.node_bytes,
            "calls": {
                name: {
                    "p50_ms": round(percentile(seconds, 50) * 1e3, 2),
                    "p99_ms": round(percentile(seconds, 99) * 1e3, 2),
                    "calls": len(seconds),
                }
                for name, seconds in self.seconds.items()
            },
            "peak_rss_mib": round(self.peak_rss, 1),
        }

    def as_table(self) -> str:
        lines = [
            f"extender      {self.options.nodes:,} nodes of {self.node_bytes:,} bytes JSON, "
            f"{PODS_PER_NODE} pods on each",
            f"{'call':<44}{'median ms':>10}{'p99 ms':>10}",
        ]
        for name, seconds in self.seconds.items():
            median, late = percentile(seconds, 50) * 1e3, percentile(seconds, 99) * 1e3
            lines.append(f"{name:<44}{median:>10.2f}{late:>10.2f}")
        return "\n".join([*lines, f"peak memory   {self.peak_rss:.0f} MiB"])


def measure(options: ExtenderOptions, progress: Callable[[], object]) -> ExtenderReport:
    """Time every kind of call; ``progress`` is called after each."""
    cluster, nodes = _cluster(options.nodes)
    with _serving(cluster) as address:
        connection = http.client.HTTPConnection(*address, timeout=60)
        seconds = {}
        for name, verb, body in _calls(nodes):
            for _ in range(WARM_UP):
                _timed(connection, verb, body())
            found = []
            for _ in range(options.calls):
                found.append(_timed(connection, verb, body()))
                progress()
            seconds[name] = found
        connection.close()
    size = len(json.dumps(nodes[0], separators=(",", ":")))
    return ExtenderReport(options, size, seconds, peak_rss_mib())


def _calls(nodes: list[Json]) -> Iterator[tuple[str, str, Callable[[], bytes]]]:
    """Name, verb, and what makes the body; each call is about another pod."""
    names = json.dumps([node["metadata"]["name"] for node in nodes], separators=(",", ":"))
    known = json.dumps({"metadata": {}, "items": nodes}, separators=(",", ":"))
    newer = [
        {**node, "metadata": {**node["metadata"], "resourceVersion": f"{index + 10**6}"}}
        for index, node in enumerate(nodes)
    ]
    other = json.dumps({"metadata": {}, "items": newer}, separators=(",", ":"))
    numbers = count()

    def body(nodes_json: str, names_json: str) -> Callable[[], bytes]:
        def make() -> bytes:
            pod = json.dumps(_pod(f"asked-{next(numbers)}", ""))
            return f'{{"Pod":{pod},"Nodes":{nodes_json},"NodeNames":{names_json}}}'.encode()

        return make

    for verb in ("filter", "prioritize"):
        yield f"{verb}, node names", verb, body("null", names)
        yield f"{verb}, whole nodes, as in the cache", verb, body(known, "null")
        yield f"{verb}, whole nodes, newer than the cache", verb, body(other, "null")


def _timed(connection: http.client.HTTPConnection, verb: str, body: bytes) -> float:
    began = time.perf_counter()
    connection.request("POST", f"/extender/{RUN}/{PROFILE}/{verb}", body)
    answer = connection.getresponse()
    text = answer.read()
    seconds = time.perf_counter() - began
    if answer.status != http.HTTPStatus.OK or (verb == "filter" and not text.endswith(_NO_ERROR)):
        raise RuntimeError(f"{verb} was answered with {answer.status}: {text[:200]!r}")
    return seconds


# -- what is asked ---------------------------------------------------------------------------------


def _cluster(size: int) -> tuple[BenchmarkCluster, list[Json]]:
    cluster = BenchmarkCluster()
    nodes = [dict(cluster.create("Node", _node(f"node-{n:05d}", n))) for n in range(size)]
    for index in range(size * PODS_PER_NODE):
        cluster.create("Pod", _pod(f"pod-{index:06d}", f"node-{index % size:05d}"))
    return cluster, nodes


def _node(name: str, index: int) -> Json:
    """Padded with an annotation to ``NODE_BYTES``."""
    node: Json = {
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": name,
                "kubernetes.io/arch": "amd64",
                "kubernetes.io/os": "linux",
                "topology.kubernetes.io/zone": f"zone-{index % 3}",
            },
            "annotations": {},
        },
        "spec": {"podCIDR": "10.0.0.0/24"},
        "status": {
            "capacity": {"cpu": "16", "memory": "64Gi", "pods": "110"},
            "allocatable": {"cpu": "16", "memory": "64Gi", "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
            "images": [
                {"names": [f"registry.example/image-{n}:v1"], "sizeBytes": 10**8 + n}
                for n in range(20)
            ],
        },
    }
    missing = NODE_BYTES - len(json.dumps(node, separators=(",", ":"))) - 100
    node["metadata"]["annotations"]["example.org/padding"] = "x" * max(0, missing)
    return node


def _pod(name: str, node: str) -> Json:
    requests = {"cpu": "500m", "memory": "1Gi"}
    spec: Json = {
        "schedulerName": "stock",
        "containers": [
            {
                "name": "main",
                "image": "registry.example/image-1:v1",
                "resources": {"requests": requests},
            }
        ],
    }
    if node:
        spec["nodeName"] = node
    meta = {"name": name, "namespace": "default", "uid": f"uid-{name}", "labels": {"app": "web"}}
    return {"metadata": meta, "spec": spec}


# -- who is asked ----------------------------------------------------------------------------------


@contextmanager
def _serving(cluster: BenchmarkCluster) -> Iterator[tuple[str, int]]:
    scheduler = Scheduler(default_configuration(in_tree_registry()), cluster)
    scheduler.start()
    interpreter.tune()  # as a worker does
    recorder = Recorder(RUN, fence=None, clock=time.time)
    run = CarriedRun(RUN, "benchmark", "benchmark", recorder, scheduler=scheduler)
    stop = threading.Event()
    thread = threading.Thread(target=scheduler.run, args=(stop.is_set,), name="scheduler")
    thread.start()
    routes = WorkerRoutes(Probes({}, {}), {"extender": _trusting})
    try:
        with tempfile.TemporaryDirectory() as folder:
            server = WorkerServer(routes, Path(folder) / "w.sock", ("127.0.0.1", 0))
            carried.publish(run)
            try:
                assert server.address is not None
                yield server.address
            finally:
                carried.withdraw(run)
                server.close()
    finally:
        stop.set()
        scheduler.wake()
        thread.join()
        scheduler.stop()


def _trusting(request: Request, parts: list[str]) -> Answer:
    """Without tokens, which need a database."""
    return service.answer(replace(request, trusted=True), parts)
