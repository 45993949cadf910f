"""Each rule of kube-scheduler 1.36 about extenders that bind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from scheduler_core.cluster.sandbox import SandboxCluster
from scheduler_core.ports import ApiError
from scheduler_core.testing.builders import make_pod
from scheduler_core.testing.harness import Harness
from tests.core.extender.server import status
from tests.core.extender.world import (
    MANAGED,
    Start,
    entry,
    node,
)


def binder(h: list[Harness]) -> Callable[[Any], Any]:
    """Binds as an extender has to: by the API."""

    def answer(args: Any) -> Any:
        names = args["PodNamespace"], args["PodName"]
        h[0].cluster.bind(*names, args["PodUID"], args["Node"])
        return {"Error": ""}

    return answer


def bound_by(*extenders: dict[str, Any], holder: list[Harness], **more: Any) -> Harness:
    config = {"extenders": list(extenders)}
    pods = more.pop("pods", [make_pod("p").req(cpu="1")])
    h = Harness(nodes=[node("n0")], config=config, **more)
    holder.append(h)
    h.create("Pod", *pods)
    h.settle()
    return h


def test_bind_replaces_the_bind_plugins(extender: Start) -> None:
    holder: list[Harness] = []
    fake = extender({"bind": binder(holder)})
    h = bound_by(entry(fake, "bind"), holder=holder)
    uid = h.pod("p")["metadata"]["uid"]
    assert fake.asked("bind") == [
        {"PodName": "p", "PodNamespace": "default", "PodUID": uid, "Node": "n0"}
    ]
    assert h.node_of("p") == "n0"
    assert [e["note"] for e in h.events("Scheduled")] == ["Successfully assigned default/p to n0"]
    assert h.observer.bindings[0].bound
    assert "Bind" in h.observer.bindings[0].point_seconds


def test_no_extender_is_asked_to_bind_where_nothing_may_be_written(
    extender: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has rights of its own, and knows nothing of our lease."""

    def lost(cluster: object) -> None:
        raise ApiError(503, "LeaseLost", "the lease is another's")

    monkeypatch.setattr(SandboxCluster, "check_writable", lost, raising=False)
    fake = extender({"bind": {"Error": ""}})
    h = bound_by(entry(fake, "bind"), holder=[])
    assert fake.requests == []
    (binding,) = h.observer.bindings
    assert (binding.bound, binding.message) == (False, "the lease is another's")


def test_bind_plugins_do_it_where_the_extender_is_not_interested(extender: Start) -> None:
    fake = extender({"bind": {}})
    h = bound_by(entry(fake, "bind", **MANAGED), holder=[])
    assert h.node_of("p") == "n0"
    assert fake.requests == []


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        pytest.param({"Error": "no ink"}, "no ink", id="an error in the answer"),
        pytest.param(
            status(500), "failed bind with extender at URL {url}/bind, code 500", id="status"
        ),
    ],
)
def test_an_error_of_bind_fails_the_binding(extender: Start, answer: Any, text: str) -> None:
    fake = extender({"bind": answer})
    h = bound_by(entry(fake, "bind"), holder=[])
    assert h.node_of("p") == ""
    (binding,) = h.observer.bindings
    assert (binding.bound, binding.message) == (False, text.format(url=fake.url))
    assert h.condition("p")["reason"] == "SchedulerError"


def test_an_error_of_an_ignorable_binder_leaves_it_to_the_plugins(extender: Start) -> None:
    fake = extender({"bind": status(500)})
    h = bound_by(entry(fake, "bind", ignorable=True), holder=[])
    assert len(fake.requests) == 1
    assert h.node_of("p") == "n0"
