"""Lists of ten thousand rows: a hundred elements at most, and all that short ones can do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser import fake_data
from tests.browser.fake_site import FakeSite

MANY = 10_000
MOST_ELEMENTS = 100


@pytest.fixture
def site(page: Page) -> Iterator[FakeSite]:
    site = FakeSite(page)
    yield site
    page.wait_for_timeout(0)
    assert site.problems == []


def rows_of(count: int, **changes: Any) -> list[dict[str, Any]]:
    return [
        fake_data.waiting_row(i, pod=f"team-a/w-{i:05d}", **changes) for i in range(1, count + 1)
    ]


def open_waiting(site: FakeSite, rows: list[dict[str, Any]]) -> Page:
    """The API answers in pieces, as dashboard.selectors.waiting does."""

    def waiting(query: dict[str, str]) -> dict[str, Any]:
        after, limit = int(query.get("after", 0)), int(query["limit"])
        rest = [row for row in rows if row["id"] > after]
        more = rest[limit - 1]["id"] if len(rest) > limit else None
        return {**fake_data.waiting_frame(rest[:limit]), "more": more, "open": len(rows)}

    site.answers["waiting"] = waiting
    site.open("/runs/1/waiting/")
    note = site.page.locator("#waiting-note")
    expect(note).to_contain_text(f"{len(rows):,} pod")
    expect(note).not_to_contain_text("loaded so far")
    return site.page


def answer_decisions(site: FakeSite) -> None:
    """Every pod that is named is decided."""

    def decide(_: dict[str, str]) -> dict[str, Any]:
        named = site.posts[-1][1]["pods"]
        return {
            "results": [
                {"id": pk, "pod": str(pk), "ok": True, "state": "sent", "message": ""}
                for pk in named
            ]
        }

    site.answers["waiting/decide"] = decide


# --- waiting --------------------------------------------------------------------------------------


def test_waiting_page_holds_few_elements_wherever_it_is_scrolled(site: FakeSite) -> None:
    page = open_waiting(site, rows_of(MANY))
    waiting = page.locator("#waiting-list")
    table = waiting.get_by_role("table")
    for part in (0.0, 0.37, 1.0):
        waiting.evaluate("(list, part) => { list.scrollTop = part * list.scrollHeight }", part)
        page.wait_for_timeout(50)
        assert page.locator(".wait").count() < MOST_ELEMENTS
    expect(table).to_have_attribute("aria-rowcount", str(MANY))
    last = page.get_by_role("row", name=re.compile("w-10000"))
    expect(last).to_have_attribute("aria-rowindex", str(MANY))
    page.get_by_label("Filter").fill("w-0777")
    expect(page.locator(".wait")).to_have_count(10)
    expect(table).to_have_attribute("aria-rowcount", "10")


def test_all_ten_thousand_are_selected_and_denied_in_portions(site: FakeSite) -> None:
    page = open_waiting(site, rows_of(MANY))
    answer_decisions(site)
    page.get_by_label("Select all 10,000").check()
    expect(page.locator("#selection-bar")).to_contain_text("10,000 pods selected")
    page.get_by_role("button", name="Deny 10,000", exact=True).click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Deny 10,000 pods?")
    dialog.get_by_label(re.compile("Comment")).fill("too many")
    dialog.get_by_role("button", name="Deny").click()
    expect(dialog).to_be_hidden()
    sizes = [len(body["pods"]) for _, body in site.posts]
    assert (len(sizes), max(sizes), sum(sizes)) == (20, 500, MANY)
    assert {body["comment"] for _, body in site.posts} == {"too many"}
    expect(page.locator(".wait").first).to_contain_text("denial sent")
    expect(page.get_by_role("button", name=re.compile("^Deny"))).to_have_count(0)


def test_a_selection_stays_while_its_rows_are_out_of_sight(site: FakeSite) -> None:
    page = open_waiting(site, rows_of(MANY))
    answer_decisions(site)
    page.get_by_label("Select team-a/w-00002").check()
    waiting = page.locator("#waiting-list")
    waiting.evaluate("list => { list.scrollTop = list.scrollHeight }")
    page.get_by_label("Select team-a/w-09999").check()
    waiting.evaluate("list => { list.scrollTop = 0 }")
    expect(page.get_by_label("Select team-a/w-00002")).to_be_checked()
    expect(page.get_by_label("Select team-a/w-00003")).not_to_be_checked()
    page.get_by_role("button", name="Approve 2", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Approve").click()
    expect(page.get_by_role("dialog")).to_be_hidden()
    assert [body["pods"] for _, body in site.posts] == [[2, 9999]]


def test_select_all_means_what_the_filter_shows(site: FakeSite) -> None:
    page = open_waiting(site, rows_of(300))
    page.get_by_label("Filter").fill("w-0004")
    page.get_by_label("Select the 10 shown").check()
    page.get_by_label("Filter").fill("")
    expect(page.locator("#selection-bar")).to_contain_text("10 pods selected")


def test_a_gangs_box_takes_all_its_members_and_an_ended_one_leaves_the_selection(
    site: FakeSite,
) -> None:
    rows = [*fake_data.gang("team-a/train", 1, members=5, minimum=5), *rows_of(9)[7:]]
    page = open_waiting(site, rows)
    page.get_by_label("Select the gang team-a/train").check()
    expect(page.locator("#selection-bar")).to_contain_text("5 pods selected")
    ended = {**rows[0], "state": "timed_out", "resolved_at": 1, "commit_seq": 200}
    site.send(fake_data.waiting_frame([ended], seq=200, start=100))
    expect(page.locator("#selection-bar")).to_contain_text("4 pods selected")


def test_arrow_keys_lead_through_more_rows_than_there_are_elements(site: FakeSite) -> None:
    page = open_waiting(site, rows_of(MANY))
    page.get_by_role("button", name="Deny team-a/w-00001", exact=True).focus()
    for _ in range(60):
        page.keyboard.press("ArrowDown")
    expect(page.get_by_role("button", name="Deny team-a/w-00061", exact=True)).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.get_by_label("Select team-a/w-00062")).to_be_focused()


def test_a_row_with_the_focus_keeps_it_while_others_come_and_go(site: FakeSite) -> None:
    rows = rows_of(MANY)
    page = open_waiting(site, rows)
    button = page.get_by_role("button", name="Approve team-a/w-00005", exact=True)
    button.focus()
    ended = [
        {**row, "state": "allowed", "resolved_at": 1, "commit_seq": 200 + i}
        for i, row in enumerate(rows[:4])
    ]
    site.send(fake_data.waiting_frame(ended, seq=300, start=100))
    expect(page.locator("#waiting-note")).to_contain_text("9,996 pods")
    expect(button).to_be_focused()
    page.locator("#waiting-list").evaluate("list => { list.scrollTop = 200000 }")
    page.wait_for_timeout(50)
    expect(button).to_be_focused()


def test_a_viewer_selects_nothing(site: FakeSite) -> None:
    site.context["may_decide"] = False
    page = open_waiting(site, rows_of(20))
    expect(page.get_by_role("checkbox")).to_have_count(0)


# --- queues ---------------------------------------------------------------------------------------


def queue_page(query: dict[str, str]) -> dict[str, Any]:
    depths = {"active": MANY, "backoff": 0, "unschedulable": MANY, "gated": 0}
    frame = fake_data.queues_frame(depths)
    if "queue" not in query:
        return frame
    offset, limit = int(query["offset"]), int(query["limit"])
    rows = [
        fake_data.queue_row(query["queue"], i + 1)
        for i in range(offset, min(offset + limit, depths[query["queue"]]))
    ]
    return {"seq": 100, "queue": query["queue"], "total": depths[query["queue"]], "rows": rows}


def test_queues_of_ten_thousand_hold_few_elements_and_ask_for_what_is_seen(site: FakeSite) -> None:
    site.answers["queues"] = queue_page
    site.open("/runs/1/queues/")
    page = site.page
    expect(page.get_by_text("default/active-pod-00001")).to_be_visible()
    active = page.locator('[data-queue="active"] [data-part="list"]')
    expect(active.get_by_role("table")).to_have_attribute("aria-rowcount", str(MANY))
    active.evaluate("list => { list.scrollTop = list.scrollHeight }")
    expect(page.get_by_text("default/active-pod-10000")).to_be_visible()
    last = page.get_by_role("row", name=re.compile("active-pod-10000"))
    expect(last).to_have_attribute("aria-rowindex", str(MANY))
    assert page.locator(".queue-row").count() < MOST_ELEMENTS
    asked = [path for path in site.requests if "offset=" in path]
    assert asked == ["/api/runs/1/queues?queue=active&offset=9800&limit=200"]


def test_a_pod_that_was_tried_leads_to_its_decisions(site: FakeSite) -> None:
    site.open("/runs/1/queues/")
    tried = site.page.locator('[data-queue="unschedulable"] .queue-pod a').first
    expect(tried).to_have_attribute("href", "/runs/1/cycles/?q=default%2Funschedulable-pod-00001")
    never = site.page.locator('[data-queue="gated"] .queue-pod a').first
    expect(never).to_have_text("default/gated-pod-00001")
    assert never.get_attribute("href") is None


def test_scrolling_through_a_whole_queue_asks_only_where_it_rests(site: FakeSite) -> None:
    site.answers["queues"] = queue_page
    site.open("/runs/1/queues/")
    page = site.page
    expect(page.get_by_text("default/active-pod-00001")).to_be_visible()
    page.locator('[data-queue="active"] [data-part="list"]').evaluate(
        """list => new Promise((resolve) => {
            let step = 0;
            const move = () => {
                list.scrollTop = (step += 1) * 8000;
                if (step < 60) requestAnimationFrame(move);
                else resolve();
            };
            move();
        })"""
    )
    expect(page.get_by_text("default/active-pod-09601")).to_be_visible()
    asked = [path for path in site.requests if "offset=" in path]
    assert len(asked) <= 6, "not one for each of the fifty ranges that went by"


# --- decisions ------------------------------------------------------------------------------------


def open_decisions(site: FakeSite, total: int) -> Page:
    def cycles(query: dict[str, str]) -> dict[str, Any]:
        last = int(query.get("before", total + 1)) - 1
        limit = int(query.get("limit", 50))
        return fake_data.cycles_frame(min(limit, last), seq=total, first=max(1, last - limit + 1))

    site.answers["cycles"] = cycles
    site.open("/runs/1/cycles/")
    expect(site.page.locator("#decisions tr").first).to_contain_text(str(total))
    expect(site.page.locator("#link-state")).to_have_text("live")
    return site.page


def push_cycles(site: FakeSite, first: int, count: int) -> None:
    last = first + count - 1
    site.send({**fake_data.cycles_frame(count, seq=last, first=first), "from": first - 1})


def test_decisions_hold_few_rows_and_walk_to_the_first(site: FakeSite) -> None:
    page = open_decisions(site, 2000)
    more = page.get_by_role("button", name="Earlier decisions")
    note = page.locator("#decisions-note")
    for shown in ("600", "1,100", "1,600", "2,000"):
        more.click()
        expect(note).to_contain_text(f"{shown} shown, newest first")
    table = page.locator("#decisions-table")
    expect(table).to_have_attribute("aria-rowcount", "2001")
    for top in (0, 20_000, 10**6):
        page.evaluate("top => scrollTo(0, top)", top)
        page.wait_for_timeout(50)
        assert 10 < page.locator("#decisions tr").count() < MOST_ELEMENTS
    last = page.locator("#decisions tr").last
    expect(last).to_contain_text("openb-pod-0001")
    expect(last).to_have_attribute("aria-rowindex", "2001")
    expect(more).to_be_hidden()


def test_decisions_come_in_live_and_wait_while_someone_reads(site: FakeSite) -> None:
    page = open_decisions(site, 1000)
    push_cycles(site, 1001, 50)
    expect(page.locator("#decisions tr").first).to_contain_text("1050")
    page.evaluate("scrollTo(0, 1500)")
    page.wait_for_timeout(50)
    read = page.locator("#decisions tr").nth(15).inner_text()
    push_cycles(site, 1051, 30)
    newer = page.get_by_role("button", name="30 newer")
    expect(newer).to_be_visible()
    assert page.locator("#decisions tr").nth(15).inner_text() == read
    newer.click()
    expect(page.locator("#decisions tr").first).to_contain_text("1080")
    expect(newer).to_be_hidden()


def test_decisions_that_went_by_too_fast_are_told(site: FakeSite) -> None:
    page = open_decisions(site, 1000)
    frame = {**fake_data.cycles_frame(50, seq=1200, first=1151), "from": 1000, "skipped": 150}
    site.send(frame)
    expect(page.locator("#decisions-note")).to_contain_text("150 went by too fast")
