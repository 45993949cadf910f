"""Work for one pod serves the next one like it, and decides nothing otherwise.

The same things happen to two schedulers, one that reuses (``SchedulerOptions.reuse``) and one that
makes a full pass in every cycle; each status, score and choice of theirs must be the same.
"""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from scheduler_core.records import CycleRecord
from scheduler_core.scheduler_options import SchedulerOptions
from scheduler_core.testing.builders import make_node, make_pod
from scheduler_core.testing.harness import Harness

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
APP = {"app": "a"}

#: Pods that come again and again, by what makes a plugin look at them.
TEMPLATES = {
    "plain": lambda pod: pod.req(cpu="100m", memory="200Mi"),
    "large": lambda pod: pod.req(cpu="1", memory="1Gi"),
    "nothing": lambda pod: pod,
    "too large": lambda pod: pod.req(cpu="64"),
    "port": lambda pod: pod.req(cpu="10m").host_port(80),
    "tolerates": lambda pod: pod.req(cpu="100m").toleration("k"),
    "zone a": lambda pod: pod.req(cpu="100m").node_affinity_in(ZONE, "a"),
    "rather zone b": lambda pod: pod.req(cpu="100m").preferred_node_affinity_in(7, ZONE, "b"),
    "image": lambda pod: pod.container(image="registry.example/big:1", requests={"cpu": "50m"}),
    "one a host": lambda pod: pod.req(cpu="50m").label(APP).pod_anti_affinity(HOST, APP),
    "with others": lambda pod: pod.req(cpu="50m").label(APP).pod_affinity(ZONE, APP),
    "rather apart": lambda pod: (
        pod.req(cpu="50m").label(APP).pod_anti_affinity(HOST, APP, weight=9)
    ),
    "spread": lambda pod: pod.req(cpu="50m").label(APP).spread(ZONE, APP),
    "rather spread": lambda pod: (
        pod.req(cpu="50m").label(APP).spread(HOST, APP, whenUnsatisfiable="ScheduleAnyway")
    ),
}


def of(template: str, name: str) -> Any:
    """A pod of a template, with a note of its own as networks and meshes write them."""
    return TEMPLATES[template](make_pod(name)).annotation({"example.com/address": name})


def told(record: CycleRecord) -> dict[str, Any]:
    """Everything that a cycle says, but how long it took."""
    matrix = record.matrix
    return {
        "pod": record.pod.name,
        "outcome": record.outcome,
        "node": record.node,
        "score": record.score,
        "ties": record.ties,
        "message": record.message,
        "plugins": record.unschedulable_plugins,
        "counts": (record.nodes_total, record.nodes_evaluated, record.nodes_feasible),
        "victims": record.victims,
        "nominated": record.nominated_node,
        "rejections": list(record.rejections),
        "best": list(record.best),
        "matrix": None
        if matrix is None
        else {
            "names": matrix.node_names,
            "plugins": matrix.plugins,
            "weights": matrix.weights.tolist(),
            "raw": [column.tolist() for column in matrix.raw],
            "normalized": matrix.normalized.tolist(),
            "total": matrix.total.tolist(),
            "why": [matrix.reasons[i] if i >= 0 else int(i) for i in matrix.rejection.tolist()],
        },
    }


def harness(*, reuse: bool) -> Harness:
    # listing_interval=0: the queue is listed after every turn, as in other tests of the core.
    return Harness(options=SchedulerOptions(listing_interval=0.0, seed=1, reuse=reuse))


