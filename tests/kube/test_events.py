"""Events: one object each, repetitions in its series, best effort."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_core.kube.api import KubeApi
from scheduler_core.kube.event_writer import Emission, EventLane, reference_of
from scheduler_core.kube.rate_limit import RateLimit
from tests.contract.support import pod
from tests.kube.fake import FakeServer, on, status, times

Json = dict[str, Any]


@pytest.fixture
def lane(server: FakeServer) -> EventLane:
    timing = server.timing
    api = KubeApi(server.open(1), server.open(1), timing, lambda: 0.5, RateLimit(-1, 1, timing))
    return EventLane(api, timing.clock)


def failed(server: FakeServer, name: str = "web", note: str = "0/3 nodes") -> Emission:
    about = {"kind": "Pod", "apiVersion": "v1", "name": name, "namespace": "default", "uid": "u"}
    at = server.timing.monotonic()
    return Emission(about, "Warning", "FailedScheduling", "Scheduling", note, "default", at)


def events(server: FakeServer) -> list[Json]:
    return list(server.sandbox.list("Event").items)


def test_a_series_counts(server: FakeServer, lane: EventLane) -> None:
    for _ in range(3):
        lane.write(failed(server))
        server.timing.clock.advance(5)
    (event,) = events(server)
    assert event["series"] == {"count": 2, "lastObservedTime": "2027-01-15T08:00:05.000000Z"}
    server.timing.clock.advance(30)
    lane.count_up(server.timing.monotonic())
    (event,) = events(server)
    assert event["series"] == {"count": 3, "lastObservedTime": "2027-01-15T08:00:10.000000Z"}


def test_a_thousand_repetitions_are_few_writes(server: FakeServer, lane: EventLane) -> None:
    for _ in range(1000):
        lane.write(failed(server))
        server.timing.clock.advance(0.1)
    assert len(server.requests) <= 6
    lane.count_up(server.timing.monotonic() + 30)
    assert events(server)[0]["series"]["count"] == 1000


def test_after_six_minutes_it_is_a_new_event(server: FakeServer, lane: EventLane) -> None:
    lane.write(failed(server))
    server.timing.clock.advance(361)
    lane.write(failed(server))
    assert [e.get("series") for e in events(server)] == [None, None]


def test_another_pod_is_another_event(server: FakeServer, lane: EventLane) -> None:
    lane.write(failed(server, "a"))
    lane.write(failed(server, "b"))
    assert len(events(server)) == 2


def test_an_event_that_has_expired_is_made_anew(server: FakeServer, lane: EventLane) -> None:
    lane.write(failed(server))
    server.sandbox.delete("Event", "default", events(server)[0]["metadata"]["name"])
    server.timing.clock.advance(1)
    lane.write(failed(server))
    assert events(server) == []
    server.timing.clock.advance(1)
    lane.write(failed(server))
    assert len(events(server)) == 1


def test_what_is_refused_is_lost_and_the_next_one_is_not(
    server: FakeServer, lane: EventLane
) -> None:
    server.before.append(times(1, on("POST", "/events", status(403, "Forbidden"))))
    lane.write(failed(server, "a"))
    lane.write(failed(server, "b"))
    assert [e["regarding"]["name"] for e in events(server)] == ["b"]


def test_a_note_is_cut_at_a_letter(server: FakeServer, lane: EventLane) -> None:
    lane.write(failed(server, note="é" * 600))
    assert events(server)[0]["note"] == "é" * 512


def test_too_many_are_dropped_and_counted(
    server: FakeServer, lane: EventLane, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(EventLane, "_work", lambda self: None)
    for _ in range(1600):
        lane.emit(failed(server))
    assert lane.dropped == 100


def test_series_are_forgotten_in_time(server: FakeServer, lane: EventLane) -> None:
    for number in range(1100):
        lane.write(failed(server, f"p{number}"))
    assert len(lane._known) == 1024


def test_a_whole_object_is_cut_down_to_a_reference() -> None:
    made = {**pod(), "metadata": {**pod()["metadata"], "uid": "u", "resourceVersion": "7"}}
    assert reference_of(made) == {
        "apiVersion": "v1",
        "kind": "Pod",
        "namespace": "default",
        "name": "web",
        "uid": "u",
        "resourceVersion": "7",
    }
