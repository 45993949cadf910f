"""Every workload that comes with KubeSched, once and small: is done what it says?"""

from __future__ import annotations

import pytest

from scheduler_core.benchmark.core import CoreBenchmark, StuckError
from scheduler_core.benchmark.workload import CreatePods
from scheduler_core.benchmark.workload_file import builtin_workloads, load_builtin
from scheduler_core.testing.invariants import validate
from tests.benchmark.support import SMALLEST, nodes, nodes_of_measured, workload, zones

NODES, PODS = 24, 40
REFERENCE = (
    "basic", "anti-affinity", "affinity", "spread", "preferred-anti-affinity", "unschedulable"
)  # fmt: skip


def run(name, nodes=NODES, pods=PODS, **options):
    benchmark = CoreBenchmark(load_builtin(name), nodes=nodes, pods=pods, **options)
    report = benchmark.run()
    assert benchmark.reader.failed_bindings == 0
    scheduler = benchmark.scheduler
    validate(scheduler.cache, scheduler.queue, scheduler.snapshot)
    return benchmark, report


def test_the_names_that_are_promised():
    assert set(builtin_workloads()) == {*REFERENCE, "preemption", "churn", "mix"}


@pytest.mark.parametrize("name", builtin_workloads())
def test_each_is_called_as_its_file_and_says_what_it_is(name):
    found = load_builtin(name)

    assert found.name == name
    assert found.description.endswith(".")


@pytest.mark.parametrize("name", REFERENCE)
def test_the_reference_workloads_are_the_issue_s(name):
    """Nodes of 4 cpu, 32Gi, 110 pods in 3 zones; 2,000 pods of 100m, 500Mi with app=a."""
    found = load_builtin(name)
    (pods,) = [op for op in found.ops if isinstance(op, CreatePods)]
    pod = found.templates[pods.templates[0]]
    requests = pod["spec"]["containers"][0]["resources"]["requests"]
    cpu = "9" if name == "unschedulable" else "100m"

    assert found.parameters == {"nodes": 5000, "pods": 2000}
    assert found.templates["node"]["status"]["allocatable"] == {
        "cpu": "4", "memory": "32Gi", "pods": "110",
    }  # fmt: skip
    assert requests == {"cpu": cpu, "memory": "500Mi"}
    assert pod["metadata"]["labels"] == {"app": "a"}


def test_nodes_have_a_zone_in_turn_and_their_hostname():
    benchmark, _ = run("basic", pods=1)

    labels = [node["metadata"]["labels"] for node in nodes(benchmark)]
    assert [label["topology.kubernetes.io/zone"] for label in labels[:4]] == [
        "zone-a", "zone-b", "zone-c", "zone-a",
    ]  # fmt: skip
    assert labels[7]["kubernetes.io/hostname"] == "node-00007"


@pytest.mark.parametrize("name", ["basic", "affinity", "spread", "preferred-anti-affinity"])
def test_every_pod_gets_a_node(name):
    benchmark, report = run(name)

    assert report.outcomes == {"scheduled": PODS}
    assert benchmark.cluster.bindings == report.cycles == PODS
    assert all(nodes_of_measured(benchmark))


def test_basic_uses_the_least_loaded_nodes():
    benchmark, _ = run("basic")

    found = nodes_of_measured(benchmark)
    assert {found.count(name) for name in set(found)} == {1, 2}
    assert len(set(found)) == NODES


def test_anti_affinity_has_one_pod_per_host_and_no_room_for_more():
    benchmark, report = run("anti-affinity")

    found = [name for name in nodes_of_measured(benchmark) if name]
    assert len(found) == len(set(found)) == NODES
    assert report.outcomes == {"scheduled": NODES, "unschedulable": PODS - NODES}


def test_affinity_has_one_zone():
    benchmark, _ = run("affinity")

    assert len(zones(benchmark)) == 1


def test_spread_is_within_its_skew():
    benchmark, _ = run("spread", nodes=25)

    found = zones(benchmark)
    assert len(found) == 3
    assert max(found.values()) - min(found.values()) <= 5


def test_preferred_anti_affinity_fills_hosts_evenly():
    benchmark, _ = run("preferred-anti-affinity")

    assert len(set(nodes_of_measured(benchmark))) == NODES


