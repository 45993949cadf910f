"""``benchmark cluster``: a scheduler on an API server of its own process, from end to end.

Nodes and pods are made first. Measured is from the moment at which the scheduler may begin until
the API server has answered the last binding: watch, cycle, binding request and event are in it.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from django.conf import settings

from dashboard import interpreter
from dashboard.benchmark.processes import cpu_seconds, peak_rss_mib
from dashboard.benchmark.site import BenchmarkFailed
from scheduler_core.algorithm import SeededRandom
from scheduler_core.benchmark import report as reports
from scheduler_core.clock import RealClock
from scheduler_core.config import configuration_from
from scheduler_core.executor import KeyedThreadPool
from scheduler_core.kube.access import AccessError, KubeconfigFile
from scheduler_core.kube.cluster import LIVE_PODS, KubeCluster
from scheduler_core.plugins.registry import in_tree_registry
from scheduler_core.ports import ApiError, NotFound, Observer
from scheduler_core.records import BindingRecord, CycleRecord
from scheduler_core.scheduler import Scheduler

__all__ = ["ClusterOptions", "ClusterReport", "measure"]

Json = dict[str, Any]

_NAMESPACE: Final = "default"
_PREFIX: Final = "kubesched-benchmark-"
#: Ours alone, so that a scheduler that runs there already leaves the pods to us.
_SCHEDULER: Final = "kubesched-benchmark"
#: Requests that set the stage at once.
_HANDS: Final = 16
_START_SECONDS: Final = 60.0
#: Seconds without a binding after which the run counts as stuck.
_STUCK_SECONDS: Final = 60.0
_SEED: Final = 1


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """Attributes:
    kubeconfig: of a server to measure against; None: a sandbox in a process of its own.
    qps: of clientConnection, with a burst of the same size.
    threads: of the binding pool.
    """

    nodes: int = 1000
    pods: int = 2000
    kubeconfig: Path | None = None
    qps: int = 5000
    threads: int = 32


@dataclass(frozen=True, slots=True)
class ClusterReport:
    """One run.

    Attributes:
        seconds: from the first pod to the last answer to a binding.
        cycles / bindings: seconds of each.
        cpu_seconds: of this process; server_cpu_seconds: of the API server's, if it is ours.
        events_dropped: events that could not be written in time.
    """

    server: str
    nodes: int
    pods: int
    seconds: float
    cycles: Sequence[float]
    bindings: Sequence[float]
    cpu_seconds: float
    server_cpu_seconds: float | None
    peak_rss: float
    events_dropped: int
    created_per_s: float

    @property
    def pods_per_s(self) -> float:
        return self.pods / self.seconds

    def as_json(self) -> dict[str, Any]:
        """One object; its first names are those that every benchmark has."""
        server_cpu = self.server_cpu_seconds
        return {
            "workload": "basic",
            "nodes": self.nodes,
            "pods": self.pods,
            "pods_per_s": round(self.pods_per_s, 1),
            "p50_ms": round(reports.percentile(self.cycles, 50) * 1e3, 4),
            "p99_ms": round(reports.percentile(self.cycles, 99) * 1e3, 4),
            "peak_rss_mib": round(self.peak_rss, 1),
            "server": self.server,
            "seconds": round(self.seconds, 4),
            "binding_p50_ms": round(reports.percentile(self.bindings, 50) * 1e3, 3),
            "binding_p99_ms": round(reports.percentile(self.bindings, 99) * 1e3, 3),
            "cpu_seconds": round(self.cpu_seconds, 3),
            "server_cpu_seconds": None if server_cpu is None else round(server_cpu, 3),
            "events_dropped": self.events_dropped,
            "created_per_s": round(self.created_per_s, 1),
        }

    def as_table(self) -> str:
        """For people."""
        found = self.as_json()
        server = found["server_cpu_seconds"]
        cpu = f"{self.cpu_seconds:.2f} s of the scheduler's process"
        if server is not None:
            cpu += f", {server:.2f} s of the server's"
        return "\n".join(
            (
                f"server        {self.server}",
                f"workload      {self.nodes:,} nodes, {self.pods:,} pods, each bound once",
                f"speed         {self.pods_per_s:,.0f} pods/s end to end, in {self.seconds:.3f} s",
                f"cycle         p50 {found['p50_ms']:.3f} ms, p99 {found['p99_ms']:.3f} ms",
                f"binding       p50 {found['binding_p50_ms']:.1f} ms, "
                f"p99 {found['binding_p99_ms']:.1f} ms (with the wait for a thread)",
                f"CPU           {cpu}",
                f"peak memory   {self.peak_rss:,.0f} MiB",
                f"events        {self.events_dropped:,} dropped",
            )
        )


def measure(options: ClusterOptions, progress: Callable[[int], None]) -> ClusterReport:
    """Raises:
    BenchmarkFailed: the server does not start, cannot be reached, or pods are left over.
    """
    from scheduler_core.kube.connect import connect  # half a second, which the others do not need

    interpreter.tune()
    with ExitStack() as stack:
        try:
            kubeconfig, process = _server(options, stack)
            connection = connect(KubeconfigFile(str(kubeconfig)))
            stage = stack.enter_context(KubeCluster(connection, qps=-1))
            return _Run(options, stage, process, stack).measure(connection, progress)
        except (AccessError, ApiError) as error:
            raise BenchmarkFailed(str(error)) from error


def _server(
    options: ClusterOptions, stack: ExitStack
) -> tuple[Path, subprocess.Popen[bytes] | None]:
    if options.kubeconfig is not None:
        return options.kubeconfig, None
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kubesched-bench-")))
    return stack.enter_context(_sandbox_api(folder))


@contextmanager
def _sandbox_api(folder: Path) -> Iterator[tuple[Path, subprocess.Popen[bytes]]]:
    """`manage.py sandbox_api` without controllers."""
    kubeconfig, log = folder / "kubeconfig", folder / "log"
    command = [
        sys.executable,
        str(Path(settings.BASE_DIR) / "manage.py"),
        "sandbox_api",
        *("--port", "0", "--token", secrets.token_hex(16), "--no-controllers"),
        *("--plain-http", "--kubeconfig", str(kubeconfig)),
    ]
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)
    try:
        end = time.monotonic() + _START_SECONDS
        while b"Serving on" not in log.read_bytes():
            if process.poll() is not None or time.monotonic() > end:
                said = log.read_text(errors="replace").strip().splitlines()
                raise BenchmarkFailed(f"the API server did not start: {' '.join(said[-3:])}")
            time.sleep(0.05)
        yield kubeconfig, process
    finally:
        process.terminate()
        process.wait(20)


class _Bindings(Observer):
    """Counts what was bound, on the scheduler's thread."""

    def __init__(self, progress: Callable[[int], None]) -> None:
        self.cycles: list[float] = []
        self.bound: list[float] = []
        self.failed: list[str] = []
        self.last_at = time.monotonic()
        self._progress = progress

    def cycle_finished(self, record: CycleRecord) -> None:
        self.cycles.append(record.duration)

    def binding_finished(self, record: BindingRecord) -> None:
        self.last_at = time.monotonic()
        if not record.bound:
            self.failed.append(record.message)
            return
        self.bound.append(record.duration)
        if len(self.bound) % 50 == 0:
            self._progress(len(self.bound))