class Twins(RuleBasedStateMachine):
    """Two schedulers that live through the same."""

    def __init__(self) -> None:
        super().__init__()
        self.twins = (harness(reuse=True), harness(reuse=False))
        self.numbers = itertools.count()
        self.nodes: list[str] = []
        self.pods: list[str] = []
        self.compared = 0
        for zone in "aabbc":
            self.add_node(zone, 2, False)

    def do(self, kind: str, make: Any) -> None:
        for twin in self.twins:
            twin.create(kind, make())
        self.settle()

    def settle(self) -> None:
        for twin in self.twins:
            twin.settle()

    @rule(zone=st.sampled_from("abc"), cpu=st.integers(1, 4), tainted=st.booleans())
    def add_node(self, zone: str, cpu: int, tainted: bool) -> None:
        name = f"n{next(self.numbers):03}"
        self.nodes.append(name)

        def make() -> Any:
            node = make_node(name).capacity(cpu=str(cpu), memory="4Gi", pods="6").zone(zone)
            node = node.label({HOST: name})
            if cpu == 4:
                node = node.image("registry.example/big:1", size=500 * 1024 * 1024)
            return node.taint("k") if tainted else node

        self.do("Node", make)

    @rule(template=st.sampled_from(sorted(TEMPLATES)), count=st.integers(1, 6))
    def add_pods(self, template: str, count: int) -> None:
        for _ in range(count):
            name = f"p{next(self.numbers):03}"
            self.pods.append(name)
            self.do("Pod", lambda name=name: of(template, name))

    @rule(templates=st.lists(st.sampled_from(sorted(TEMPLATES)), min_size=2, max_size=8))
    def add_mixed_pods(self, templates: list[str]) -> None:
        for template in (*templates, *templates):
            self.add_pods(template, 1)

    @precondition(lambda self: self.pods)
    @rule(data=st.data())
    def delete_pod(self, data: st.DataObject) -> None:
        name = self.pods.pop(data.draw(st.integers(0, len(self.pods) - 1)))
        for twin in self.twins:
            twin.cluster.delete("Pod", "default", name, grace_period_seconds=0)
        self.settle()

    @precondition(lambda self: self.pods)
    @rule(data=st.data(), change=st.sampled_from(("runs", "label", "resized")))
    def change_pod(self, data: st.DataObject, change: str) -> None:
        name = data.draw(st.sampled_from(self.pods))
        for twin in self.twins:
            pod = twin.cluster.get("Pod", "default", name)
            metadata, status = dict(pod["metadata"]), dict(pod.get("status") or {})
            if change == "runs":
                status["phase"] = "Running"
            elif change == "label":
                metadata["labels"] = {**metadata.get("labels", {}), "app": "b"}
            else:
                resources = {"requests": {"cpu": "2"}}
                status["containerStatuses"] = [
                    {"name": container["name"], "resources": resources}
                    for container in pod["spec"]["containers"]
                ]
            twin.cluster.update("Pod", {**pod, "metadata": metadata, "status": status})
        self.settle()

    @precondition(lambda self: len(self.nodes) > 1)
    @rule(data=st.data())
    def delete_node(self, data: st.DataObject) -> None:
        name = self.nodes.pop(data.draw(st.integers(0, len(self.nodes) - 1)))
        for twin in self.twins:
            twin.cluster.delete("Node", "", name)
        self.settle()

    @rule(
        data=st.data(),
        change=st.sampled_from(("cordon", "uncordon", "taint", "zone", "grow")),
    )
    def change_node(self, data: st.DataObject, change: str) -> None:
        name = data.draw(st.sampled_from(self.nodes))
        for twin in self.twins:
            node = twin.cluster.get("Node", "", name)
            spec = dict(node.get("spec") or {})
            metadata, status = dict(node["metadata"]), dict(node["status"])
            if change in ("cordon", "uncordon"):
                spec["unschedulable"] = change == "cordon"
            elif change == "taint":
                spec["taints"] = [{"key": "k", "value": "", "effect": "NoSchedule"}]
            elif change == "zone":
                metadata["labels"] = {**metadata["labels"], ZONE: "c"}
            else:
                status["allocatable"] = {**status["allocatable"], "cpu": "8"}
            twin.cluster.update(
                "Node", {**node, "metadata": metadata, "spec": spec, "status": status}
            )
        self.settle()

    @rule(seconds=st.sampled_from((1.0, 11.0, 301.0)))
    def pass_time(self, seconds: float) -> None:
        for twin in self.twins:
            twin.advance(seconds)

    @invariant()
    def both_say_the_same(self) -> None:
        reusing, full = (twin.observer.cycles for twin in self.twins)
        assert len(reusing) == len(full)
        for one, other in zip(reusing[self.compared :], full[self.compared :], strict=True):
            assert told(one) == told(other)
        self.compared = len(full)


TestTwins = Twins.TestCase
TestTwins.settings = settings(
    max_examples=25,
    stateful_step_count=12,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@pytest.mark.parametrize("template", sorted(TEMPLATES))
def test_ten_alike_decide_as_ten_full_passes(template: str) -> None:
    twins = (harness(reuse=True), harness(reuse=False))
    for twin in twins:
        for index in range(6):
            node = make_node(f"n{index}").capacity(cpu="4", memory="8Gi", pods="9")
            twin.create("Node", node.zone("abc"[index % 3]).label({HOST: f"n{index}"}))
        for index in range(10):
            twin.create("Pod", of(template, f"p{index}"))
        twin.settle()
    reusing, full = (twin.observer.cycles for twin in twins)
    assert list(map(told, reusing)) == list(map(told, full))
    equivalence = twins[0].scheduler.profiles["default-scheduler"].equivalence
    assert equivalence.built >= 1
    assert equivalence.patched >= 5, "the work of one served the next ones"
    assert twins[1].scheduler.profiles["default-scheduler"].equivalence.built == 0