def test_unschedulable_pods_are_tried_once():
    benchmark, report = run("unschedulable")

    assert report.outcomes == {"unschedulable": PODS}
    assert report.cycles == PODS
    assert benchmark.cluster.node_of == {}


def test_preemption_makes_room_for_each():
    benchmark, report = run("preemption", nodes=6, pods=6)

    # 4 pods of 900m on a node of 4: for one that asks 3, three have to go.
    assert report.outcomes == {"scheduled": 6}
    assert benchmark.cluster.evicted == 18
    assert sorted(nodes_of_measured(benchmark)) == [f"node-{i:05d}" for i in range(6)]
    assert report.point_seconds["PostFilter"] > 0


def test_churn_keeps_coming_and_going():
    benchmark, report = run("churn", pods=100)

    visitors = [n["metadata"]["name"] for n in nodes(benchmark) if "churn" in n["metadata"]["name"]]
    short_lived = [
        pod["metadata"]["name"]
        for pod in benchmark.cluster.list("Pod").items
        if pod["metadata"]["name"].startswith("churn-short-lived")
    ]
    assert report.outcomes == {"scheduled": 100}
    assert report.cycles > 100, "the others are scheduled too"
    assert len(visitors) == len(short_lived) == 3
    assert not set(nodes_of_measured(benchmark)) & set(visitors)
    snapshot = benchmark.scheduler.snapshot
    assert set(snapshot.nodes.names) == {n["metadata"]["name"] for n in nodes(benchmark)}


def test_mix_has_something_of_everything():
    _, report = run("mix")

    assert report.outcomes == {"scheduled": PODS - PODS // 10, "unschedulable": PODS // 10}
    used = {plugin for point, plugin in report.plugin_seconds if point == "Score"}
    assert {"InterPodAffinity", "NodeAffinity", "NodeResourcesFit"} <= used


@pytest.mark.parametrize("name", builtin_workloads())
def test_two_runs_do_the_same_and_so_does_a_run_without_reuse(name):
    runs = [run(name, nodes=20, pods=15, **more) for more in ({}, {}, {"plain": True})]

    placements = [nodes_of_measured(benchmark) for benchmark, _ in runs]
    assert placements[0] == placements[1] == placements[2]
    assert len({benchmark.reader.checksum for benchmark, _ in runs}) == 1
    assert len({report.cycles for _, report in runs}) == 1


def test_pods_that_are_there_before_count():
    benchmark, report = run("basic", nodes=5, pods=10, existing_pods=20)

    assert report.existing_pods == 20
    assert len(benchmark.cluster.node_of) == 30
    used = [info.requested["cpu"] for info in benchmark.scheduler.snapshot.nodes]
    assert used == [600] * 5


@pytest.mark.parametrize(
    "name,nodes,pods",
    [
        pytest.param("mine", 3, 2, id="nothing would help"),
        pytest.param("preemption", 2, 3, id="backing off again and again"),
    ],
)
def test_a_workload_that_waits_for_ever_says_so(name, nodes, pods):
    text = SMALLEST.replace("100m", '"9"').replace(
        "collectMetrics", "waitFor: node, collectMetrics"
    )
    found = workload(text) if name == "mine" else load_builtin(name)
    benchmark = CoreBenchmark(found, nodes=nodes, pods=pods)

    with pytest.raises(
        StuckError, match=f"workload {name}: pods are left that cannot be scheduled"
    ):
        benchmark.run()


def test_progress_is_told():
    told = []

    run("basic", nodes=3, pods=100, progress=told.append)

    assert told[-1] == 100
    assert told == sorted(told)


def test_the_measured_part_is_what_is_profiled():
    """Neither set-up nor the pods of other operations."""
    entered = []

    class Measuring:
        def __init__(self, benchmark):
            self.benchmark = benchmark

        def __enter__(self):
            entered.append(self.benchmark[0].cluster.bindings)

        def __exit__(self, *_):
            entered.append(self.benchmark[0].cluster.bindings)

    made = []
    first = "  - {opcode: createPods, count: 5, template: pod, prefix: first-}\n"
    measured = "  - {opcode: createPods, count: $pods"
    text = SMALLEST.replace(measured, first + measured) + "  - {opcode: barrier}\n"
    made.append(CoreBenchmark(workload(text), measuring=lambda: Measuring(made)))
    report = made[0].run()

    assert entered == [5, 7]
    assert (report.cycles, len(report.durations)) == (2, 2)
