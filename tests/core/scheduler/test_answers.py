"""Plugins that answer nothing where a Status is due: a forgotten ``return`` must not stop anybody.

In Go a nil status is Success; here it is a mistake, and one that plugin authors will make.
"""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_core.framework.interface import (
    BindPlugin,
    EnqueueExtensions,
    FilterPlugin,
    PermitPlugin,
    Plugin,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreScorePlugin,
    ReservePlugin,
)
from scheduler_core.framework.runtime.framework import ProfileError
from scheduler_core.framework.status import SUCCESS, wait
from scheduler_core.testing.builders import make_node, make_pod
from scheduler_core.testing.harness import Harness

NOTHING = "returned NoneType in place of a Status"


def _answer(value: Any) -> Any:
    return lambda self, *args: value


def plugin(*bases: type[Plugin], **answers: Any) -> type[Plugin]:
    """A plugin "Mute" whose methods answer what is given."""
    methods = {name: _answer(value) for name, value in answers.items()}
    made: type[Plugin] = type(
        "Mute", bases, {"name": "Mute", "__init__": lambda self, args, handle: None, **methods}
    )
    return made


def scheduler_with(mute: type[Plugin], point: str) -> Harness:
    points: dict[str, Any] = {point: {"enabled": [{"name": "Mute"}]}}
    if point == "bind":
        points[point]["disabled"] = [{"name": "*"}]
    return Harness(
        nodes=[make_node(name).capacity(cpu="4", memory="4Gi", pods="9") for name in ("n1", "n2")],
        pods=[make_pod("p")],
        plugins=[mute],
        profile={"plugins": points},
    )


@pytest.mark.parametrize(
    ("point", "mute", "message"),
    [
        pytest.param(
            "preFilter",
            plugin(PreFilterPlugin, pre_filter=(None, None)),
            f'running PreFilter plugin "Mute": {NOTHING}',
            id="PreFilter",
        ),
        pytest.param(
            "preFilter",
            plugin(PreFilterPlugin, pre_filter=None),
            'running PreFilter plugin "Mute": cannot unpack non-iterable NoneType object',
            id="PreFilter, not even a pair",
        ),
        pytest.param(
            "filter",
            plugin(FilterPlugin, filter_nodes=None),
            'running "Mute" filter plugin: returned NoneType in place of NodeStatuses',
            id="Filter over all nodes",
        ),
        pytest.param(
            "preScore",
            plugin(PreScorePlugin, pre_score=None),
            f'running PreScore plugin "Mute": {NOTHING}',
            id="PreScore",
        ),
        pytest.param(
            "reserve",
            plugin(ReservePlugin, reserve=None, unreserve=None),
            f'running Reserve plugin "Mute": {NOTHING}',
            id="Reserve",
        ),
        pytest.param(
            "permit",
            plugin(PermitPlugin, permit=(None, 0.0)),
            f'running Permit plugin "Mute": {NOTHING}',
            id="Permit",
        ),
    ],
)
def test_the_cycle_ends_with_an_error_that_names_the_plugin(
    point: str, mute: type[Plugin], message: str
) -> None:
    h = scheduler_with(mute, point)
    h.settle()
    cycle = h.cycle("p")
    assert (cycle.outcome.value, cycle.plugin, cycle.message) == ("error", "Mute", message)
    assert h.scheduler.queue.place_of("default/p") == "backoff"


@pytest.mark.parametrize(
    ("point", "mute", "message"),
    [
        pytest.param(
            "preBind",
            plugin(PreBindPlugin, pre_bind_pre_flight=SUCCESS, pre_bind=None),
            f'running PreBind plugin "Mute": {NOTHING}',
            id="PreBind",
        ),
        pytest.param(
            "preBind",
            plugin(PreBindPlugin, pre_bind_pre_flight=None, pre_bind=SUCCESS),
            f'running PreBindPreFlight plugin "Mute": {NOTHING}',
            id="PreBindPreFlight",
        ),
        pytest.param(
            "bind",
            plugin(BindPlugin, bind=None),
            f'running Bind plugin "Mute": {NOTHING}',
            id="Bind",
        ),
    ],
)
def test_the_binding_cycle_fails_and_names_the_plugin(
    point: str, mute: type[Plugin], message: str
) -> None:
    h = scheduler_with(mute, point)
    h.settle()
    end = h.observer.bindings[-1]
    assert (end.bound, end.plugin, end.message) == (False, "Mute", message)
    assert h.scheduler.queue.place_of("default/p") == "backoff"


def test_a_pre_enqueue_without_an_answer_gates_the_pod_and_says_so() -> None:
    h = scheduler_with(plugin(PreEnqueuePlugin, pre_enqueue=None), "preEnqueue")
    h.settle()
    info = h.scheduler.queue.get("default/p")
    assert info is not None
    assert info.gating_message == f'running PreEnqueue plugin "Mute": {NOTHING}'


def test_a_wait_without_a_number_of_seconds_lasts_as_long_as_any() -> None:
    h = scheduler_with(plugin(PermitPlugin, permit=(wait("for ever"), float("nan"))), "permit")
    h.settle()
    (waiting,) = h.scheduler.waiting_pods
    assert waiting.deadline == h.clock.now() + 900


def test_a_plugin_that_cannot_name_its_events_is_refused_by_name() -> None:
    mute = plugin(FilterPlugin, EnqueueExtensions, filter=SUCCESS, events_to_register=None)
    with pytest.raises(ProfileError, match='asking plugin "Mute" for its events: '):
        scheduler_with(mute, "filter")