class _Run:
    def __init__(
        self,
        options: ClusterOptions,
        stage: KubeCluster,
        process: subprocess.Popen[bytes] | None,
        stack: ExitStack,
    ) -> None:
        self._options = options
        self._stage = stage
        self._process = process
        self._stack = stack
        self._hands = stack.enter_context(ThreadPoolExecutor(_HANDS))

    def measure(self, connection: Any, progress: Callable[[int], None]) -> ClusterReport:
        options = self._options
        server = f"{connection.server}, {self._stage.version()}"
        try:
            nodes = [_node(index) for index in range(options.nodes)]
            self._create("Node", nodes)
            list(self._hands.map(self._make_ready, nodes))
            cluster = self._stack.enter_context(
                KubeCluster(connection, qps=options.qps, burst=options.qps, fields=LIVE_PODS)
            )
            bindings = _Bindings(progress)
            scheduler = _scheduler(cluster, bindings, options.threads)
            self._stack.callback(scheduler.stop)
            scheduler.pause()
            scheduler.start()
            began = time.monotonic()
            self._create("Pod", [_pod(index) for index in range(options.pods)])
            created_per_s = options.pods / (time.monotonic() - began)
            self._run_until(scheduler, bindings, lambda: scheduler.depths().active >= options.pods)
            cpu, server_cpu = time.process_time(), self._server_cpu()
            began = bindings.last_at = time.monotonic()
            scheduler.resume()
            self._run_until(scheduler, bindings, lambda: len(bindings.bound) >= options.pods)
            seconds = time.monotonic() - began
            cpu = time.process_time() - cpu
            if server_cpu is not None:
                server_cpu = (self._server_cpu() or server_cpu) - server_cpu
            self._check()
            return ClusterReport(
                server,
                options.nodes,
                options.pods,
                seconds,
                bindings.cycles,
                bindings.bound,
                cpu,
                server_cpu,
                peak_rss_mib(os.getpid()) or 0.0,
                cluster.events_dropped,
                created_per_s,
            )
        finally:
            self._clean()

    def _run_until(
        self, scheduler: Scheduler, bindings: _Bindings, done: Callable[[], bool]
    ) -> None:
        def ended() -> bool:
            if time.monotonic() - bindings.last_at > _STUCK_SECONDS:
                told = f": {bindings.failed[-1]}" if bindings.failed else ""
                raise BenchmarkFailed(f"nothing was bound for {_STUCK_SECONDS:.0f} s{told}")
            return done()

        scheduler.run(ended)

    def _server_cpu(self) -> float | None:
        return None if self._process is None else cpu_seconds(self._process.pid)

    def _create(self, kind: str, objects: Sequence[Json]) -> None:
        list(self._hands.map(lambda obj: self._stage.create(kind, obj), objects))

    def _check(self) -> None:
        """What the server has: every pod on a node, no node with more than it can hold."""
        pods = self._pods()
        nodes = Counter(str(pod["spec"].get("nodeName", "")) for pod in pods)
        if nodes[""] or len(pods) != self._options.pods:
            raise BenchmarkFailed(f"{nodes['']} of {len(pods)} pods are not bound")
        if max(nodes.values()) > _PODS_OF_A_NODE:
            raise BenchmarkFailed("a node has more pods than it can hold")

    def _clean(self) -> None:
        """Somebody's server is left as it was found; our own ends anyway."""
        if self._process is not None:
            return
        self._delete("Pod", self._pods())
        self._delete("Node", [_node(index) for index in range(self._options.nodes)])

    def _pods(self) -> list[Json]:
        found = self._stage.list("Pod", _NAMESPACE).items
        return [pod for pod in found if pod["metadata"]["name"].startswith(_PREFIX)]

    def _make_ready(self, node: Json) -> None:
        """A server taints new nodes until a controller finds them ready."""
        self._stage.patch("Node", "", node["metadata"]["name"], {"spec": {"taints": None}})

    def _delete(self, kind: str, objects: Sequence[Json]) -> None:
        def delete(obj: Json) -> None:
            with suppress(NotFound):
                self._stage.delete(
                    kind, _NAMESPACE, obj["metadata"]["name"], grace_period_seconds=0
                )

        list(self._hands.map(delete, objects))


_PODS_OF_A_NODE: Final = 40


def _node(index: int) -> Json:
    room = {"cpu": "4", "memory": "32Gi", "pods": str(_PODS_OF_A_NODE)}
    name = f"{_PREFIX}{index:05d}"
    labels = {"kubernetes.io/hostname": name}
    status = {"capacity": room, "allocatable": room}
    return {"metadata": {"name": name, "labels": labels}, "status": status}


def _pod(index: int) -> Json:
    requests = {"cpu": "100m", "memory": "500Mi"}
    container = {
        "name": "main",
        "image": "registry.example/pause:v1",
        "resources": {"requests": requests},
    }
    spec = {"schedulerName": _SCHEDULER, "containers": [container]}
    return {"metadata": {"name": f"{_PREFIX}{index:05d}", "namespace": _NAMESPACE}, "spec": spec}


def _scheduler(cluster: KubeCluster, observer: Observer, threads: int) -> Scheduler:
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": _SCHEDULER}],
    }
    return Scheduler(
        configuration_from(document, in_tree_registry()),
        cluster,
        clock=RealClock(),
        executor=KeyedThreadPool(threads),
        observers=[observer],
        tie_breaker=SeededRandom(_SEED),
    )
