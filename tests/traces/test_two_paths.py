"""The first 300 pods of each trace by both paths: with reuse, and a full pass in every cycle."""

from __future__ import annotations

from itertools import islice
from typing import Any

import pytest

from scheduler_core.config import default_configuration
from scheduler_core.plugins.registry import in_tree_registry
from scheduler_core.ports import Observer
from scheduler_core.records import CycleRecord
from scheduler_core.replay import replay_of_trace
from scheduler_core.workloads.trace import Trace, load_trace
from tests.core.scheduler.test_reuse import told

PODS = 300


class Teller(Observer):
    """Everything that each cycle says, but how long it took."""

    def __init__(self) -> None:
        self.cycles: list[dict[str, Any]] = []

    def cycle_finished(self, record: CycleRecord) -> None:
        self.cycles.append(told(record))


def cycles(trace: Trace, *, reuse: bool) -> list[dict[str, Any]]:
    teller = Teller()
    config = default_configuration(in_tree_registry())
    replay_of_trace(trace, config, reuse=reuse, observers=[teller]).run()
    return teller.cycles


def first_pods(trace: Trace) -> Trace:
    """The trace of its first pods alone, in the order in which they arrive."""
    arrivals = sorted(trace.pods, key=lambda pod: pod.created)
    return Trace(trace.nodes, tuple(islice(arrivals, PODS)))


@pytest.mark.traces
@pytest.mark.slow
@pytest.mark.parametrize("name", ["default", "cpu250", "gpuspec33"])
def test_both_paths_say_the_same(trace_folder: Any, name: str) -> None:
    nodes, pods = trace_folder / "openb_nodes.csv", trace_folder / f"openb_pods_{name}.csv"
    trace = first_pods(load_trace(nodes, pods))
    fast, plain = cycles(trace, reuse=True), cycles(trace, reuse=False)
    assert len(fast) == len(plain) == PODS
    for ours, judge in zip(fast, plain, strict=True):
        assert ours == judge
