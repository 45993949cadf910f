"""Structured logs, and the one id of a pod's way."""

from __future__ import annotations

import json
import logging

import pytest

from dashboard.logs import JsonFormatter, PodLog
from scheduler_core.framework.status import wait
from scheduler_core.records import PermitDecision, Verdict
from scheduler_core.testing.builders import make_node, make_pod
from scheduler_core.testing.harness import Harness
from tests.core.scheduler.fakes import enabled, make_spy


def test_a_line_is_one_json_object_with_its_fields() -> None:
    error = ValueError("two\nlines")
    info = (ValueError, error, None)
    record = logging.LogRecord("kubesched.pods", logging.INFO, "", 0, "pod %s", ("a/b",), info)
    record.created = 1_800_000_000.25
    record.pod = "a/b"
    text = JsonFormatter().format(record)
    assert "\n" not in text
    line = json.loads(text)
    assert line["ts"] == "2027-01-15T08:00:00.250Z"
    assert (line["level"], line["logger"], line["msg"]) == ("info", "kubesched.pods", "pod a/b")
    assert line["pod"] == "a/b"
    assert "ValueError: two" in line["error"]


def logged(caplog: pytest.LogCaptureFixture, pod: str) -> list[tuple[str, str]]:
    """(id, what happened) of each line about a pod."""
    lines = [json.loads(JsonFormatter().format(record)) for record in caplog.records]
    return [(x["id"], x["msg"].partition(": ")[2]) for x in lines if x.get("pod") == pod]


def test_one_id_from_the_cycle_to_the_binding(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "kubesched.pods")
    h = Harness(nodes=[make_node("n").capacity(cpu="4")])
    h.scheduler._observers.attach(PodLog(12))
    h.create("Pod", make_pod("first").req(cpu=1))
    h.settle()
    h.create("Pod", make_pod("big").req(cpu=9))
    h.settle()
    assert logged(caplog, "default/first") == [
        ("12-1", "node n chosen of 1 feasible"),
        ("12-1", "bound to n"),
    ]
    (number, text), *_ = logged(caplog, "default/big")
    assert number == "12-2"
    assert text.startswith("unschedulable: 0/1 nodes are available")


def test_a_wait_keeps_its_id(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "kubesched.pods")
    spy = make_spy("A", [], {"permit": (wait(), 60.0)})
    h = Harness(nodes=[make_node("n")], profile=enabled("A"), plugins=[spy])
    h.scheduler._observers.attach(PodLog(3))
    h.create("Pod", make_pod("p"))
    h.settle()
    h.decide(PermitDecision(1, "other", Verdict.APPROVE, "ann"))
    (waiting,) = h.scheduler.waiting_pods
    waiting.allow("A")
    h.settle()
    assert logged(caplog, "default/p") == [
        ("3-1", "waits at Permit for node n"),
        ("3-1", "its wait ended: allowed"),
        ("3-1", "bound to n"),
    ]
    assert "approve of ann" in caplog.text
