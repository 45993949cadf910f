from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard import heatmap
from dashboard.heatmap import Heatmap
from dashboard.merging import merge
from dashboard.outbox import Outbox
from tests.dashboard.factory import matrix


def cycles(first: int, last: int, skipped: int = 0) -> dict[str, Any]:
    rows = [{"sequence": n, "commit_seq": n} for n in range(first + 1, last + 1)]
    return {
        "type": "cycles",
        "run": 1,
        "from": first,
        "seq": last,
        "cycles": rows,
        "skipped": skipped,
    }


def state(topic: str, seq: int) -> dict[str, Any]:
    return {"type": topic, "seq": seq}


def frame_of(message: str | bytes | None) -> Any:
    assert isinstance(message, str)
    return json.loads(message)


def picture(seq: int, seed: int = 0, nodes: int = 20) -> Heatmap:
    return heatmap.from_matrix(
        matrix(nodes, seed),
        seq=seq,
        run=1,
        sequence=seq,
        pod="a/b",
        outcome="scheduled",
        node="",
        names_hash="h",
    )


def test_one_frame_is_in_flight_and_the_rest_is_merged() -> None:
    box = Outbox(["cycles"], interval=0.1)
    box.offer("cycles", cycles(0, 1))
    assert frame_of(box.take(0.0))["seq"] == 1
    for n in range(1, 5):
        box.offer("cycles", cycles(n, n + 1))
    assert box.take(5.0) is None
    assert box.delay(5.0) is None
    box.ack("cycles", 1)
    frame = frame_of(box.take(5.0))
    assert (frame["from"], frame["seq"]) == (1, 5)
    assert [row["sequence"] for row in frame["cycles"]] == [2, 3, 4, 5]


@pytest.mark.parametrize(
    ("topic", "seq"),
    [
        pytest.param("cycles", 99, id="another number"),
        pytest.param("waiting", 1, id="another topic"),
        pytest.param("nonsense", 1, id="no topic"),
    ],
)
def test_a_wrong_ack_frees_nothing(topic: str, seq: int) -> None:
    box = Outbox(["cycles", "waiting"], interval=0.0)
    box.offer("cycles", cycles(0, 1))
    box.take(0.0)
    box.offer("cycles", cycles(1, 2))
    box.ack(topic, seq)
    assert box.take(1.0) is None


def test_a_topic_that_was_not_asked_for_is_not_sent() -> None:
    box = Outbox(["queues"], interval=0.1)
    box.offer("cycles", cycles(0, 1))
    assert box.take(0.0) is None


def test_ten_frames_a_second_over_all_topics() -> None:
    topics = ["queues", "run"]
    box = Outbox(topics, interval=0.1)
    sent: list[tuple[float, str]] = []
    for step in range(1000):
        now = step / 1000
        for topic in topics:
            box.offer(topic, state(topic, step))
        message = box.take(now)
        if message is not None:
            frame = frame_of(message)
            sent.append((now, frame["type"]))
            box.ack(frame["type"], frame["seq"])
    assert len(sent) == 10
    assert [topic for _, topic in sent[:6]] == topics * 3


def test_counters_leave_room_for_decisions() -> None:
    box = Outbox(["overview", "cycles"], interval=0.1)
    sent: list[str] = []
    for step in range(1000):
        counters = {"from": 0, "throughput": [], "depths": [], "usage": None}
        box.offer("overview", state("overview", step) | counters)
        box.offer("cycles", cycles(step, step + 1))
        message = box.take(step / 1000)
        if message is not None:
            frame = frame_of(message)
            sent.append(frame["type"])
            box.ack(frame["type"], frame["seq"])
    assert (sent.count("overview"), sent.count("cycles")) == (1, 9)


def test_two_topics_that_come_together_after_a_pause_go_out_together() -> None:
    box = Outbox(["queues", "run"], interval=0.1)
    for seq, now in ((1, 0.0), (2, 0.5)):
        box.offer("queues", state("queues", seq))
        box.offer("run", state("run", seq))
        assert box.take(now) is not None
        assert (box.take(now) is not None) is (now > 0)
        assert box.take(now) is None
        assert box.take(now + 0.1) is not None or now > 0
        for topic in ("queues", "run"):
            box.ack(topic, seq)


def test_it_comes_back_for_a_topic_that_has_its_own_pace() -> None:
    box = Outbox(["overview", "queues"], interval=0.1)
    counters = {"from": 0, "throughput": [], "depths": [], "usage": None}
    box.offer("overview", state("overview", 1) | counters)
    box.take(0.0)
    box.ack("overview", 1)
    box.offer("overview", state("overview", 2) | counters)
    assert box.take(0.2) is None
    assert box.delay(0.2) == pytest.approx(0.8)
    box.offer("queues", state("queues", 2))
    assert box.delay(0.2) == 0.0


