"""``benchmark core``: the real Scheduler with the whole default profile, without an API server.

Set-up (objects, first lists, pods that are not measured) is outside the measured time. What is
timed is ``Scheduler.run_once`` until each measured pod has had its attempt, or, where the workload
says so, a node: queue, cycle, binding, records and their reading are all in it.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from itertools import count

from scheduler_core.algorithm import SeededRandom
from scheduler_core.clock import VirtualClock
from scheduler_core.config import SchedulerConfiguration, default_configuration
from scheduler_core.executor import InlineExecutor
from scheduler_core.plugins.registry import in_tree_registry
from scheduler_core.ports import NotFound
from scheduler_core.records import Outcome
from scheduler_core.scheduler import Scheduler
from scheduler_core.scheduler_options import SchedulerOptions

from .cluster import BenchmarkCluster
from .objects import node_from, object_from, pod_from
from .reader import RecordReader
from .report import Report, peak_rss_mib
from .workload import (
    Barrier,
    Churn,
    CreateNodes,
    CreateObjects,
    CreatePods,
    InvalidWorkload,
    Workload,
)

__all__ = ["CoreBenchmark", "Measure", "StuckError"]

#: Of tie-breaking and of preemption's first node: two runs do the same.
SEED = 1
#: How long pods may be without what an operation waits for, in seconds of the scheduler's clock;
#: the longest backoff is 10.
PATIENCE = 60.0
#: Cycles between two words about progress.
_PROGRESS_EVERY = 50
#: Pods that are on the nodes before (``existing_pods``).
EXISTING = {
    "kind": "Pod",
    "apiVersion": "v1",
    "metadata": {"labels": {"app": "existing"}},
    "spec": {
        "containers": [
            {
                "name": "main",
                "image": "registry.example/existing:v1",
                "resources": {"requests": {"cpu": "100m", "memory": "500Mi"}},
            }
        ]
    },
}

Measure = Callable[[], AbstractContextManager[object]]
Progress = Callable[[int], None]


class StuckError(Exception):
    """The scheduler has nothing to do, and pods have not become what the workload waits for."""


class CoreBenchmark:
    """One run of one workload; a new object for each.

    Args:
        nodes / pods: instead of the workload's own parameters.
        existing_pods: bound pods on the nodes, in turn, before anything is scheduled.
        plain: without work for one pod serving the next (SchedulerOptions.reuse).
        measuring: entered around the measured part, for a profiler.
        progress: told how many measured pods are through; called seldom.

    Attributes:
        cluster: what became of everything.
        measured: uids of the measured pods, in the order of creation.
        reader: the observer.
    """

    def __init__(
        self,
        workload: Workload,
        *,
        nodes: int | None = None,
        pods: int | None = None,
        existing_pods: int = 0,
        config: SchedulerConfiguration | None = None,
        plain: bool = False,
        measuring: Measure = nullcontext,
        progress: Progress = lambda done: None,
    ) -> None:
        self._workload = workload
        given = {"nodes": nodes, "pods": pods}
        self.parameters = {
            name: default if (value := given[name]) is None else value
            for name, default in workload.parameters.items()
        }
        self._existing_pods = existing_pods
        self._measuring = measuring
        self._progress = progress
        self._numbers = count()
        self._nodes: list[str] = []
        self._churns: list[_Churning] = []
        self._clock = VirtualClock(1_800_000_000.0)
        self.cluster = BenchmarkCluster()
        self.reader = RecordReader()
        self.measured: list[str] = []
        self.scheduler = Scheduler(
            config or default_configuration(in_tree_registry()),
            self.cluster,
            clock=self._clock,
            executor=InlineExecutor(),
            observers=[self.reader],
            tie_breaker=SeededRandom(SEED),
            options=SchedulerOptions(seed=SEED, reuse=not plain),
        )
        self._is_started = False
        self._give_up_at = 0.0
        self._report: Report | None = None

    def run(self) -> Report:
        """
        Raises:
            StuckError: pods that were to get a node did not.
        """
        self.scheduler.pause()
        first_pods = True
        for op in self._workload.ops:
            if isinstance(op, CreateNodes):
                self._create_nodes(op)
            elif isinstance(op, CreateObjects):
                self._create_objects(op)
            elif isinstance(op, Churn):
                self._churns.append(_Churning(op, self))
            elif isinstance(op, Barrier):
                self._schedule(lambda: self.scheduler.depths().active == 0)
            else:
                if first_pods:
                    self._create_existing()
                first_pods = False
                self._create_pods(op)
        assert self._report is not None, "a workload file has exactly one measured createPods"
        return self._report

    # -- operations --------------------------------------------------------------------------------

    def _create_nodes(self, op: CreateNodes) -> None:
        for index in range(op.count.value(self.parameters)):
            name = f"{op.prefix}{index:05d}"
            template = self._workload.templates[op.templates[index % len(op.templates)]]
            self.cluster.create("Node", node_from(template, name, index, op.labels))
            self._nodes.append(name)

    def _create_objects(self, op: CreateObjects) -> None:
        template = self._workload.templates[op.template]
        for _ in range(op.count.value(self.parameters)):
            number = next(self._numbers)
            obj = object_from(template, f"{op.template}-{number}", number)
            self.cluster.create(str(template["kind"]), obj)

    def _create_existing(self) -> None:
        for index in range(self._existing_pods):
            node = self._node_in_turn(index)
            pod = pod_from(EXISTING, f"existing-{index:06d}", index, "default", node)
            self.cluster.create("Pod", pod)

    def _create_pods(self, op: CreatePods) -> None:
        uids = []
        for index in range(op.count.value(self.parameters)):
            template = self._workload.templates[op.templates[index % len(op.templates)]]
            node = self._node_in_turn(index) if op.bound else ""
            pod = pod_from(template, f"{op.prefix}{index:06d}", index, op.namespace, node)
            uids.append(str(self.cluster.create("Pod", pod)["metadata"]["uid"]))
        self._take_in()
        if op.measured:
            self._measure(op, uids)
        elif not op.bound:
            self._schedule(self._done(op, uids))

    def add_churn(self, template: str) -> tuple[str, str, str]:
        """Create one object of a template; its kind, namespace and name."""
        obj = self._workload.templates[template]
        kind, number = str(obj["kind"]), next(self._numbers)
        name = f"churn-{template}-{number}"
        namespace = "default" if kind == "Pod" else ""
        if kind == "Node":
            made = node_from(obj, name, number, {})
        else:
            made = object_from(obj, name, number, namespace)
        self.cluster.create(kind, made)
        return kind, namespace, name

    # -- running -----------------------------------------------------------------------------------

    def _take_in(self) -> None:
        """Have the scheduler take in what was created, without scheduling."""
        if not self._is_started:
            self._is_started = True
            self.scheduler.start()
        while self.scheduler.run_once():
            pass

    def _measure(self, op: CreatePods, uids: list[str]) -> None:
        self.measured = uids
        done = self._done(op, uids)
        self.reader.forget()
        with self._measuring():
            cpu, started = time.process_time(), time.perf_counter()
            self._schedule(done, progress=True)
            seconds = time.perf_counter() - started
            cpu = time.process_time() - cpu
        outcomes = Counter(str(self.reader.attempts[uid]) for uid in uids)
        self._report = Report(
            workload=self._workload.name,
            nodes=self.parameters["nodes"],
            pods=len(uids),
            existing_pods=self._existing_pods,
            seconds=seconds,
            cpu_seconds=cpu,
            cycles=len(self.reader.durations),
            durations=tuple(self.reader.durations),
            point_seconds=dict(self.reader.point_seconds),
            plugin_seconds=dict(self.reader.plugin_seconds),
            outcomes=dict(sorted(outcomes.items())),
            peak_rss=peak_rss_mib(),
        )

    def _done(self, op: CreatePods, uids: list[str]) -> Callable[[], bool]:
        """Whether all of ``uids`` are what the operation waits for; each is looked at once."""
        waiting = deque(uids)
        attempts = self.reader.attempts

        def is_done() -> bool:
            while waiting:
                outcome = attempts.get(waiting[0])
                if outcome is None or (op.wait_for == "node" and outcome is not Outcome.SCHEDULED):
                    return False
                waiting.popleft()
            return True

        return is_done

    def _schedule(self, until: Callable[[], bool], *, progress: bool = False) -> None:
        """Turn after turn; where nothing is to do, on to the moment at which something is."""
        scheduler, cycles = self.scheduler, self.reader.durations
        scheduler.resume()
        self._give_up_at = self._clock.now() + PATIENCE
        while not until():
            if not scheduler.run_once():
                self._move_clock()
            for churn in self._churns:
                churn.go_on(len(cycles))
            if progress and len(cycles) % _PROGRESS_EVERY == 0:
                self._progress(len(cycles))
        scheduler.pause()

    def _move_clock(self) -> None:
        due = self.scheduler.queue.next_deadline()
        if due is None or due > self._give_up_at:
            raise StuckError(
                f"workload {self._workload.name}: pods are left that cannot be scheduled; "
                f"the scheduler has {self.scheduler.depths()}"
            )
        self._clock.set(max(due, self._clock.now()))

    def _node_in_turn(self, index: int) -> str:
        if not self._nodes:
            raise InvalidWorkload(self._workload.name, "ops", "there are no nodes for bound pods")
        return self._nodes[index % len(self._nodes)]


class _Churning:
    """One churn operation at work."""

    def __init__(self, op: Churn, benchmark: CoreBenchmark) -> None:
        self._op = op
        self._benchmark = benchmark
        self._there: dict[str, deque[tuple[str, str, str]]] = {t: deque() for t in op.templates}
        self._next = op.every_pods

    def go_on(self, cycles: int) -> None:
        """``cycles`` have been run; do what is due."""
        if cycles < self._next:
            return
        self._next = cycles + self._op.every_pods
        for template, there in self._there.items():
            if len(there) >= self._op.keep:
                self._remove(*there.popleft())
            there.append(self._benchmark.add_churn(template))

    def _remove(self, kind: str, namespace: str, name: str) -> None:
        # A pod leaves with its node.
        with suppress(NotFound):
            self._benchmark.cluster.delete(kind, namespace, name)
