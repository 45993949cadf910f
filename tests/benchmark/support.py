"""Small runs of the benchmark's workloads, and what to ask of them."""

from __future__ import annotations

from collections import Counter
from typing import Any

from scheduler_core.benchmark.core import CoreBenchmark
from scheduler_core.benchmark.workload import Workload
from scheduler_core.benchmark.workload_file import parse_workload

ZONE = "topology.kubernetes.io/zone"

SMALLEST = """\
name: mine
parameters: {nodes: 3, pods: 2}
templates:
  node:
    apiVersion: v1
    kind: Node
    status: {allocatable: {cpu: "4", memory: 8Gi, pods: "110"}}
  pod:
    apiVersion: v1
    kind: Pod
    spec:
      containers:
        - {name: main, image: app, resources: {requests: {cpu: 100m}}}
ops:
  - {opcode: createNodes, count: $nodes, template: node}
  - {opcode: createPods, count: $pods, template: pod, collectMetrics: true}
"""


def workload(text: str = SMALLEST) -> Workload:
    return parse_workload(text, "mine.yaml")


def nodes_of_measured(benchmark: CoreBenchmark) -> list[str]:
    """The node of each measured pod, "" for none."""
    return [benchmark.cluster.node_of.get(uid, "") for uid in benchmark.measured]


def zones(benchmark: CoreBenchmark) -> Counter[str]:
    """Zone -> measured pods in it."""
    labels = {node["metadata"]["name"]: node["metadata"]["labels"] for node in nodes(benchmark)}
    return Counter(labels[name][ZONE] for name in nodes_of_measured(benchmark) if name)


def nodes(benchmark: CoreBenchmark) -> list[dict[str, Any]]:
    return list(benchmark.cluster.list("Node").items)
