"""A scheduler to which everything has happened that is counted."""

from __future__ import annotations

from typing import Any

from scheduler_core.api import NATIVE_POD_GROUP
from scheduler_core.framework.interface import EnqueueExtensions, ReservePlugin
from scheduler_core.framework.status import error, wait
from scheduler_core.metrics import SchedulerMetrics
from scheduler_core.records import PermitDecision, Verdict
from scheduler_core.testing.builders import (
    make_native_pod_group,
    make_node,
    make_pod,
    make_priority_class,
)
from scheduler_core.testing.harness import Harness
from tests.core.scheduler.fakes import make_spy


def _profile(*names: str) -> dict[str, Any]:
    return {"plugins": {"multiPoint": {"enabled": [{"name": name} for name in names]}}}


def busy_metrics() -> SchedulerMetrics:
    """Bound, waiting, rejected, preempting, gated and erring pods, and a native gang."""
    metrics = SchedulerMetrics(sample=lambda: 0.0)
    _waiting(metrics)
    _gang(metrics)
    _volume_error(metrics)
    _ordinary(metrics)  # the last one's gauges are those that stay
    return metrics


def _ordinary(metrics: SchedulerMetrics) -> None:
    classes = {"PriorityClass": [make_priority_class("high", 10)]}
    h = Harness(nodes=[make_node("n").capacity(cpu="2")], objects=classes, metrics=metrics)
    h.create("Pod", make_pod("low").req(cpu=2), make_pod("gated").gate("later"))
    h.settle()
    high = make_pod("high").req(cpu=2).raw()
    high["spec"]["priorityClassName"] = "high"
    h.create("Pod", high, make_pod("big").req(cpu=9))
    h.settle()
    h.create("Node", make_node("small").capacity(cpu="1"))
    h.settle()
    metrics._next_look = 0.0
    h.scheduler.run_once()


def _waiting(metrics: SchedulerMetrics) -> None:
    spy = make_spy("A", [], {"permit": (wait(), 60.0)})
    quiet = type("Quiet", (EnqueueExtensions, spy), {"events_to_register": lambda self: ()})
    h = Harness(
        nodes=[make_node("n")],
        pods=[make_pod("p")],
        profile=_profile("A"),
        plugins=[quiet],
        metrics=metrics,
    )
    h.settle()
    h.decide(PermitDecision(1, "nobody", Verdict.APPROVE, "ann"))
    h.advance(61)


def _gang(metrics: SchedulerMetrics) -> None:
    h = Harness(
        nodes=[make_node("n").capacity(cpu="9")],
        objects={NATIVE_POD_GROUP: [make_native_pod_group("g", 1)]},
        pods=[make_pod("member").scheduling_group("g").req(cpu=1)],
        profile=_profile("GangScheduling"),
        metrics=metrics,
    )
    h.settle()


def _volume_error(metrics: SchedulerMetrics) -> None:
    """Somebody else in VolumeBinding's place."""
    broken = make_spy("VolumeBinding", [], {"reserve": error("no API")}, (ReservePlugin,))
    plugins = {"multiPoint": {"disabled": [{"name": "VolumeBinding"}]}}
    h = Harness(
        nodes=[make_node("n")],
        pods=[make_pod("p")],
        profile={"plugins": plugins},
        metrics=metrics,
    )
    # The registry has one VolumeBinding already: the profile gets ours by hand.
    framework = h.scheduler.profiles["default-scheduler"]
    framework.reserve_plugins = (*framework.reserve_plugins, broken({}, framework))
    h.settle()
