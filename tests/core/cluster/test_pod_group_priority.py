"""The priority of a native PodGroup: from its PriorityClass, as for a pod."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_core.api import NATIVE_POD_GROUP
from scheduler_core.clock import VirtualClock
from scheduler_core.cluster.sandbox import SandboxCluster
from scheduler_core.ports import ApiError
from scheduler_core.testing.builders import make_native_pod_group

HIGH: dict[str, Any] = {"metadata": {"name": "high"}, "value": 1000}
USUAL: dict[str, Any] = {"metadata": {"name": "usual"}, "value": 7, "globalDefault": True}


def created(spec: dict[str, Any], *classes: dict[str, Any]) -> dict[str, Any]:
    """What the server makes of the group's priorityClassName and priority."""
    cluster = SandboxCluster(VirtualClock(1_000_000.0))
    for found in classes:
        cluster.create("PriorityClass", found)
    raw = make_native_pod_group("g", 2).raw()
    raw["spec"].update(spec)
    cluster.create(NATIVE_POD_GROUP, raw)
    stored = cluster.get(NATIVE_POD_GROUP, "default", "g")["spec"]
    return {name: stored[name] for name in ("priorityClassName", "priority") if name in stored}


@pytest.mark.parametrize(
    ("spec", "classes", "expected"),
    [
        pytest.param({}, (HIGH,), {}, id="it names no class"),
        pytest.param(
            {"priorityClassName": "high"},
            (HIGH,),
            {"priorityClassName": "high", "priority": 1000},
            id="the value of its class",
        ),
        pytest.param(
            {"priorityClassName": "high", "priority": 1000},
            (HIGH,),
            {"priorityClassName": "high", "priority": 1000},
            id="the same value given",
        ),
        pytest.param(
            {}, (USUAL,), {"priorityClassName": "usual", "priority": 7}, id="the default class"
        ),
        pytest.param(
            {"priorityClassName": "high"},
            (HIGH, USUAL),
            {"priorityClassName": "high", "priority": 1000},
            id="its own before the default class",
        ),
    ],
)
def test_priority_is_filled_in(
    spec: dict[str, Any], classes: tuple[dict[str, Any], ...], expected: dict[str, Any]
) -> None:
    assert created(spec, *classes) == expected


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        pytest.param(
            {"priorityClassName": "none"},
            "no PriorityClass with name none was found",
            id="an unknown class",
        ),
        pytest.param(
            {"priorityClassName": "high", "priority": 5},
            "the integer value of priority (5) must not be provided in pod group spec; priority "
            "admission controller computed 1000 from the given PriorityClass name",
            id="another value given",
        ),
    ],
)
def test_what_is_refused(spec: dict[str, Any], message: str) -> None:
    with pytest.raises(ApiError) as refused:
        created(spec, HIGH)
    assert refused.value.code == 403
    assert message in str(refused.value)
