"""The dialog before a decision: what it tells, and what it says when others are first."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser import fake_data
from tests.browser.fake_site import FakeSite

HOSTILE = "<img src=x onerror=document.title=1>"
Row = dict[str, Any]


@pytest.fixture
def site(page: Page) -> Iterator[FakeSite]:
    site = FakeSite(page)
    yield site
    page.wait_for_timeout(0)
    assert site.problems == []


def open_waiting(site: FakeSite, rows: list[Row]) -> Page:
    site.answers["waiting"] = fake_data.waiting_frame(rows)
    for row in rows:
        site.answers[f"waiting/{row['id']}"] = fake_data.wait_detail(row, rows)
    site.open("/runs/1/waiting/")
    expect(site.page.locator("#link-state")).to_have_text("live")
    return site.page


def press(page: Page, name: str) -> Locator:
    page.get_by_role("button", name=name, exact=True).click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("Before you decide")).to_be_visible()
    return dialog


def change(site: FakeSite, *rows: Row, **changes: Any) -> None:
    """A frame in which these rows have changed."""
    told = [{**row, **changes, "commit_seq": 500} for row in rows]
    site.send(fake_data.waiting_frame(told, seq=500, start=100))


def said_by(user: str, verdict: str = "approve") -> Row:
    return {"verdict": verdict, "user": user, "at": 1, "comment": "fine", "applied": False}


def test_a_gang_of_sixty_four_shows_every_node_and_the_buttons_stay_in_reach(
    site: FakeSite,
) -> None:
    name = f"team-a/{'a-very-long-name-of-a-gang-' * 4}x"
    rows = fake_data.gang(name, 1, members=64, minimum=64)
    for width in (1280, 390):
        site.page.set_viewport_size({"width": width, "height": 700})
        page = open_waiting(site, rows)
        dialog = press(page, f"Approve the gang {name}")
        expect(dialog.locator(".held-node")).to_have_count(64)
        expect(dialog).to_contain_text("Room held on 64 nodes")
        expect(dialog).to_contain_text("cpu 512, memory 2 TiB, nvidia.com/gpu 64")
        expect(dialog.get_by_role("button", name="Approve")).to_be_in_viewport(ratio=1)
        expect(dialog.get_by_role("button", name="Cancel")).to_be_in_viewport(ratio=1)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        dialog.get_by_label("Before you decide").evaluate("it => it.scrollTo(0, it.scrollHeight)")
        expect(dialog.get_by_text("Nobody else waits on these nodes")).to_be_in_viewport()


def test_names_of_the_cluster_stay_text_in_the_dialog(site: FakeSite) -> None:
    row = fake_data.waiting_row(1, pod=HOSTILE, node=HOSTILE, requested_by=HOSTILE)
    rival = {"pod": HOSTILE, "pod_group": HOSTILE, "node": HOSTILE, "priority": 1, "requests": {}}
    page = open_waiting(site, [row])
    detail = fake_data.wait_detail(row, [row])
    detail["rivals"] |= {"waiting_total": 1, "waiting": [rival]}
    detail["terms"] = {**row["terms"], "reason": HOSTILE}
    site.answers["waiting/1"] = detail
    dialog = press(page, f"Approve {HOSTILE}")
    expect(dialog.get_by_role("heading", name=re.compile("Approve <img"))).to_be_visible()
    expect(dialog.locator("img")).to_have_count(0)
    assert page.title() != "1"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        pytest.param(
            {"state": "sent", "decision": said_by("grace")},
            r"team-a/worker-7 was approved by grace at \d\d:\d\d:\d\d: fine\.",
            id="somebody else approves",
        ),
        pytest.param(
            {"state": "rejected", "decision": said_by("grace", "deny"), "resolved_at": 1},
            r"team-a/worker-7 was denied by grace at \d\d:\d\d:\d\d: fine\.",
            id="somebody else denies",
        ),
        pytest.param(
            {"state": "timed_out", "resolved_at": 1, "message": "nobody decided", "pending": []},
            r"team-a/worker-7 timed out at \d\d:\d\d:\d\d: nobody decided\.",
            id="its time is over",
        ),
        pytest.param(
            {"state": "removed", "resolved_at": 1, "message": "the pod was deleted", "pending": []},
            r"team-a/worker-7 was removed at \d\d:\d\d:\d\d: the pod was deleted\.",
            id="the pod is deleted",
        ),
        pytest.param(
            {"state": "broken", "resolved_at": 1, "message": "node n was deleted", "pending": []},
            r"team-a/worker-7 was given up at \d\d:\d\d:\d\d: node n was deleted\.",
            id="its node is deleted",
        ),
    ],
)
def test_what_happens_first_is_told_in_the_open_dialog(
    site: FakeSite, changes: Row, words: str
) -> None:
    row = fake_data.waiting_row(7)
    dialog = press(open_waiting(site, [row]), "Deny team-a/worker-7")
    change(site, row, **changes)
    expect(dialog.get_by_role("alert")).to_have_text(re.compile(words))
    expect(dialog.get_by_role("button")).to_have_text(["Close"])
    assert site.posts == []
    if changes["state"] != "sent":  # what it held and asked for, and how long, is no longer so
        expect(dialog).not_to_contain_text("Room held on", use_inner_text=True)
        expect(dialog).not_to_contain_text(" left, then", use_inner_text=True)


def test_of_a_gang_that_has_ended_nothing_is_shown_as_if_it_still_waited(site: FakeSite) -> None:
    rows = fake_data.gang("team-a/train", 1, members=3, minimum=3)
    dialog = press(open_waiting(site, rows), "Deny the gang team-a/train")
    expect(dialog).to_contain_text("Room held on 3 nodes")
    change(site, *rows, state="allowed", decision=said_by("grace"), resolved_at=1, pending=[])
    expect(dialog.get_by_role("alert")).to_contain_text("was approved by grace")
    for gone in ("Room held on", " left, then", "give up", "must find one"):
        expect(dialog).not_to_contain_text(gone, use_inner_text=True)


def test_of_a_selection_the_others_can_still_be_decided(site: FakeSite) -> None:
    rows = [fake_data.waiting_row(number) for number in (1, 2, 3)]
    page = open_waiting(site, rows)
    page.get_by_label("Select all 3").check()
    dialog = press(page, "Deny 3")
    expect(dialog).to_contain_text("cpu 24, memory 96 GiB, nvidia.com/gpu 3")
    change(site, rows[1], state="sent", decision=said_by("grace"))
    expect(dialog.get_by_role("alert")).to_contain_text(
        "1 of 3 cannot be decided any more: team-a/worker-2 was approved by grace"
    )
    expect(dialog.get_by_role("button", name="Deny")).to_be_enabled()


def test_another_persons_approval_appears_while_one_reads(site: FakeSite) -> None:
    row = fake_data.waiting_row(1, approvers_needed=2)
    dialog = press(open_waiting(site, [row]), "Approve team-a/worker-1")
    expect(dialog).to_contain_text("nobody; 2 people have to")
    approved = {**row, "approvals": [{**said_by("grace"), "gang": False}]}
    site.answers["waiting/1"] = fake_data.wait_detail(approved, [approved])
    change(site, approved)
    expect(dialog).to_contain_text("one more person has to")
    expect(dialog.get_by_role("button", name="Approve")).to_be_enabled()


def test_who_may_not_approve_reads_why_and_cannot(site: FakeSite) -> None:
    row = fake_data.waiting_row(1)
    page = open_waiting(site, [row])
    why = "Only members of ml-leads may decide on team-a/worker-1."
    detail = fake_data.wait_detail(row, [row])
    site.answers["waiting/1"] = {**detail, "may": {**detail["may"], "approve": False, "why": why}}
    dialog = press(page, "Approve team-a/worker-1")
    expect(dialog).to_contain_text(why)
    expect(dialog.get_by_role("button", name="Approve")).to_be_disabled()


def test_ones_own_approval_is_taken_back(site: FakeSite) -> None:
    mine = [{"user": "ada", "at": 1, "comment": "", "gang": True}]
    rows = fake_data.gang("team-a/train", 1, members=2, minimum=3, approvals=mine)
    page = open_waiting(site, rows)
    site.answers["waiting/decide"] = {
        "results": [{"id": row["id"], "ok": True, "message": ""} for row in rows]
    }
    gang = page.locator(".gang")
    expect(gang).to_contain_text("approved by ada, later members too")
    expect(page.get_by_role("button", name=re.compile("^Approve"))).to_have_count(0)
    dialog = press(page, "Take back the approval of the gang team-a/train")
    expect(dialog).to_contain_text("for the whole gang, later members too")
    expect(dialog.get_by_label("Comment")).to_be_hidden()
    dialog.get_by_role("button", name="Take back").click()
    expect(page.locator(".wait").first).to_contain_text("approval taken back")
    ((path, body),) = site.posts
    assert (path, body["verdict"], body["pod_group"]) == (
        "waiting/decide",
        "revoke",
        "team-a/train",
    )


def test_the_requester_sees_why_there_is_nothing_to_approve(site: FakeSite) -> None:
    row = fake_data.waiting_row(1, requested_by="ada")
    row["terms"] = {**row["terms"], "requester_may_approve": False}
    page = open_waiting(site, [row])
    wait = page.locator(".wait")
    expect(wait).to_contain_text("your own request")
    expect(wait.get_by_role("button")).to_have_text(["Deny"])


def test_a_viewer_reads_the_same_and_decides_nothing(site: FakeSite) -> None:
    site.context["may_decide"] = False
    rows = fake_data.gang("team-a/train", 1, members=2, minimum=2)
    page = open_waiting(site, rows)
    dialog = press(page, "Details of the gang team-a/train")
    expect(dialog).to_contain_text("Room held on 2 nodes")
    expect(dialog).to_contain_text(re.compile(r"left, then it is denied"))
    expect(dialog.get_by_role("button")).to_have_text(["Close"])
    expect(dialog.get_by_role("textbox")).to_be_hidden()
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()


def test_a_dialog_waits_for_the_answer_to_its_own_word(site: FakeSite) -> None:
    """The frame with one's own decision may come before the answer to the POST."""
    row = fake_data.waiting_row(1)
    page = open_waiting(site, [row])
    held: list[Any] = []
    page.route("**/waiting/decide", lambda route: held.append(route))
    dialog = press(page, "Approve team-a/worker-1")
    dialog.get_by_role("button", name="Approve").click()
    expect(dialog.get_by_role("button", name="Cancel")).to_be_disabled()
    change(site, row, state="sent", decision=said_by("ada"))
    expect(page.locator(".wait").first).to_contain_text("approval by ada sent")
    page.keyboard.press("Escape")
    expect(dialog).to_be_visible()
    expect(dialog.get_by_role("alert")).to_be_hidden()
    held[0].fulfill(json={"results": [{"id": 1, "ok": True, "message": ""}]})
    expect(dialog).to_be_hidden()