def test_it_says_when_to_come_back() -> None:
    box = Outbox(["cycles"], interval=0.1)
    assert box.delay(0.0) is None
    box.offer("cycles", cycles(0, 1))
    assert box.delay(0.0) == 0.0
    box.take(0.0)
    box.ack("cycles", 1)
    box.offer("cycles", cycles(1, 2))
    assert box.delay(0.04) == pytest.approx(0.06)


def test_heatmaps_become_deltas_of_what_is_drawn() -> None:
    box = Outbox(["heatmap"], interval=0.0)
    first, second = picture(1), picture(2)
    second.normalized[:, 7] = 50
    box.offer("heatmap", heatmap.encode_full(first))
    assert box.take(0.0) == heatmap.encode_full(first)
    box.ack("heatmap", 1)
    box.offer("heatmap", heatmap.encode_full(picture(9, seed=3)))  # replaced before it is sent
    box.offer("heatmap", heatmap.encode_full(second))
    data = box.take(1.0)
    assert isinstance(data, bytes)
    assert len(data) < len(heatmap.encode_full(second)) + 20
    drawn = heatmap.decode(data, first)
    assert (drawn.normalized == second.normalized).all()


def test_without_an_ack_there_is_no_delta() -> None:
    box = Outbox(["heatmap"], interval=0.0)
    box.offer("heatmap", heatmap.encode_full(picture(1)))
    box.take(0.0)
    box.offer("heatmap", heatmap.encode_full(picture(2)))
    assert box.take(1.0) is None
    box.ack("heatmap", 1)
    assert box.take(1.0) is not None
    box.offer("heatmap", heatmap.encode_full(picture(3, nodes=30)))
    box.ack("heatmap", 2)
    assert box.take(2.0) == heatmap.encode_full(picture(3, nodes=30))


# --- merging ----------------------------------------------------------------------------------


@given(st.lists(st.integers(1, 40), min_size=1, max_size=12))
def test_merged_cycles_lose_nothing_without_saying_so(sizes: list[int]) -> None:
    last, whole, total = 0, None, 0
    for size in sizes:
        frame = cycles(last, last + size)
        whole = frame if whole is None else merge("cycles", whole, frame)
        last, total = last + size, total + size
    assert isinstance(whole, dict)
    assert (whole["from"], whole["seq"]) == (0, last)
    assert len(whole["cycles"]) + whole["skipped"] == total
    assert len(whole["cycles"]) == min(50, total)
    assert whole["cycles"][-1]["sequence"] == last


def test_a_row_that_comes_again_is_replaced() -> None:
    old = cycles(0, 2)
    new = {**cycles(2, 3), "cycles": [{"sequence": 1, "commit_seq": 3, "bound": True}]}
    merged = merge("cycles", old, new)
    assert isinstance(merged, dict)
    assert merged["cycles"][0] == {"sequence": 1, "commit_seq": 3, "bound": True}
    assert len(merged["cycles"]) == 2


def test_waits_of_two_writers_may_cross() -> None:
    def waits(since: int, seq: int, state: str) -> dict[str, Any]:
        row = {"id": 1, "commit_seq": seq, "state": state}
        return {"type": "waiting", "from": since, "seq": seq, "now": seq, "pods": [row]}

    merged = merge("waiting", waits(5, 6, "allowed"), waits(4, 5, "sent"))
    assert isinstance(merged, dict)
    assert (merged["from"], merged["seq"], merged["pods"][0]["state"]) == (4, 6, "allowed")


def test_seconds_are_joined_and_states_replaced() -> None:
    def overview(since: int, seq: int, points: list[list[int]], usage: Any) -> dict[str, Any]:
        return {
            "type": "overview", "from": since, "seq": seq, "totals": {"scheduled": seq},
            "throughput": points, "depths": points, "usage": usage,
        }  # fmt: skip

    merged = merge(
        "overview",
        overview(0, 1, [[9, 1], [10, 1]], {"nodes": 3}),
        overview(1, 2, [[10, 4], [11, 2]], None),
    )
    assert isinstance(merged, dict)
    assert merged["throughput"] == [[9, 1], [10, 4], [11, 2]]
    assert (merged["from"], merged["totals"], merged["usage"]) == (
        0,
        {"scheduled": 2},
        {"nodes": 3},
    )


def test_an_older_state_does_not_replace_a_newer_one() -> None:
    assert merge("run", state("run", 5), state("run", 4)) == state("run", 5)
    assert merge("queues", state("queues", 4), state("queues", 5)) == state("queues", 5)
