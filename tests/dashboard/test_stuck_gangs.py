"""A gang that cannot complete, as people see it: what it holds while it waits, and why it ended."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from dashboard.models import SchedulerRun
from scheduler_core.records import NodeUse, PendingPlugin
from tests.dashboard.factory import NOW, resolved, wait
from tests.dashboard.told_waits import told

pytestmark = pytest.mark.django_db(transaction=True)
WAITS = "waits for its gang default/half: 2 of 3 members have a node"
RELEASED = (
    "gangs default/half and default/other each hold what the other needs; default/half was "
    "released, the youngest, so that default/other can go on"
)
HALF: dict[str, Any] = {"pod_group": "default/half", "group_min_member": 3, "gang_uid": "pg-half"}


@pytest.fixture
def half(run: SchedulerRun) -> SchedulerRun:
    """Two of three members hold a node; the third has found none."""
    until = NOW * 10
    pending = (PendingPlugin("Coscheduling", until, WAITS),)
    use = {"cpu": NodeUse(4000, 1000, 1500)}
    told(
        run,
        *[
            wait(n, f"half-{n}", pending=pending, needs_approval=False, node_use=use, **HALF)
            for n in (1, 2)
        ],
    )
    return run


def test_what_it_holds_is_visible(half: SchedulerRun, as_viewer: Client) -> None:
    (found,) = as_viewer.get(f"/api/runs/{half.pk}/waiting/gangs").json()["gangs"]
    assert (found["pod_group"], found["members"], found["min_member"]) == ("default/half", 2, 3)
    assert (found["waits_for"], found["since"], found["deadline"]) == (
        ["Coscheduling"],
        NOW,
        NOW * 10,
    )
    (node,) = found["nodes"]
    assert (node["node"], node["pods"], node["requests"]) == ("node-2", 2, {"cpu": 1000})


def test_each_member_says_what_it_waits_for(half: SchedulerRun, as_viewer: Client) -> None:
    pods = as_viewer.get(f"/api/runs/{half.pk}/waiting").json()["pods"]
    assert {item["reason"] for pod in pods for item in pod["pending"]} == {WAITS}


@pytest.mark.parametrize(
    ("outcome", "message", "by"),
    [
        pytest.param(
            "timed_out",
            "rejected due to timeout after waiting 1m0s at plugin Coscheduling",
            "Coscheduling",
            id="released at its deadline",
        ),
        pytest.param("rejected", RELEASED, "gang deadlock", id="released for another gang"),
    ],
)
def test_why_it_ended_is_on_its_rows(
    half: SchedulerRun, as_viewer: Client, outcome: str, message: str, by: str
) -> None:
    ends = {**HALF, "message": message, "resolved_by": by, "needs_approval": False}
    told(half, *[resolved(n, f"half-{n}", outcome, **ends) for n in (1, 2)])
    pods = as_viewer.get(f"/api/runs/{half.pk}/waiting").json()["pods"]
    assert {(pod["state"], pod["message"], pod["resolved_by"]) for pod in pods} == {
        (outcome, message, by)
    }
    assert as_viewer.get(f"/api/runs/{half.pk}/waiting/gangs").json()["gangs"] == []
