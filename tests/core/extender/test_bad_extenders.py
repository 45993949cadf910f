"""Whatever an extender does, the loop goes on: no cycle is longer than the timeout, nothing raises,
and no pod is lost."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from scheduler_core.executor import KeyedThreadPool
from scheduler_core.records import Outcome
from scheduler_core.testing.builders import make_node, make_pod, make_priority_class
from scheduler_core.testing.harness import Harness
from tests.core.extender.server import (
    FakeExtender,
    Takeover,
    drip,
    endless,
    hang_up,
    keep_all,
    late,
    status,
)

Start = Callable[..., FakeExtender]

TIMEOUT = "100ms"
#: What a cycle may take with that timeout on a busy machine; without it the test would not end.
SOON = 5.0


@pytest.fixture
def dead_url() -> Iterator[str]:
    """A port that is taken, so that nobody else comes, and at which nobody answers."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


def bad(kind: str, fake: FakeExtender) -> Any:
    """What an extender of this kind says to everything."""
    kinds: dict[str, Any] = {
        "slow": late(SOON),
        "hangs up": Takeover(hang_up),
        "drips headers": drip(lambda: fake, b"HTTP/1.1 200 OK\r\n", b"X: y\r\n", 0.02),
        "drips a body": drip(lambda: fake, b"HTTP/1.1 200 OK\r\n\r\n", b" ", 0.02),
        "endless": endless(b" " * 65_536),
        "endless list": endless(b'[{"Host":"n0","Score":1}' + b',{"Host":"n0","Score":1}' * 99),
        "no JSON": b"<html>not here</html>",
        "deep JSON": b'{"a":' * 100_000,
        "another type": 42,
        "status 500": status(500),
    }
    return kinds[kind]


KINDS = (
    "slow",
    "hangs up",
    "drips headers",
    "drips a body",
    "endless",
    "endless list",
    "no JSON",
    "deep JSON",
    "another type",
    "status 500",
)


def harness(url: str, *verbs: str, ignorable: bool = False, **more: Any) -> Harness:
    config = {
        "urlPrefix": url,
        "httpTimeout": TIMEOUT,
        "nodeCacheCapable": True,
        "ignorable": ignorable,
        **{f"{verb}Verb": verb for verb in verbs},
        **({"weight": 1} if "prioritize" in verbs else {}),
    }
    nodes = [make_node(f"n{i}").capacity(cpu="4", memory="8Gi") for i in range(2)]
    pods = more.pop("pods", [make_pod("p").req(cpu="1")])
    h = Harness(nodes=nodes, pods=pods, config={"extenders": [config]}, **more)
    started = time.monotonic()
    h.settle()
    assert time.monotonic() - started < SOON
    return h


@pytest.mark.parametrize("kind", KINDS)
def test_bad_filter(extender: Start, kind: str) -> None:
    fake = extender({})
    fake.answers["filter"] = bad(kind, fake)
    h = harness(fake.url, "filter")
    assert h.cycle("p").outcome is Outcome.ERROR
    assert h.cycle("p").message
    assert h.condition("p")["reason"] == "SchedulerError"
    # It recovers, and so does the pod.
    fake.answers["filter"] = keep_all
    h.advance(5)
    assert h.node_of("p") == "n0"


@pytest.mark.parametrize("kind", KINDS)
def test_bad_filter_that_may_be_ignored(extender: Start, kind: str) -> None:
    fake = extender({})
    fake.answers["filter"] = bad(kind, fake)
    assert harness(fake.url, "filter", ignorable=True).node_of("p") == "n0"


@pytest.mark.parametrize("kind", KINDS)
def test_bad_prioritize(extender: Start, kind: str) -> None:
    fake = extender({})
    fake.answers["prioritize"] = bad(kind, fake)
    h = harness(fake.url, "prioritize")
    assert h.node_of("p") == "n0"
    assert h.cycle("p").best[0].plugins.keys().isdisjoint({f"Extender {fake.url}"})


