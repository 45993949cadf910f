"""What the next worker of a run finds out about bindings that a killed one has left behind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dashboard import unfinished
from dashboard.models import SchedulerRun, SchedulingCycle
from dashboard.recorder import Recorder
from scheduler_core.records import BindingRecord, Outcome
from tests.dashboard.factory import NOW, binding, cycle, pod, resolved, wait

pytestmark = pytest.mark.django_db(transaction=True)


def found(run: SchedulerRun, **nodes: str) -> dict[int, tuple[bool, str]]:
    """By cycle; ``nodes``: pod name -> its node in the cluster, "" for none."""
    pods: list[dict[str, Any]] = [
        {"metadata": {"uid": pod(name).uid}, "spec": {"nodeName": node} if node else {}}
        for name, node in nodes.items()
    ]
    records = unfinished.bindings(run.pk, unfinished.left_open(run.pk), pods, NOW)
    return {record.cycle: (record.bound, record.message) for record in records}


@pytest.fixture
def recorder(run: SchedulerRun, make_recorder: Callable[..., Recorder]) -> Recorder:
    return make_recorder(run)


def test_bindings_that_have_ended_are_left_alone(run: SchedulerRun, recorder: Recorder) -> None:
    recorder.cycle_finished(cycle(1, "a"))
    recorder.binding_finished(binding(1, "a"))
    recorder.cycle_finished(cycle(2, "b", outcome=Outcome.UNSCHEDULABLE, node=""))
    assert recorder.flush()
    assert found(run, a="node-2", b="") == {}


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        pytest.param({"a": "node-2"}, (True, unfinished.BOUND), id="bound"),
        pytest.param({"a": ""}, (False, unfinished.NOT_BOUND), id="not bound"),
        pytest.param({"a": "node-1"}, (False, unfinished.NOT_BOUND), id="bound elsewhere later"),
        pytest.param({}, (False, unfinished.GONE), id="gone"),
    ],
)
def test_the_cluster_is_asked(
    run: SchedulerRun, recorder: Recorder, nodes: dict[str, str], expected: tuple[bool, str]
) -> None:
    recorder.cycle_finished(cycle(1, "a"))
    assert recorder.flush()
    assert found(run, **nodes) == {1: expected}


@pytest.mark.parametrize(
    ("ended", "node", "expected"),
    [
        pytest.param(False, "", {}, id="it still waits"),
        pytest.param(False, "node-2", {1: (True, unfinished.BOUND)}, id="bound, nobody told"),
        pytest.param(True, "node-2", {1: (True, unfinished.BOUND)}, id="allowed and bound"),
        pytest.param(True, "", {1: (False, unfinished.NOT_BOUND)}, id="allowed, not bound"),
    ],
)
def test_pods_that_waited(
    run: SchedulerRun,
    recorder: Recorder,
    ended: bool,
    node: str,
    expected: dict[int, tuple[bool, str]],
) -> None:
    recorder.cycle_finished(cycle(1, "a", outcome=Outcome.WAITING))
    recorder.pod_waiting(wait(1, "a"))
    if ended:
        recorder.pod_resolved(resolved(1, "a"))
    assert recorder.flush()
    assert found(run, a=node) == expected


def test_the_record_is_one_like_any_other(run: SchedulerRun, recorder: Recorder) -> None:
    recorder.cycle_finished(cycle(1, "a"))
    assert recorder.flush()
    pods = [{"metadata": {"uid": pod("a").uid}, "spec": {"nodeName": "node-2"}}]
    for record in unfinished.bindings(run.pk, unfinished.left_open(run.pk), pods, NOW):
        assert isinstance(record, BindingRecord)
        recorder.binding_finished(record)
    assert recorder.flush()
    assert SchedulingCycle.objects.get(run=run).bound is True
    run.refresh_from_db()
    assert run.bound == 1
    assert not unfinished.left_open(run.pk).exists()
