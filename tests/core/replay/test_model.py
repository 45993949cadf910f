"""Random small traces against a model of the default profile that shares no code with it."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler_core.config import default_configuration
from scheduler_core.plugins.registry import in_tree_registry
from scheduler_core.replay import replay_of_trace
from scheduler_core.workloads.trace import Trace, TraceNode, TracePod

MIB = 1024 * 1024


class Machine:
    """One node of the model: plain Python integers and floats, formulas as kube-scheduler 1.36
    has them for pods with one container that asks for cpu and memory."""

    def __init__(self, node):
        self.name = node.name
        self.size = (node.cpu_milli, node.memory_mib * MIB)
        self.gpu_size = node.gpus * 1000
        self.model = node.model
        self.pods = {}

    def used(self):
        cpu = sum(p.cpu_milli for p in self.pods.values())
        return cpu, sum(p.memory_mib * MIB for p in self.pods.values())

    def reasons(self, pod):
        if pod.models and self.model not in pod.models:
            return ["node(s) didn't match Pod's node affinity/selector"]
        cpu, memory = self.used()
        gpu = sum(p.gpus * p.gpu_milli for p in self.pods.values())
        wanted = (
            ("cpu", pod.cpu_milli, self.size[0] - cpu),
            ("memory", pod.memory_mib * MIB, self.size[1] - memory),
            ("alibabacloud.com/gpu-milli", pod.gpus * pod.gpu_milli, self.gpu_size - gpu),
        )
        return [f"Insufficient {name}" for name, ask, room in wanted if ask > room and ask > 0]

    def may_be_cleared(self, pod):
        """Whether an empty node would do, so that preemption looks at it (in vain: all pods of a
        trace have the same priority)."""
        if pod.models and self.model not in pod.models:
            return False
        asked = (pod.cpu_milli, pod.memory_mib * MIB, pod.gpus * pod.gpu_milli)
        return all(a <= size for a, size in zip(asked, (*self.size, self.gpu_size), strict=True))

    def score(self, pod):
        own = (pod.cpu_milli, pod.memory_mib * MIB)
        after = [u + o for u, o in zip(self.used(), own, strict=True)]
        least = [
            (size - amount) * 100 // size if amount <= size else 0
            for amount, size in zip(after, self.size, strict=True)
        ]
        balance = 0
        if any(own):
            with_pod, without = self.balance(after), self.balance(self.used())
            balance = 50 + (50 + with_pod - without) // 2
        return 3 * 100 + sum(least) // 2 + balance

    def balance(self, used):
        cpu, memory = (min(1.0, u / size) for u, size in zip(used, self.size, strict=True))
        return int((1 - abs(cpu - memory) / 2) * 100)


def model(trace):
    """pod -> (node, feasible, score, ties, message), in scheduling order."""
    machines = [Machine(node) for node in trace.nodes]
    events = []
    for number, pod in enumerate(trace.pods):
        events.append((pod.created, 1, number, pod))
        if pod.deleted is not None and pod.deleted > pod.created:
            events.append((pod.deleted, 0, number, pod))
    rows = []
    for _, adds, _, pod in sorted(events, key=lambda event: event[:3]):
        if adds:
            rows.append((f"default/{pod.name}", *place(pod, machines)))
        else:
            for machine in machines:
                machine.pods.pop(pod.name, None)
    return rows


def place(pod, machines):
    reasons = {m.name: m.reasons(pod) for m in machines}
    feasible = [m for m in machines if not reasons[m.name]]
    if not feasible:
        every = [reason for found in reasons.values() for reason in found]
        parts = sorted(f"{every.count(reason)} {reason}" for reason in set(every))
        none = f"0/{len(machines)} nodes are available:"
        tried = f"no new claims to deallocate, preemption: {none} {in_vain(pod, machines)}."
        message = f"{none} {', '.join(parts)}. {tried}"
        return "", 0, None, 0, message
    scores = {m.name: m.score(pod) for m in feasible}
    best = max(scores.values())
    tied = [m for m in feasible if scores[m.name] == best]
    chosen = min(tied, key=lambda m: m.name)
    chosen.pods[pod.name] = pod
    return chosen.name, len(feasible), best, len(tied), ""


def in_vain(pod, machines):
    looked_at = sum(m.may_be_cleared(pod) for m in machines)
    counts = {
        "No preemption victims found for incoming pod": looked_at,
        "Preemption is not helpful for scheduling": len(machines) - looked_at,
    }
    return ", ".join(sorted(f"{n} {reason}" for reason, n in counts.items() if n))


@st.composite
def traces(draw):
    nodes = tuple(
        TraceNode(f"n{i}", draw(st.integers(1, 8)) * 1000, draw(st.integers(1, 8)) * 1024, gpus,
                  draw(st.sampled_from(["T4", "G2"])) if gpus else "")
        for i in range(draw(st.integers(1, 5)))
        for gpus in (draw(st.integers(0, 2)),)
    )  # fmt: skip
    return Trace(nodes, tuple(_pod(draw, i) for i in range(draw(st.integers(1, 12)))))


def _pod(draw, number):
    created = draw(st.integers(0, 6))
    deleted = draw(st.none() | st.integers(created, 9))
    gpus = draw(st.sampled_from([0, 0, 1, 2]))
    milli = draw(st.sampled_from([250, 500, 1000])) if gpus == 1 else 1000 * bool(gpus)
    models = draw(st.sampled_from([(), ("T4",), ("T4", "G2"), ("A10",)])) if gpus else ()
    # At least a little of both: kube-scheduler takes 100m and 200Mi where nothing is asked for.
    cpu, memory = draw(st.integers(1, 60)) * 100, draw(st.integers(1, 60)) * 100
    return TracePod(f"p{number}", cpu, memory, gpus, milli, models, created, deleted)


@settings(max_examples=60)
@given(traces())
def test_the_scheduler_decides_as_the_model_does(trace):
    result = replay_of_trace(trace, default_configuration(in_tree_registry())).run()
    found = [
        (p.pod, p.node, p.feasible_nodes, p.score, p.best_nodes, p.message)
        for p in result.placements
    ]
    assert found == model(trace)
