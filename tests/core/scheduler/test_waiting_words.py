"""What was said while no worker ran is heard in its order, across a whole gang."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_core.records import PermitDecision, Verdict, WaitOutcome
from scheduler_core.testing.harness import Harness
from tests.core.scheduler.test_approvals import bound, harness, last, member, pod, restart


def words(h: Harness, story: str) -> list[PermitDecision]:
    """``"alice+a alice+b bob-a@50"``: who approves (+), denies (-) or takes back (~) which pod, and
    how many seconds after now; 1 where it is not said."""
    signs = {"+": Verdict.APPROVE, "-": Verdict.DENY, "~": Verdict.REVOKE}
    found: list[PermitDecision] = []
    for number, word in enumerate(story.split(), 1):
        said, _, at = word.partition("@")
        sign = next(sign for sign in signs if sign in said)
        user, name = said.split(sign)
        uid = h.pod(name)["metadata"]["uid"]
        moment = h.clock.now() + float(at or 1)
        found.append(PermitDecision(number, uid, signs[sign], user, at=moment))
    return found


def away(
    story: str, *, args: dict[str, Any] | None = None, gone: str = "", **first: Any
) -> Harness:
    """A gang of two begins to wait; the worker dies, people speak, another one comes."""
    h = harness(member("a"), member("b"), gang=2, timeoutSeconds=100, **first)
    said = words(h, story)
    h.scheduler.stop()
    if gone:
        h.cluster.delete("Pod", "default", gone, grace_period_seconds=0)
    h.clock.advance(150.0)
    now = {"timeoutSeconds": 100, **first} if args is None else args
    return restart(h, *said, args=now)


BOTH = "alice+a alice+b "


@pytest.mark.parametrize(
    "story",
    [
        pytest.param(BOTH + "bob-a@50", id="a denial"),
        pytest.param("alice+b alice+a bob-b@50", id="a denial of the one that was approved first"),
        pytest.param(BOTH + "alice~b@40 alice+b@50 bob-a@60", id="after one that came again"),
        pytest.param("bob+a bob~a " + BOTH + "bob-a@50", id="after an approval that did not last"),
    ],
)
def test_an_approval_of_all_wins_over_what_is_said_after_it(story: str) -> None:
    again = away(story)
    assert bound(again) == ["a", "b"]
    assert {last(again, name).outcome for name in "ab"} == {WaitOutcome.ALLOWED}
    applied = {word.decision_id: counted for word, counted, _ in again.observer.decisions}
    assert applied[len(story.split())] is False


@pytest.mark.parametrize(
    ("story", "denied", "counts"),
    [
        pytest.param(
            "alice+a bob-a@50 alice+b@60", True, False, id="a denial before all are approved"
        ),
        pytest.param(
            "alice+a alice~a alice+b bob-b@50", True, True, id="one was taken back before it"
        ),
        pytest.param(
            BOTH + "alice~b@40 bob-a@50", True, True, id="a denial when one was taken back"
        ),
        pytest.param(BOTH + "alice~b@40", False, True, id="time, when one was taken back"),
        pytest.param(
            "alice+a bob-a@120", False, False, id="a denial when the other's time was over"
        ),
        pytest.param("alice+a alice~a@120", False, False, id="taken back when it was over"),
        pytest.param(
            BOTH + "alice~b@120", None, False, id="nothing that comes when all is approved"
        ),
        pytest.param("bob-a@120", False, False, id="a denial when its own time was over"),
    ],
)
def test_what_came_first_ends_the_wait_of_the_gang(
    story: str, denied: bool | None, counts: bool
) -> None:
    """``denied``: None: it is approved; ``counts``: whether the last word does."""
    again = away(story)
    applied = {word.decision_id: counted for word, counted, _ in again.observer.decisions}
    assert applied[len(story.split())] is counts
    if denied is None:
        assert bound(again) == ["a", "b"]
        return
    assert (bound(again), again.waiting_names()) == ([], [])
    ends = {last(again, name).message for name in "ab"}
    assert any("denied by bob" in text for text in ends) is denied
    assert any("timeout" in text for text in ends) is not denied


def test_time_that_approves_is_not_overruled_by_a_later_denial() -> None:
    again = away("alice+a bob-a@120", atDeadline="Approve")
    assert bound(again) == ["a", "b"]
    assert again.observer.decisions[-1][1] is False


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"args": {"timeoutSeconds": 100, "approvers": 2}}, id="more people now"),
        pytest.param({"gone": "b"}, id="a member is gone"),
    ],
)
def test_no_gang_is_let_go_as_approved_that_is_not_what_was_approved(
    options: dict[str, Any],
) -> None:
    again = away(BOTH + "bob-a@50", **options)
    assert bound(again) == []
    assert last(again, "a").outcome is not WaitOutcome.ALLOWED


@pytest.mark.parametrize(
    ("story", "ends", "waits"),
    [
        pytest.param("alice+p bob-p@50", ["p"], [], id="an approval first"),
        pytest.param("bob-p alice+p@50", [], [], id="a denial first"),
        pytest.param("alice+p alice~p@50", [], ["p"], id="an approval that is taken back"),
        pytest.param("alice+p alice~p@50 bob-p@60", [], [], id="and then a denial"),
        pytest.param("alice+p alice~p@120", ["p"], [], id="taken back when its time was over"),
        pytest.param("alice+p alice~p@50 bob+p@60", ["p"], [], id="and then another approval"),
    ],
)
def test_a_pod_without_a_gang(story: str, ends: list[str], waits: list[str]) -> None:
    """Nothing comes of an approval before all is heard: people were told that it is taken back."""
    h = harness(pod(), timeoutSeconds=100)
    said = words(h, story)
    h.clock.advance(70.0 if "@120" not in story else 130.0)
    again = restart(h, *said)
    assert (bound(again), again.waiting_names()) == (ends, waits)
