"""What a cycle costs, in calls and bytes: those are the same on every machine.

A further pod like the ones before it must not cost more on more nodes (numpy's work over columns
does, and is not counted here): nobody walks over the nodes in Python.
"""

from __future__ import annotations

import cProfile
import gc
import pstats
import tracemalloc
from contextlib import contextmanager

import pytest

from scheduler_core.benchmark.core import CoreBenchmark
from scheduler_core.benchmark.workload_file import load_builtin

REFERENCE = (
    "basic", "anti-affinity", "affinity", "spread", "preferred-anti-affinity", "unschedulable"
)  # fmt: skip
FEW, MANY = 200, 2000
#: Python and C calls of one further cycle. Generous: what counts is that it is no multiple.
MOST_CALLS = 2000


def run(name, nodes, pods, measuring, **options):
    benchmark = CoreBenchmark(
        load_builtin(name), nodes=nodes, pods=pods, measuring=lambda: measuring, **options
    )
    benchmark.run()
    return benchmark


def calls(name, nodes, pods, **options):
    profile = cProfile.Profile()
    run(name, nodes, pods, profile, **options)
    return pstats.Stats(profile).total_calls


def calls_of_a_further_cycle(name, nodes, **options):
    calls(name, 5, 5, **options)  # what is made once in a process is made now
    few, many = (calls(name, nodes, pods, **options) for pods in (40, 100))
    return (many - few) / 60


@pytest.mark.parametrize("name", REFERENCE)
def test_a_further_pod_costs_as_many_calls_on_ten_times_the_nodes(name):
    few, many = (calls_of_a_further_cycle(name, nodes) for nodes in (FEW, MANY))

    assert many < 1.1 * few
    assert many < MOST_CALLS


@pytest.mark.parametrize("name", ["basic", "spread", "unschedulable"])
def test_nor_does_a_full_pass_walk_over_the_nodes(name):
    few, many = (calls_of_a_further_cycle(name, nodes, plain=True) for nodes in (FEW, MANY))

    assert many < 1.1 * few


@contextmanager
def traced(sizes):
    """Appends the bytes that are there more at the end, and the most that there were at a time."""
    gc.collect()
    tracemalloc.start()
    try:
        yield
        gc.collect()
        sizes += tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()


def test_memory_of_the_cycles_is_a_few_columns_of_the_nodes():
    """Whatever the number of pods: records are let go of, and nothing is kept for each node of
    each cycle."""
    found = {}
    for pods in (120, 220):
        run("basic", MANY, pods, traced(sizes := []))
        found[pods] = sizes
    (kept, peak), (kept_later, peak_later) = found.values()

    # Some columns of 8 bytes for each plugin, kept and on their way; the assumed pod.
    assert peak < 5_000 * MANY
    assert kept_later - kept < 5_000 * 100
    assert peak_later - peak < 5_000 * 100


def test_full_passes_are_made_once_for_pods_that_are_alike():
    """The first pod's work serves the others; so the time of a run cannot hide a broken reuse."""
    benchmark = run("basic", MANY, 50, traced([]))
    (framework,) = benchmark.scheduler.profiles.values()

    assert framework.equivalence.built <= 2
    assert framework.equivalence.patched >= 48
