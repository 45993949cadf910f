"""Workload files of one's own: what they may hold, and what a faulty one is told."""

from __future__ import annotations

import pytest

from scheduler_core.benchmark.core import CoreBenchmark
from scheduler_core.benchmark.workload import Count, InvalidWorkload
from scheduler_core.benchmark.workload_file import load_builtin, load_workload_file, parse_workload
from tests.benchmark.support import SMALLEST, nodes, workload


def refusal(text):
    with pytest.raises(InvalidWorkload) as refused:
        parse_workload(text, "mine.yaml")
    return str(refused.value)


@pytest.mark.parametrize(
    "old,new,message",
    [
        pytest.param("name: mine", "name: 3", "name: 3 is not text", id="name"),
        pytest.param("name: mine", "nam: x", "nam: is an unknown field", id="unknown field"),
        pytest.param(", pods: 2}", "}", "parameters.pods: is missing", id="a parameter is missing"),
        pytest.param(
            "nodes: 3", "nodes: 0", "parameters.nodes: 0 is not a whole number from 1 on", id="zero"
        ),
        pytest.param(
            "nodes: 3",
            "nodes: true",
            "parameters.nodes: True is not a whole number from 1 on",
            id="true is no number",
        ),
        pytest.param(
            "kind: Node",
            "kind: Nod",
            "templates.node.kind: 'Nod' is not a known kind",
            id="unknown kind",
        ),
        pytest.param(
            "cpu: 100m",
            "cpu: fast",
            "templates.pod.spec.containers[0].resources.requests[cpu]: ",
            id="a quantity that is none",
        ),
        pytest.param(
            "image: app,",
            "imagee: app,",
            "templates.pod.spec.containers[0].imagee: is an unknown field",
            id="a misspelt field of a template",
        ),
        pytest.param(
            "opcode: createNodes",
            "opcode: createNode",
            "ops[0].opcode: 'createNode' is none of createNodes, createPods, createObjects, "
            "churn, barrier",
            id="unknown operation",
        ),
        pytest.param(
            "count: $nodes",
            "count: $node",
            "ops[0] (createNodes).count: '$node' is neither a number nor $nodes, $pods or "
            "4 * $nodes",
            id="unknown parameter",
        ),
        pytest.param(
            "count: $nodes",
            "count: 1.5",
            "ops[0] (createNodes).count: 1.5 is neither a number nor",
            id="half a node",
        ),
        pytest.param(
            "count: $nodes",
            "count: -1",
            "ops[0] (createNodes).count: -1 is not a whole number from 0 on",
            id="fewer than none",
        ),
        pytest.param(
            "count: $nodes, ",
            "count: $nodes, nodes: 3, ",
            "ops[0] (createNodes).nodes: is an unknown field",
            id="unknown field of an operation",
        ),
        pytest.param(
            "template: pod",
            "template: pot",
            "ops[1] (createPods).template: there is no template 'pot'",
            id="unknown template",
        ),
        pytest.param(
            "template: pod",
            "template: node",
            "ops[1] (createPods).template: template 'node' is not a Pod",
            id="a template of another kind",
        ),
        pytest.param(
            "template: pod,",
            "",
            "ops[1] (createPods).template: give either template or templates",
            id="no template",
        ),
        pytest.param(
            "collectMetrics: true",
            "collectMetrics: please",
            "ops[1] (createPods).collectMetrics: must be true or false",
            id="neither true nor false",
        ),
        pytest.param(
            "collectMetrics: true",
            "collectMetrics: false",
            "ops: exactly one createPods must have collectMetrics: true",
            id="nothing is measured",
        ),
        pytest.param(
            "collectMetrics: true",
            "collectMetrics: true, assign: inTurn",
            "ops[1] (createPods).assign: pods that are measured are placed by the scheduler",
            id="bound pods cannot be measured",
        ),
        pytest.param(
            "collectMetrics: true",
            "collectMetrics: true, waitFor: ever",
            "ops[1] (createPods).waitFor: 'ever' is none of attempt, node",
            id="unknown end",
        ),
        pytest.param(
            "ops:\n",
            "ops:\n  - {opcode: churn, template: pod, everyPods: 0}\n",
            "ops[0] (churn).everyPods: 0 is not a whole number from 1 on",
            id="churn without a pace",
        ),
        pytest.param(
            "ops:\n",
            "ops:\n  - {opcode: createObjects, template: pod}\n",
            "ops[0] (createObjects).template: use createPods",
            id="pods are no other objects",
        ),
        pytest.param("ops:\n", "ops:\n  - barrier\n", "ops[0]: must be a mapping", id="a word"),
    ],
)
def test_a_fault_is_told_with_file_operation_and_field(old, new, message):
    assert old in SMALLEST

    assert refusal(SMALLEST.replace(old, new, 1)).startswith(f"mine.yaml: {message}")


