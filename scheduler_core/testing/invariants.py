"""What must always hold between cache, queue, snapshot and waiting pods.

    validate(cache, queue, snapshot)      # in a fixture's teardown

Nothing here is fast: it sums everything up again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np

from scheduler_core.api import Pod
from scheduler_core.backend.cache import Cache
from scheduler_core.backend.queue import SchedulingQueue
from scheduler_core.backend.snapshot import Snapshot
from scheduler_core.framework.node_info import NodeInfo
from scheduler_core.framework.nodes import NodeTable


class InvariantError(AssertionError):
    """Something is in two places, in none, or counted wrongly; the message tells the story."""


def validate(
    cache: Cache,
    queue: SchedulingQueue | None = None,
    snapshot: Snapshot | None = None,
    waiting: Iterable[Pod] = (),
) -> None:
    """Check everything; ``waiting`` are the pods that are parked at Permit.

    The snapshot is brought up to date first.

    Raises:
        InvariantError: with one line for each fault.
    """
    faults = [*_cache_faults(cache)]
    if queue is not None:
        faults += _queue_faults(queue)
        faults += _place_faults(cache, queue, list(waiting))
    if snapshot is not None:
        snapshot.update(cache)
        faults += _snapshot_faults(cache, snapshot)
    if faults:
        raise InvariantError("\n".join(faults))


def describe_node(info: NodeInfo) -> dict[str, object]:
    """Everything that is summed up in a NodeInfo, for comparison; image counts are left out."""
    return {
        "node": info.node,
        "pods": [pod.uid for pod in info.pods],
        "with affinity": sorted(pod.uid for pod in info.pods_with_affinity),
        "with anti-affinity": sorted(pod.uid for pod in info.pods_with_required_anti_affinity),
        "requested": dict(info.requested),
        "nonzero": (info.nonzero_cpu, info.nonzero_memory),
        "ports": dict(info.used_ports),
        "claims": dict(info.pvc_ref_counts),
    }


def describe_table(table: NodeTable) -> dict[str, object]:
    """The columns of a table as plain values, without resources that nobody has or asks for."""
    columns: dict[str, object] = {
        "names": list(table.names),
        "nonzero": table.nonzero_requested.tolist(),
        "pods": table.pod_count.tolist(),
        "allowed pods": table.allowed_pod_number.tolist(),
        "unschedulable": table.unschedulable.tolist(),
        "taints": [table.taint_column.values[c] for c in table.taint_column.codes],
        "with affinity": table.rows_with_affinity.tolist(),
        "with anti-affinity": table.rows_with_required_anti_affinity.tolist(),
        "claims": dict(table.used_pvcs),
    }
    for name, column in table.resource_columns.items():
        pair = (table.allocatable[:, column].tolist(), table.requested[:, column].tolist())
        if any(map(any, pair)):
            columns[f"resource {name}"] = pair
    return columns


def _cache_faults(cache: Cache) -> Iterable[str]:
    on_nodes: Counter[str] = Counter()
    for name, info in cache.node_infos():
        on_nodes.update(pod.uid for pod in info.pods)
        if info.node is None and not info.pods:
            yield f"cache: ghost node {name} has no pods"
        for pod in info.pods:
            if pod.node_name != name:
                yield f"cache: pod {pod.key} is on {pod.node_name} but counted on {name}"
        afresh = NodeInfo(info.node, tuple(info.pods))
        yield from _differences(f"cache: node {name}", describe_node(afresh), describe_node(info))
    known = Counter(pod.uid for pod in cache.pods())
    for uid in sorted(set(known) | set(on_nodes)):
        if known[uid] != 1 or on_nodes[uid] != 1:
            yield f"cache: pod {uid} is known {known[uid]} times, on nodes {on_nodes[uid]} times"
    names = cache.node_order()
    real = {name for name, info in cache.node_infos() if info.node is not None}
    if sorted(names) != sorted(real):
        yield f"cache: node order has {sorted(names)}, nodes are {sorted(real)}"


def _queue_faults(queue: SchedulingQueue) -> Iterable[str]:
    yield from _listing_faults(queue)
    for key, count in Counter(info.key for info in queue).items():
        if count != 1:
            yield f"queue: pod {key} is in {count} places"
    for info in queue:
        if queue.is_in_flight(info.pod.uid):
            yield f"queue: pod {info.key} is in {queue.place_of(info.key)} and in flight"
        if info.pod.is_assigned:
            yield f"queue: pod {info.key} waits although it is on {info.pod.node_name}"
    for uid, node in queue.nominator.nominated.items():
        if uid not in {pod.uid for pod in queue.nominator.nominated_pods_for_node(node)}:
            yield f"queue: pod {uid} is nominated to {node}, whose list lacks it"


def _listing_faults(queue: SchedulingQueue) -> Iterable[str]:
    depths = queue.depths()
    listing = queue.list_pods()
    for place in ("active", "backoff", "unschedulable", "gated"):
        count, lines = getattr(depths, place), getattr(listing, place)
        if count != len(lines):
            yield f"queue: {place} counts {count} pods and lists {len(lines)}"
        for line in lines:
            found = queue.place_of(line.pod.key)
            if found != place:
                yield f"queue: pod {line.pod.key} is listed as {place}, found in {found or 'none'}"


def _place_faults(cache: Cache, queue: SchedulingQueue, waiting: list[Pod]) -> Iterable[str]:
    for info in queue:
        known = cache.get_pod(info.pod)
        if known is not None:
            state = "assumed" if cache.is_assumed_pod(known) else "bound"
            yield f"pod {info.key} is queued and {state} on {known.node_name}"
    for pod in waiting:
        if not cache.is_assumed_pod(pod):
            yield f"pod {pod.key} waits at Permit but is not assumed"


def _snapshot_faults(cache: Cache, snapshot: Snapshot) -> Iterable[str]:
    scratch = Snapshot()
    scratch.update(cache)
    for mine, fresh in zip(snapshot.nodes, scratch.nodes, strict=False):
        title = f"snapshot: node {fresh.name}"
        yield from _differences(title, describe_node(fresh), describe_node(mine))
        if _image_sizes(mine) != _image_sizes(fresh):
            yield f"{title}: images {_image_sizes(mine)} should be {_image_sizes(fresh)}"
    expected, found = describe_table(scratch.nodes), describe_table(snapshot.nodes)
    yield from _differences("snapshot", expected, found)
    for row, name in enumerate(snapshot.nodes.names):
        if snapshot.nodes.index_of(name) != row:
            yield f"snapshot: node {name} is row {row}, found at {snapshot.nodes.index_of(name)}"
    if not np.array_equal(snapshot.nodes.pod_count, [len(info.pods) for info in snapshot.nodes]):
        yield "snapshot: pod counts differ from the pods listed"


def _image_sizes(info: NodeInfo) -> dict[str, int]:
    return {name: size for name, (size, _) in info.image_sizes.items()}


def _differences(
    title: str, expected: dict[str, object], found: dict[str, object]
) -> Iterable[str]:
    for key in sorted(expected.keys() | found.keys()):
        if expected.get(key) != found.get(key):
            yield f"{title}: {key} is {found.get(key)!r}, should be {expected.get(key)!r}"
