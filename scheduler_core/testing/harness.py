"""A whole scheduler on a fake cluster in virtual time: the plugin author's test kit.

h = Harness(nodes=[make_node("n1").capacity(cpu="4")])
assert h.schedule(make_pod("p")).node == "n1"
assert h.node_of("p") == "n1"
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from scheduler_core.algorithm import SmallestName, TieBreaker
from scheduler_core.clock import VirtualClock
from scheduler_core.cluster.sandbox import SandboxCluster
from scheduler_core.config import configuration_from
from scheduler_core.framework.interface import Plugin
from scheduler_core.metrics import SchedulerMetrics
from scheduler_core.plugins.registry import in_tree_registry
from scheduler_core.ports import Executor, Ledger
from scheduler_core.records import CycleRecord, PermitDecision, Rest, WaitingPodRecord
from scheduler_core.scheduler import Scheduler
from scheduler_core.scheduler_options import SchedulerOptions
from scheduler_core.testing.invariants import validate
from scheduler_core.testing.observer import RecordingObserver

API_VERSION = "kubescheduler.config.k8s.io/v1"

#: Turns after which a scheduler that never comes to rest is taken for a bug.
MAX_TURNS = 5_000


class DecisionList:
    """A PermitInbox that tests fill by hand; each decision is handed out once."""

    def __init__(self) -> None:
        self.waiting: list[PermitDecision] = []

    def poll(self) -> list[PermitDecision]:
        taken, self.waiting = self.waiting, []
        return taken

    def heard_until(self, now: float) -> float:
        """Nothing is ever on its way."""
        return now


class Harness:
    """Scheduler, in-memory sandbox, virtual clock and inline executor in one.

    Args:
        nodes, pods, objects: builders (or anything with ``raw()``) to create at the start.
        profile: plugins and pluginConfig of the one profile, in KubeSchedulerConfiguration's shape.
        plugins: more plugin classes that the profile may name.
        waiting, resting: what to restore, as after a restart; ``cluster``: the one to go on with.
    """

    def __init__(
        self,
        *,
        nodes: Iterable[Any] = (),
        pods: Iterable[Any] = (),
        objects: Mapping[str, Iterable[Any]] | None = None,
        profile: Mapping[str, Any] | None = None,
        config: Mapping[str, Any] | None = None,
        plugins: Iterable[type[Plugin]] = (),
        cluster: SandboxCluster | None = None,
        clock: VirtualClock | None = None,
        executor: Executor | None = None,
        tie_breaker: TieBreaker | None = None,
        options: SchedulerOptions | None = None,
        metrics: SchedulerMetrics | None = None,
        waiting: Iterable[WaitingPodRecord] = (),
        resting: Iterable[Rest] = (),
        ledger: Ledger | None = None,
    ) -> None:
        self.clock = clock or VirtualClock(1_000_000.0)
        self.cluster = cluster or SandboxCluster(self.clock)
        self.observer = RecordingObserver()
        self.decisions = DecisionList()
        registry = in_tree_registry()
        for plugin in plugins:
            registry.register(plugin.name, plugin)
        document = {
            "apiVersion": API_VERSION,
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"schedulerName": "default-scheduler", **(profile or {})}],
            **(config or {}),
        }
        self.scheduler = Scheduler(
            configuration_from(document, registry),
            self.cluster,
            clock=self.clock,
            executor=executor,
            observers=[self.observer],
            permit_inbox=self.decisions,
            ledger=ledger,
            metrics=metrics,
            tie_breaker=tie_breaker or SmallestName(),
            options=options or SchedulerOptions(listing_interval=0.0),
        )
        self.create("Node", *nodes)
        for kind, items in (objects or {}).items():
            self.create(kind, *items)
        self.create("Pod", *pods)
        self.scheduler.start(waiting=list(waiting), resting=list(resting))

    # -- the cluster -----------------------------------------------------------------------------

    def create(self, kind: str, *builders: Any) -> None:
        """Create objects; a builder gives its JSON by ``raw()``."""
        for builder in builders:
            self.cluster.create(kind, builder.raw() if hasattr(builder, "raw") else builder)

    def pod(self, name: str, namespace: str = "default") -> dict[str, Any]:
        """The pod's JSON as the API has it."""
        return dict(self.cluster.get("Pod", namespace, name))

    def node_of(self, name: str, namespace: str = "default") -> str:
        """Where the pod is bound to, or ""."""
        return str(self.pod(name, namespace)["spec"].get("nodeName", ""))

    def condition(self, name: str, namespace: str = "default") -> dict[str, Any]:
        """The pod's PodScheduled condition; {} where it has none."""
        conditions = self.pod(name, namespace).get("status", {}).get("conditions", [])
        return next((c for c in conditions if c["type"] == "PodScheduled"), {})

    def events(self, reason: str) -> list[dict[str, Any]]:
        """Events of the cluster with this reason, oldest first."""
        return [e for e in self.cluster.list("Event").items if e["reason"] == reason]

    # -- the scheduler -----------------------------------------------------------------------------

    def settle(self) -> None:
        """Run turns until nothing is left to do at this moment; then check every invariant."""
        for _ in range(MAX_TURNS):
            if not self.scheduler.run_once():
                self.validate()
                return
        story = "\n".join(
            f"{c.pod.key} {c.outcome}: {c.message}" for c in self.observer.cycles[-6:]
        )
        raise AssertionError(f"no rest after {MAX_TURNS} turns; the last cycles:\n{story}")

    def schedule(self, pod: Any) -> CycleRecord:
        """Create a pod (a builder or JSON), let the scheduler come to rest, and say how the pod's
        first scheduling cycle went: the node, the scores, or who turned it down and why.

        Raises:
            AssertionError: it was not tried: it is gated, or asks for another scheduler.
        """
        raw = pod.raw() if hasattr(pod, "raw") else pod
        created = self.cluster.create("Pod", raw)["metadata"]
        self.settle()
        for cycle in self.cycles(created["name"], created["namespace"]):
            if cycle.pod.uid == created["uid"]:
                return cycle
        raise AssertionError(f"pod {created['namespace']}/{created['name']} was not tried")

    def advance(self, seconds: float) -> None:
        """Let time pass, then settle."""
        self.clock.advance(seconds)
        self.settle()

    def decide(self, *decisions: PermitDecision) -> None:
        """Hand in people's decisions, then settle."""
        self.decisions.waiting.extend(decisions)
        self.settle()

    def validate(self) -> None:
        """Check the invariants of cache, queue and snapshot."""
        scheduler = self.scheduler
        waiting = [w.pod for w in scheduler.waiting_pods]
        validate(scheduler.cache, scheduler.queue, scheduler.snapshot, waiting)

    def cycles(self, name: str, namespace: str = "default") -> list[CycleRecord]:
        """Every scheduling cycle of a pod, oldest first."""
        key = f"{namespace}/{name}"
        return [c for c in self.observer.cycles if c.pod.key == key]

    def cycle(self, name: str, namespace: str = "default") -> CycleRecord:
        """The pod's last scheduling cycle."""
        return self.cycles(name, namespace)[-1]

    def waiting_names(self) -> list[str]:
        """Names of the pods that wait at Permit, in the order in which they began to."""
        return [w.pod.name for w in self.scheduler.waiting_pods]
