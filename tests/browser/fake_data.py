"""Frames and rows of an imagined run (docs/design/002), for tests of pages alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from dashboard import heatmap
from scheduler_core.records import ScoreMatrix

NOW = 1_790_000_000.0
PLUGINS = (
    "TaintToleration",
    "NodeAffinity",
    "NodeResourcesFit",
    "NodeResourcesBalancedAllocation",
    "ImageLocality",
)
WEIGHTS = (3, 2, 1, 1, 1)
REASONS = (
    ("NodeResourcesFit", "Insufficient cpu", "Unschedulable"),
    ("NodeResourcesFit", "Insufficient memory, Insufficient nvidia.com/gpu", "Unschedulable"),
    ("TaintToleration", "node(s) had untolerated taint(s)", "UnschedulableAndUnresolvable"),
    (
        "NodeAffinity",
        "node(s) didn't match Pod's node affinity/selector",
        "UnschedulableAndUnresolvable",
    ),
    ("NodeUnschedulable", "node(s) were unschedulable", "UnschedulableAndUnresolvable"),
)


def matrix(nodes: int, seed: int = 7, *, rejected_share: float = 0.3) -> ScoreMatrix:
    """A cycle over ``nodes`` nodes with plausible scores and rejections."""
    random = np.random.default_rng(seed)
    # Usage belongs to the node, not to the cycle: only a few nodes differ from seed to seed.
    base = np.random.default_rng(1).beta(2.0, 2.4, nodes)
    used = np.clip(base + random.normal(0, 0.02, nodes), 0, 1)
    rejection = np.full(nodes, -1, dtype=np.int32)
    for i in np.flatnonzero(random.random(nodes) < rejected_share):
        rejection[i] = int(random.choice([0, 0, 0, 1, 2, 2, 3, 4]))
    if nodes > 2:
        rejection[int(np.argmin(used))] = -1
    normalized = np.stack(
        [
            np.where(np.random.default_rng(2).random(nodes) < 0.85, 100, 40),
            np.where(np.random.default_rng(3).random(nodes) < 0.2, 100, 0),
            np.rint(100 * (1 - used)),
            np.rint(100 - 60 * np.abs(used - 0.4)),
            np.rint(100 * np.random.default_rng(4).beta(0.3, 3, nodes)),
        ]
    ).astype(np.int8)
    normalized[:, rejection != -1] = -1
    weights = np.array(WEIGHTS, dtype=np.int64)
    total = (normalized.astype(np.int64) * weights[:, None]).sum(axis=0)
    total[rejection != -1] = -1
    return ScoreMatrix(
        node_names=node_names(nodes),
        plugins=PLUGINS,
        weights=weights,
        raw=np.where(normalized >= 0, normalized.astype(np.int64) * 7 + 3, 0),
        normalized=normalized,
        total=total,
        rejection=rejection,
        reasons=REASONS,
        scored=True,
    )


def node_names(nodes: int) -> tuple[str, ...]:
    if nodes <= 12:
        return tuple(f"node-{i}" for i in range(nodes))
    return tuple(f"openb-node-{i:04d}" for i in range(nodes))


def heatmap_of(source: ScoreMatrix, *, seq: int, sequence: int) -> heatmap.Heatmap:
    best = int(np.argmax(source.total))
    node = source.node_names[best] if source.total[best] >= 0 else ""
    return heatmap.from_matrix(
        source,
        seq=seq,
        run=1,
        sequence=sequence,
        pod=f"default/openb-pod-{sequence:04d}",
        outcome="scheduled" if node else "unschedulable",
        node=node,
        names_hash=f"h{len(source.node_names)}",
    )


def raw_bytes(source: ScoreMatrix) -> bytes:
    plugins, nodes = source.raw.shape
    return np.array([plugins, nodes], "<u4").tobytes() + source.raw.astype("<i4").tobytes()


def cycle_row(sequence: int, **changes: Any) -> dict[str, Any]:
    kinds = ["scheduled"] * 6 + ["unschedulable", "waiting", "scheduled", "error"]
    outcome = kinds[sequence % len(kinds)]
    placed = outcome in ("scheduled", "waiting")
    name = f"openb-pod-{sequence:04d}"
    row = {
        "sequence": sequence,
        "commit_seq": sequence,
        "pod": f"default/{name}",
        "namespace": "default",
        "name": name,
        "uid": f"uid-{sequence}",
        "pod_group": "",
        "attempt": 1 + sequence % 3 // 2,
        "profile": "default-scheduler",
        "priority": 0,
        "outcome": outcome,
        "node": f"openb-node-{sequence * 37 % 1523:04d}" if placed else "",
        "score": 612 - sequence % 90 if placed else None,
        "ties": 1 + sequence % 4,
        "nodes_total": 1523,
        "nodes_feasible": 812 - sequence % 50 if placed else 0,
        "duration_ms": 1.2 + (sequence % 17) / 9,
        "started_at": NOW - 900 + sequence,
        "message": ""
        if placed
        else "0/1523 nodes are available: 1200 Insufficient cpu, 323 node(s) had untolerated"
        " taint(s).",
        "plugin": "" if outcome != "error" else "NodeAffinity",
        "bound": True if outcome == "scheduled" else None,
        "has_matrix": True,
    }
    return {**row, **changes}


def cycles_frame(count: int, seq: int | None = None, first: int = 1) -> dict[str, Any]:
    rows = [cycle_row(i) for i in range(first, first + count)]
    last = seq if seq is not None else first + count - 1
    return {"type": "cycles", "run": 1, "from": 0, "seq": last, "cycles": rows, "skipped": 0}


def overview_frame(nodes: int, seq: int = 100) -> dict[str, Any]:
    random = np.random.default_rng(5)
    seconds = [int(NOW) - 300 + i for i in range(300)] if nodes else []
    wave = [max(0, round(60 + 40 * np.sin(i / 25) + random.normal(0, 8))) for i in range(300)]
    histogram = [
        int(v) for v in random.multinomial(nodes, [0.08] * 5 + [0.14, 0.16, 0.14, 0.1, 0.06])
    ]
    return {
        "type": "overview",
        "run": 1,
        "from": 0,
        "seq": seq,
        "state": "running",
        "throughput": [
            [t, w, int(random.poisson(6)), int(random.random() < 0.02)]
            for t, w in zip(seconds, wave, strict=False)
        ],
        "depths": [
            [t, max(0, 900 - 3 * i), 40 + i % 30, 120 + i // 4, 12, 3, 24 if i > 100 else 0]
            for i, t in enumerate(seconds)
        ],
        "totals": {
            "scheduled": 18_204,
            "unschedulable": 1_311,
            "error": 3,
            "waiting": 24,
            "skipped": 2,
            "bound": 18_120,
            "bind_failed": 0,
        }
        if nodes
        else dict.fromkeys(
            ["scheduled", "unschedulable", "error", "waiting", "skipped", "bound", "bind_failed"], 0
        ),
        "usage": {
            "at": NOW,
            "resources": ["cpu", "memory", "nvidia.com/gpu"],
            "nodes": nodes,
            "allocatable": [nodes * 96_000, nodes * 512 * 2**30, nodes * 4],
            "requested": [nodes * 61_000, nodes * 201 * 2**30, nodes * 3],
            "histogram": {"cpu": histogram, "memory": histogram[::-1], "nvidia.com/gpu": histogram},
            "worst": [
                {
                    "node": f"openb-node-{i * 83:04d}",
                    "fractions": [1 - i * 0.011, 0.83 - i * 0.03, 1.0],
                    "pods": 31 - i,
                    "allowed_pods": 110,
                }
                for i in range(min(12, nodes))
            ],
        },
        "recorder": {"queued": 14, "matrices_dropped": 0, "back_pressure_seconds": 0.0},
    }


def queue_row(queue: str, position: int) -> dict[str, Any]:
    reasons = {
        "active": ("", ""),
        "backoff": ("NodeResourcesFit", "Insufficient cpu"),
        "unschedulable": ("TaintToleration", "node(s) had untolerated taint(s)"),
        "gated": ("SchedulingGates", "waiting for scheduling gates: example.com/quota"),
    }
    plugin, reason = reasons[queue]
    return {
        "pod": f"default/{queue}-pod-{position:05d}",
        "uid": f"{queue}-{position}",
        "position": position,
        "priority": 1000 if position < 3 else 0,
        "attempts": 0 if queue in ("active", "gated") else 1 + position % 6,
        "added_at": NOW - 30 - position,
        "backoff_until": NOW + position % 10 + 0.7 if queue == "backoff" else None,
        "plugin": plugin,
        "reason": reason,
        "pod_group": "team-a/train-7" if position % 9 == 4 else "",
    }


def queues_frame(depths: dict[str, int], seq: int = 100) -> dict[str, Any]:
    lists = {
        queue: [queue_row(queue, i + 1) for i in range(min(100, depths[queue]))] for queue in depths
    }
    full = {"active": 0, "backoff": 0, "unschedulable": 0, "gated": 0, **depths}
    return {
        "type": "queues",
        "run": 1,
        "seq": seq,
        "at": NOW,
        "depths": {**full, "in_flight": 1, "waiting": 0},
        **{queue: lists.get(queue, []) for queue in full},
    }


def waiting_row(number: int, **changes: Any) -> dict[str, Any]:
    row = {
        "id": number,
        "uid": f"wait-{number}",
        "pod": f"team-a/worker-{number}",
        "namespace": "team-a",
        "name": f"worker-{number}",
        "node": f"openb-node-{number * 31 % 1523:04d}",
        "pod_group": "",
        "group_min_member": 0,
        "gang_uid": "",
        "profile": "default-scheduler",
        "priority": 0,
        "since": NOW - 60,
        "deadline": NOW + 840,
        "pending": [
            {"plugin": "ManualApproval", "deadline": NOW + 840, "reason": "waits for a person"}
        ],
        "needs_approval": True,
        "requested_by": "ada",
        "requests": {"cpu": 8000, "memory": 32 * 2**30, "nvidia.com/gpu": 1},
        "node_use": {
            "cpu": [96_000, 16_000, 24_000],
            "memory": [768 * 2**30, 64 * 2**30, 96 * 2**30],
            "nvidia.com/gpu": [8, 2, 3],
        },
        "terms": {
            "policy": "", "reason": "the pod asks for it", "approvers": 1,
            "requester_may_approve": True, "groups": [], "at_deadline": "deny",
        },
        "approvals": [],
        "approvers_needed": 1,
        "state": "waiting",
        "message": "",
        "resolved_by": "",
        "resolved_at": None,
        "decision": None,
        "cycle": 400 + number,
        "commit_seq": number,
    }  # fmt: skip
    return {**row, **changes}


def wait_detail(row: dict[str, Any], rows: list[dict[str, Any]]) -> dict[str, Any]:
    """What GET waiting/ID says of ``row``, one of ``rows``; its gang are those of the same name."""
    members = [other for other in rows if row["pod_group"] and _same_gang(row, other)] or [row]
    nodes = [
        {"node": m["node"], "pods": 1, "since": m["since"], "at": m["since"],
         "requests": m["requests"], "use": m["node_use"]} for m in members
    ]  # fmt: skip
    standing = [a for a in row["approvals"] if a["gang"]]
    told = {
        "pod_group": row["pod_group"],
        "uid": row["gang_uid"],
        "min_member": row["group_min_member"],
        "members": len(members),
        "approved": sum(m["state"] == "sent" for m in members),
        "approvers_needed": row["approvers_needed"],
        "standing": [{key: a[key] for key in ("user", "at", "comment")} for a in standing],
        "priority": row["priority"],
        "since": row["since"],
        "deadline": row["deadline"],
        "requested_by": sorted({m["requested_by"] for m in members}),
        "waits_for": [pending["plugin"] for pending in row["pending"]],
        "requests": {name: len(members) * value for name, value in row["requests"].items()},
        "nodes": nodes,
    }
    nobody = {"waiting_total": 0, "waiting": [], "queued_total": 0, "queued": []}
    return {
        **row, "run": 1, "seq": 100, "now": NOW, "seconds_left": row["deadline"] - NOW,
        "may": {"approve": True, "deny": True, "revoke": False, "why": ""}, "said": [],
        "gang": told if row["pod_group"] else None, "nodes": nodes, "rivals": nobody,
    }  # fmt: skip


def _same_gang(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return bool(one["pod_group"] == other["pod_group"])


def gang(name: str, first: int, members: int, minimum: int, **changes: Any) -> list[dict[str, Any]]:
    """Rows of a gang of which ``members`` wait and ``minimum`` are needed."""
    quorum = {"plugin": "Coscheduling", "deadline": NOW + 42, "reason": "waits for its gang"}
    approval = {"plugin": "ManualApproval", "deadline": NOW + 840, "reason": "waits for a person"}
    pending = [approval] if members >= minimum else [quorum, approval]
    short = name.split("/")[1]
    return [
        waiting_row(
            first + i,
            pod=f"{name.split('/')[0]}/{short}-{i}",
            name=f"{short}-{i}",
            pod_group=name,
            group_min_member=minimum,
            pending=pending,
            deadline=pending[0]["deadline"],
            **changes,
        )
        for i in range(members)
    ]


def waiting_frame(rows: list[dict[str, Any]], seq: int = 100, start: int = 0) -> dict[str, Any]:
    return {"type": "waiting", "run": 1, "from": start, "seq": seq, "now": NOW, "pods": rows}


def ended_rows(first: int) -> list[dict[str, Any]]:
    person = {"verdict": "deny", "user": "grace", "at": NOW - 5, "comment": "not on a Friday"}
    yes = {"verdict": "approve", "user": "grace", "at": NOW - 9, "comment": ""}
    return [
        waiting_row(
            first, state="rejected", message="denied by grace: not on a Friday", pending=[],
            resolved_by="user:grace", resolved_at=NOW - 4, decision=person,
        ),
        waiting_row(
            first + 1, state="allowed", pending=[], resolved_by="user:grace",
            resolved_at=NOW - 8, decision=yes,
        ),
        waiting_row(
            first + 2, state="timed_out", pending=[], resolved_by="Coscheduling",
            resolved_at=NOW - 70, message="the gang did not gather in time",
        ),
    ]  # fmt: skip


def decision_detail(sequence: int, **changes: Any) -> dict[str, Any]:
    """The answer of ``GET cycles/SEQ``."""
    source = matrix(1523, seed=sequence)
    order = np.argsort(-source.total)[:20]
    points = {
        "PreFilter": 61e-6, "Filter": 842e-6, "PreScore": 48e-6, "Score": 512e-6,
        "Reserve": 14e-6, "Permit": 9e-6,
    }  # fmt: skip
    counts = np.bincount(source.rejection[source.rejection >= 0], minlength=len(REASONS))
    node = source.node_names[int(order[0])]
    score = int(source.total[order[0]])
    feasible = int((source.rejection == -1).sum())
    return {
        **cycle_row(sequence, node=node, score=score, nodes_feasible=feasible),
        "point_seconds": points,
        "plugin_seconds": [
            ["Filter", "NodeResourcesFit", 402e-6], ["Filter", "TaintToleration", 221e-6],
            ["Filter", "NodeAffinity", 119e-6], ["Score", "NodeResourcesFit", 203e-6],
            ["Score", "NodeResourcesBalancedAllocation", 188e-6], ["Score", "ImageLocality", 54e-6],
            ["PreFilter", "NodeResourcesFit", 22e-6], ["Reserve", "Coscheduling", 8e-6],
        ],
        "rejections": [
            {"plugin": p, "reason": r, "nodes": int(n), "resolvable": code == "Unschedulable"}
            for (p, r, code), n in zip(REASONS, counts, strict=True)
        ],
        "best": [
            {
                "node": source.node_names[i],
                "total": int(source.total[i]),
                "plugins": {
                    name: [
                        int(source.raw[p, i]),
                        int(source.normalized[p, i]),
                        int(source.normalized[p, i]) * WEIGHTS[p],
                    ]
                    for p, name in enumerate(PLUGINS)
                },
            }
            for i in order
        ],
        "unschedulable_plugins": [],
        "nominated_node": "",
        "victims": [],
        "binding": {
            "bound": True, "finished_at": NOW, "duration_ms": 3.4, "message": "", "plugin": "",
            "point_seconds": {"PreBind": 0.2e-3, "Bind": 3.1e-3, "PostBind": 0.02e-3},
        },
        "attempts": [
            cycle_row(sequence - 40, attempt=1, outcome="unschedulable", node="", score=None,
                      message="0/1523 nodes are available: 1523 Insufficient cpu."),
            cycle_row(sequence, attempt=2),
        ],
        "matrix": "kept",
        **changes,
    }  # fmt: skip


def run_frame(**changes: Any) -> dict[str, Any]:
    frame = {
        "type": "run", "run": 1, "seq": 1, "state": "running", "desired_state": "running",
        "message": "", "lease": {"fresh": True, "holder": "worker-1"},
        "config_version": 3, "applied_config_version": 3, "config_error": "",
    }  # fmt: skip
    return {**frame, **changes}