@pytest.mark.parametrize("kind", KINDS)
def test_bad_bind(extender: Start, kind: str) -> None:
    fake = extender({})
    fake.answers["bind"] = bad(kind, fake)
    h = harness(fake.url, "bind")
    assert h.node_of("p") == ""
    assert h.condition("p")["reason"] == "SchedulerError"
    assert not h.observer.bindings[0].bound
    h.validate()


@pytest.mark.parametrize("kind", KINDS)
def test_bad_preempt(extender: Start, kind: str) -> None:
    fake = extender({})
    fake.answers["preempt"] = bad(kind, fake)
    victims = [make_pod(f"v{i}").req(cpu="4").node(f"n{i}") for i in range(2)]
    preemptor = make_pod("p").req(cpu="4").raw()
    preemptor["spec"]["priorityClassName"] = "high"
    h = harness(
        fake.url,
        "preempt",
        pods=[*victims, preemptor],
        objects={"PriorityClass": [make_priority_class("high", 10)]},
    )
    assert h.cycles("p")[0].outcome is Outcome.UNSCHEDULABLE
    assert h.cycles("p")[0].nominated_node == ""


@pytest.mark.parametrize("verb", ["filter", "prioritize", "bind"])
def test_a_dead_extender(dead_url: str, verb: str) -> None:
    h = harness(dead_url, verb)
    assert (h.node_of("p") == "n0") == (verb == "prioritize")
    if verb != "prioritize":
        assert h.condition("p")["message"] == f'Post "{dead_url}/{verb}": connection refused'


def test_other_pods_go_on_while_one_is_being_bound(extender: Start) -> None:
    """A binding has its own thread: a slow binder keeps nobody but its pod waiting."""
    fake = extender({"bind": late(0.3)})
    executor = KeyedThreadPool(8)
    h = harness(
        fake.url,
        "bind",
        pods=[make_pod(f"p{i}").req(cpu="1") for i in range(6)],
        executor=executor,
    )
    deadline = time.monotonic() + 5
    while len(h.observer.bindings) < 6 and time.monotonic() < deadline:
        h.scheduler.run_once()
        time.sleep(0.01)
    executor.shutdown()
    assert len(h.observer.bindings) >= 6
    assert {h.cycles(f"p{i}")[0].outcome for i in range(6)} == {Outcome.SCHEDULED}


def test_bad_prioritizers_are_waited_for_together(extender: Start) -> None:
    fakes = [extender({"prioritize": late(SOON)}) for _ in range(6)]
    entries = [
        {"urlPrefix": f.url, "prioritizeVerb": "prioritize", "weight": 1, "httpTimeout": "500ms"}
        for f in fakes
    ]
    nodes = [make_node(f"n{i}") for i in range(2)]
    h = Harness(nodes=nodes, pods=[make_pod("p")], config={"extenders": entries})
    started = time.monotonic()
    h.settle()
    assert time.monotonic() - started < 6 * 0.5
    assert h.node_of("p") == "n0"


def test_megabytes_of_reasons_are_cut(extender: Start) -> None:
    long = "x" * 2_000_000
    fake = extender({"filter": {"NodeNames": [], "FailedNodes": {"n0": long, "n1": long}}})
    h = harness(fake.url, "filter")
    assert len(h.condition("p")["message"]) < 5_000


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param({"Error": "x" * 2_000_000}, id="an error"),
        pytest.param({"NodeNames": ["x" * 2_000_000]}, id="a node's name"),
    ],
)
def test_megabytes_of_an_error_are_cut(extender: Start, answer: Any) -> None:
    h = harness(extender({"filter": answer}).url, "filter")
    assert len(h.condition("p")["message"]) <= 2_048


def test_a_scheduler_stops_while_an_extender_hangs(extender: Start) -> None:
    fake = extender({})
    fake.answers["filter"] = drip(lambda: fake, b"", b"H", 0.02)
    h = harness(fake.url, "filter")
    started = time.monotonic()
    h.scheduler.stop()
    assert time.monotonic() - started < SOON
