"""Would one more node help? What an autoscaler asks kube-scheduler's framework, as a program.

It reads a cluster from a file, looks which waiting pods fit nowhere, and tries how many nodes of
the shape of an existing one they would need. Filter plugins run alone: there is no queue, no
cluster and no database, and nothing is changed anywhere.

    python examples/framework_as_library.py CLUSTER.json --like NODE [--config FILE]

CLUSTER.json is what ``kubectl get nodes,pods,... -o json`` prints.
"""

# ruff: noqa: T201 - a program talks to its user
from __future__ import annotations

import argparse
import copy
import sys
from collections.abc import Iterable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # where scheduler_core lies

from scheduler_core.api import HOSTNAME_LABEL, Node, Pod
from scheduler_core.config import load_configuration_file
from scheduler_core.library import StandaloneFramework, framework_for
from scheduler_core.plugins.registry import in_tree_registry
from scheduler_core.snapshot_file import SnapshotFile, load_snapshot


def waiting_pods(snapshot: SnapshotFile) -> list[Pod]:
    """Pods without a node, the most important first."""
    pods = [pod for pod in snapshot.of_kind(Pod) if not pod.is_assigned and not pod.is_terminal]
    return sorted(pods, key=lambda pod: -pod.priority)


def place_what_fits(cluster: StandaloneFramework, pods: Iterable[Pod]) -> list[Pod]:
    """Put each pod on the first node where it fits; those that fit nowhere."""
    left = []
    for pod in pods:
        statuses = cluster.filter(pod)  # one status per node, from PreFilter and Filter
        rows = statuses.feasible.nonzero()[0]
        if len(rows):
            cluster.place(pod, cluster.nodes.names[rows[0]])
        else:
            left.append(pod)
    return left


def new_node(template: Node, number: int) -> Node:
    """A node like an existing one, empty and with a name of its own."""
    raw = copy.deepcopy(dict(template.raw))
    name = f"new-{number}"
    raw["metadata"]["name"] = raw["metadata"].setdefault("labels", {})[HOSTNAME_LABEL] = name
    return Node.from_dict(raw)


def nodes_needed(
    cluster: StandaloneFramework, template: Node, pods: list[Pod]
) -> tuple[int, dict[str, str]]:
    """How many nodes like ``template`` ``pods`` need; pod -> why not even a new one is enough."""
    needed, hopeless = 0, {}
    for pod in pods:
        if not place_what_fits(cluster, [pod]):
            continue  # there was room on a node that came for another pod
        node = new_node(template, needed + 1)
        cluster.add(node)
        status = cluster.fits(pod, node.name)
        if status.is_success:
            cluster.place(pod, node.name)
            needed += 1
        else:
            cluster.remove(node)
            hopeless[pod.key] = status.message
    return needed, hopeless


def main() -> None:
    parser = argparse.ArgumentParser(description="Would one more node help?")
    parser.add_argument("cluster", help="kubectl get nodes,pods,... -o json")
    parser.add_argument("--like", required=True, metavar="NODE", help="the shape of new nodes")
    parser.add_argument("--config", metavar="FILE", help="KubeSchedulerConfiguration")
    options = parser.parse_args()

    snapshot = load_snapshot(options.cluster)
    waiting = waiting_pods(snapshot)
    others = [obj for obj in snapshot.objects if not isinstance(obj, Pod) or obj.is_assigned]
    config = load_configuration_file(options.config, in_tree_registry()) if options.config else None
    cluster = framework_for((), objects=others, config=config)
    template = next((node for node in snapshot.of_kind(Node) if node.name == options.like), None)
    if template is None:
        raise SystemExit(f"there is no node {options.like}")

    left = place_what_fits(cluster, waiting)
    for pod in left:
        reasons = {status.message for status in cluster.filter(pod)}
        print(f"{pod.key} fits on no node: {'; '.join(sorted(reasons))}")
    needed, hopeless = nodes_needed(cluster, template, left)
    for key, reason in hopeless.items():
        print(f"{key} does not even fit on a new node: {reason}")
    helped = len(left) - len(hopeless)
    print(f"{len(waiting)} pods wait, {len(waiting) - len(left)} of them fit as it is.")
    print(f"New nodes like {options.like}: {needed}, for {helped} of the others.")


if __name__ == "__main__":
    main()