@pytest.mark.parametrize(
    "text,message",
    [
        pytest.param("", "mine.yaml: must be a mapping", id="empty"),
        pytest.param("- a\n- b\n", "mine.yaml: must be a mapping", id="a list"),
        pytest.param("name: [", "mine.yaml: is not YAML: ", id="no YAML"),
        pytest.param("name: x\n", "mine.yaml: templates: must be a mapping", id="no templates"),
        pytest.param(
            "name: !!python/object/apply:os.getcwd []\n", "mine.yaml: is not YAML: ", id="code"
        ),
    ],
)
def test_what_is_no_workload_at_all(text, message):
    assert refusal(text).startswith(message)


def test_a_file_that_cannot_be_read_and_one_that_is_not_there(tmp_path):
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"\xff\xfe\x00")

    with pytest.raises(
        InvalidWorkload, match=r"binary\.yaml: cannot be read: it is not UTF-8 text"
    ):
        load_workload_file(binary)
    with pytest.raises(InvalidWorkload, match=r"gone\.yaml: cannot be read: No such file"):
        load_workload_file(tmp_path / "gone.yaml")


def test_an_unknown_name_is_told_the_known_ones():
    with pytest.raises(InvalidWorkload, match="workload 'fast': unknown; there are affinity, anti"):
        load_builtin("fast")


@pytest.mark.parametrize(
    "text,count",
    [
        pytest.param("7", Count(7), id="a number"),
        pytest.param("$pods", Count(1, "pods"), id="a parameter"),
        pytest.param("4 * $nodes", Count(4, "nodes"), id="several for each"),
        pytest.param("4*$nodes", Count(4, "nodes"), id="without blanks"),
    ],
)
def test_counts(text, count):
    found = workload(SMALLEST.replace("count: $pods", f"count: {text}"))

    assert found.ops[1].count == count
    assert Count(4, "nodes").value({"nodes": 5, "pods": 1}) == 20


def test_a_workload_of_one_s_own_runs_with_its_own_numbers():
    benchmark = CoreBenchmark(workload())
    report = benchmark.run()

    assert (report.workload, report.nodes, report.pods) == ("mine", 3, 2)
    assert report.outcomes == {"scheduled": 2}


def test_templates_are_taken_in_turn_and_index_is_put_in():
    text = SMALLEST.replace(
        "  pod:\n",
        "  claim:\n    apiVersion: v1\n    kind: Namespace\n"
        '    metadata: {labels: {number: "{index}"}}\n'
        "  small:\n    apiVersion: v1\n    kind: Node\n"
        '    status: {allocatable: {cpu: "1", memory: 1Gi, pods: "1"}}\n  pod:\n',
    )
    text = text.replace("template: node}", "templates: [node, small], prefix: host-}")
    text += "  - {opcode: createObjects, count: 2, template: claim}\n"
    benchmark = CoreBenchmark(workload(text))
    benchmark.run()

    cpus = [node["status"]["allocatable"]["cpu"] for node in nodes(benchmark)]
    names = [node["metadata"]["name"] for node in nodes(benchmark)]
    numbers = [
        space["metadata"]["labels"]["number"] for space in benchmark.cluster.list("Namespace").items
    ]
    assert cpus == ["4", "1", "4"]
    assert names == ["host-00000", "host-00001", "host-00002"]
    assert numbers == ["0", "1"]


def test_no_two_objects_share_anything():
    """Else memory and speed would not be those of objects that came from an API server."""
    benchmark = CoreBenchmark(workload())
    benchmark.run()

    first, second = benchmark.cluster.list("Pod").items
    assert first["spec"] == second["spec"]
    assert first["spec"] is not second["spec"]
    assert first["spec"]["containers"][0] is not second["spec"]["containers"][0]


def test_bound_pods_need_nodes():
    text = SMALLEST.replace(
        "ops:\n", "ops:\n  - {opcode: createPods, count: 1, template: pod, assign: inTurn}\n"
    )

    with pytest.raises(InvalidWorkload, match="mine: ops: there are no nodes for bound pods"):
        CoreBenchmark(workload(text)).run()
