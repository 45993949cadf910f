"""Pages alone, against answers and frames that the test makes up: what they show and send."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from dashboard import heatmap
from tests.browser import fake_data
from tests.browser.fake_site import FakeSite

PATHS = {
    "home": "/",
    "login": "/login/",
    "overview": "/runs/1/",
    "queues": "/runs/1/queues/",
    "heatmap": "/runs/1/heatmap/",
    "decisions": "/runs/1/cycles/",
    "decision": "/runs/1/cycles/412/",
    "waiting": "/runs/1/waiting/",
}
HOSTILE = '<img src=x onerror="document.title=1">'


@pytest.fixture
def site(page: Page) -> Iterator[FakeSite]:
    """The pages of a run on 1,523 nodes; a script error or a refusal by the CSP fails the test."""
    site = FakeSite(page)
    yield site
    page.wait_for_timeout(0)
    assert site.problems == []


def waiting_rows() -> list[dict[str, Any]]:
    return [
        *fake_data.gang("team-a/train", 1, members=5, minimum=5),
        *fake_data.gang("team-b/render", 20, members=3, minimum=4),
        fake_data.waiting_row(50),
        *fake_data.ended_rows(80),
    ]


# --- every page ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PATHS)
def test_page_fits_its_window(site: FakeSite, name: str) -> None:
    site.answers["waiting"] = fake_data.waiting_frame(waiting_rows())
    site.open(PATHS[name])
    site.page.wait_for_load_state("networkidle")
    for width in (1280, 820, 390):
        site.page.set_viewport_size({"width": width, "height": 844})
        site.page.wait_for_timeout(50)
        wide = site.page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert wide <= 0, f"{name} scrolls sideways by {wide} px at {width}"


@pytest.mark.parametrize("name", [name for name in PATHS if name not in ("home", "login")])
def test_page_of_a_run_that_has_done_nothing(page: Page, name: str) -> None:
    site = FakeSite(page, nodes=5)
    site.answers |= {
        "overview": {**fake_data.overview_frame(0), "usage": None},
        "cycles": fake_data.cycles_frame(0, seq=0),
        "queues": fake_data.queues_frame({}),
        "cycles/latest/matrix": (204, b""),
        "cycles/412": (404, {"error": "There is no such cycle."}),
    }
    site.open(PATHS[name])
    words = {
        "overview": "No pod has been tried yet.",
        "queues": "No pod is gated.",
        "heatmap": "No cycle has been recorded yet",
        "decisions": "No decision yet",
        "decision": "There is no cycle 412",
        "waiting": "Nobody waits",
    }
    expect(page.get_by_text(words[name])).to_be_visible()
    assert site.problems == []


def test_a_phone_shows_the_tab_of_the_page(site: FakeSite) -> None:
    site.page.set_viewport_size({"width": 390, "height": 844})
    site.open("/runs/1/waiting/")
    tab = site.page.get_by_role("link", name="Waiting", exact=True)
    expect(tab).to_be_in_viewport(ratio=1)
    assert site.page.evaluate("scrollY") == 0


def test_theme_is_kept(site: FakeSite) -> None:
    site.page.emulate_media(color_scheme="light")
    site.open("/runs/1/")
    site.page.get_by_role("button", name="Switch between light and dark").click()
    expect(site.page.locator("html")).to_have_attribute("data-theme", "dark")
    site.open("/runs/1/queues/")
    expect(site.page.locator("html")).to_have_attribute("data-theme", "dark")


def test_keyboard_reaches_the_content_first_and_the_menu_closes_with_escape(site: FakeSite) -> None:
    site.open("/runs/1/queues/")
    site.page.keyboard.press("Tab")
    expect(site.page.get_by_role("link", name="Skip to the content")).to_be_focused()
    site.page.locator("#user-menu summary").press("Enter")
    expect(site.page.get_by_role("button", name="Log out")).to_be_visible()
    site.page.keyboard.press("Escape")
    expect(site.page.get_by_role("button", name="Log out")).to_be_hidden()


def test_control_buttons_follow_the_run(site: FakeSite) -> None:
    paused = fake_data.run_frame(seq=9, state="running", desired_state="paused")
    site.answers["control"] = paused
    site.open("/runs/1/")
    site.page.get_by_role("button", name="Pause").click()
    expect(site.page.locator("#run-state")).to_have_text("pausing")
    assert site.posts == [("control", {"action": "pause"})]
    site.send(fake_data.run_frame(seq=10, state="stopped", desired_state="stopped"))
    expect(site.page.locator("#notices")).to_contain_text("The scheduler is stopped")
    expect(site.page.locator("#notices").get_by_role("button", name="Start")).to_be_visible()


def test_viewer_sees_no_controls(site: FakeSite) -> None:
    site.context |= {"may_decide": False, "may_control": False}
    site.answers["waiting"] = fake_data.waiting_frame(waiting_rows())
    site.answers["run"] = fake_data.run_frame(state="stopped", desired_state="stopped")
    site.open("/runs/1/waiting/")
    expect(site.page.get_by_text("team-a/train-0")).to_be_visible()
    expect(site.page.locator("#notices")).to_contain_text("The scheduler is stopped")
    for word in ("Approve", "Deny", "Start", "Pause", "Stop"):
        expect(site.page.get_by_role("button", name=word)).to_have_count(0)


def test_connection_that_is_lost_and_comes_back(site: FakeSite) -> None:
    site.page.clock.install()
    site.open("/runs/1/")
    link = site.page.locator("#link-state")
    site.page.clock.run_for(1000)
    expect(link).to_have_text("live")
    first = site.socket
    site.refusing = True
    assert first is not None
    first.close(code=1011)
    expect(link).to_have_text("reconnecting")
    site.page.clock.run_for(6000)
    expect(link).to_have_text("offline")
    expect(site.page.locator("#notices")).to_contain_text("The connection is lost")
    site.refusing = False
    with site.page.expect_request("**/api/runs/1/cycles?since=449"):
        site.page.clock.run_for(15000)
    expect(link).to_have_text("live")


def test_session_that_ended_offers_the_login(site: FakeSite) -> None:
    site.open("/runs/1/")
    expect(site.page.locator("#link-state")).to_have_text("live")
    assert site.socket is not None
    site.socket.close(code=4401)
    expect(site.page.locator("#notices").get_by_role("button", name="Log in")).to_be_visible()


# --- overview, queues, decisions ------------------------------------------------------------------


def test_overview_changes_with_frames_and_acknowledges_them(site: FakeSite) -> None:
    site.open("/runs/1/")
    expect(site.page.locator(".feed-row").first).to_contain_text("default/openb-pod-0449")
    expect(site.page.locator(".chart canvas")).to_have_count(2)
    frame = fake_data.cycles_frame(1, seq=450, first=450)
    site.send({**frame, "from": 449})
    expect(site.page.locator(".feed-row").first).to_contain_text("default/openb-pod-0450")
    site.page.wait_for_function("true")
    assert {"ack": 450, "topic": "cycles"} in site.acks


def test_overview_fills_a_gap_from_the_database(site: FakeSite) -> None:
    caught_up = {**fake_data.cycles_frame(11, first=450), "from": 449}
    first = site.answers["cycles"]
    site.answers["cycles"] = lambda query: caught_up if query.get("since") == "449" else first
    site.open("/runs/1/")
    expect(site.page.locator(".feed-row").first).to_contain_text("openb-pod-0449")
    site.send({**fake_data.cycles_frame(1, first=460), "from": 459})
    expect(site.page.locator(".feed-row").first).to_contain_text("openb-pod-0460")
    expect(site.page.locator(".feed-row").nth(5)).to_contain_text("openb-pod-0455")


def test_overview_tells_what_the_recorder_dropped(site: FakeSite) -> None:
    frame = fake_data.overview_frame(1523)
    frame["recorder"] = {"queued": 4200, "matrices_dropped": 17, "back_pressure_seconds": 2.25}
    site.answers["overview"] = frame
    site.open("/runs/1/")
    notice = site.page.locator("#notices")
    expect(notice).to_contain_text("17 matrices dropped under load")
    expect(notice).to_contain_text("the scheduler waited 2.3 s for the recorder (back-pressure)")


def test_queue_fetches_the_rows_that_are_scrolled_to(site: FakeSite) -> None:
    def answer(query: dict[str, str]) -> dict[str, Any]:
        if "queue" not in query:
            return fake_data.queues_frame({"active": 5000})
        offset = int(query["offset"])
        rows = [fake_data.queue_row("active", offset + i + 1) for i in range(200)]
        return {"seq": 1, "queue": "active", "total": 5000, "rows": rows}

    site.answers["queues"] = answer
    site.open("/runs/1/queues/")
    queue = site.page.locator('[data-queue="active"]')
    expect(queue.get_by_text("default/active-pod-00001")).to_be_visible()
    queue.locator(".queue-list").evaluate("list => { list.scrollTop = 50 * 3000 }")
    expect(queue.get_by_text("default/active-pod-03001")).to_be_visible()
    assert queue.locator(".queue-row").count() < 40
    assert "/api/runs/1/queues?queue=active&offset=3000&limit=200" in site.requests


def test_backoff_counts_down(site: FakeSite) -> None:
    site.answers["queues"] = fake_data.queues_frame({"backoff": 9})
    site.open("/runs/1/queues/")
    left = site.page.locator('[data-queue="backoff"] .queue-time').nth(7)
    expect(left).to_have_text(re.compile(r"in 8\.[0-5] s"))
    expect(left).to_have_text(re.compile(r"in 7\.\d s"))


def test_decision_shows_the_whole_cycle(site: FakeSite) -> None:
    site.open("/runs/1/cycles/412/")
    page = site.page
    expect(page.locator(".choice-words")).to_contain_text("1,087 of 1,523 nodes were feasible")
    expect(page.locator(".point-line")).to_have_count(9)
    page.get_by_text("Filter", exact=True).click()
    expect(page.locator(".point-plugin", has_text="TaintToleration")).to_be_visible()
    expect(page.locator(".rejection").first).to_contain_text("Insufficient cpu")
    expect(page.locator(".scores-table tbody tr")).to_have_count(20)
    expect(page.locator(".score-chosen")).to_have_count(1)
    expect(page.locator(".attempt")).to_have_count(2)
    link = page.get_by_role("link", name="Heatmap of this cycle")
    expect(link).to_have_attribute("href", "/runs/1/heatmap/?cycle=412")


def test_decision_says_where_the_matrix_is_gone(site: FakeSite) -> None:
    site.answers["cycles/412"] = fake_data.decision_detail(412, matrix="dropped")
    site.open("/runs/1/cycles/412/")
    expect(site.page.get_by_text("Its matrix was dropped under load.")).to_be_visible()
    expect(site.page.get_by_role("link", name="Heatmap of this cycle")).to_be_hidden()


def test_decisions_are_searched_on_the_server_and_new_ones_join_where_they_match(
    site: FakeSite,
) -> None:
    site.answers["cycles"] = lambda query: fake_data.cycles_frame(
        3 if query.get("outcome") else 50, first=400
    )
    site.open("/runs/1/cycles/")
    rows = site.page.locator("#decisions tr")
    expect(rows).to_have_count(50)
    site.page.get_by_label("Pod, gang or node").fill("openb")
    expect(site.page).to_have_url(re.compile("q=openb"))
    site.send({**fake_data.cycles_frame(1, first=450), "from": 449})
    expect(rows).to_have_count(51)
    expect(rows.first).to_contain_text("openb-pod-0450")


def test_only_the_latest_attempt_of_each_pod_where_that_is_asked_for(site: FakeSite) -> None:
    site.open("/runs/1/cycles/")
    page, rows = site.page, site.page.locator("#decisions tr")
    page.get_by_label("Attempts").select_option("latest")
    expect(page).to_have_url(re.compile(r"\?attempts=latest$"))
    assert any("attempts=latest" in request for request in site.requests)
    shown = rows.count()
    again = fake_data.cycle_row(450, uid="uid-449", pod="default/openb-pod-0449", attempt=2)
    site.send({**fake_data.cycles_frame(0, seq=450), "from": 449, "cycles": [again]})
    expect(rows.first).to_contain_text("450default/openb-pod-04492")
    expect(rows).to_have_count(shown)


def test_a_reason_that_is_cut_off_opens_where_it_stands(site: FakeSite) -> None:
    site.open("/runs/1/cycles/")
    page = site.page
    reason = page.get_by_role("button", name="0/1523 nodes are available").first
    reason.press("Enter")
    opened = page.locator("#cut-text")
    expect(opened).to_be_visible()
    expect(opened).to_contain_text("323 node(s) had untolerated taint(s).")
    page.keyboard.press("Escape")
    expect(opened).to_be_hidden()
    page.get_by_role("button", name="openb-node").first.click()
    expect(opened).to_be_hidden()


# --- heatmap --------------------------------------------------------------------------------------


def heat(site: FakeSite) -> Locator:
    site.open("/runs/1/heatmap/")
    marks = site.page.locator("#heat-marks")
    expect(marks).to_be_visible()
    return marks


def test_heatmap_shows_a_node_under_the_pointer_with_raw_scores(site: FakeSite) -> None:
    marks = heat(site)
    marks.hover(position={"x": 12, "y": 44})
    inspector = site.page.locator("#inspector")
    expect(inspector).to_contain_text("Chosen")
    expect(inspector).to_contain_text("openb-node-0598")
    row = inspector.locator("tbody tr").first
    # raw, normalised, weight, weighted
    expect(row.locator("td")).to_have_text(["703", "100", "3", "300"])
    expect(site.page.locator("#heat-tip")).to_contain_text("rank 1 of 1072 feasible")


def test_heatmap_is_read_with_the_keyboard(site: FakeSite) -> None:
    marks = heat(site)
    marks.focus()
    site.page.keyboard.press("c")
    name = site.page.locator("#inspector .inspector-name")
    expect(name).to_have_text("openb-node-0598")
    site.page.keyboard.press("End")
    expect(site.page.locator("#inspector")).to_contain_text("Rejected by")
    site.page.keyboard.press("Home")
    expect(name).to_have_text("openb-node-0598")
    site.page.keyboard.press("ArrowRight")
    expect(site.page.locator("#inspector")).to_contain_text("rank 2 of 1072 feasible")
    site.page.keyboard.press("Enter")
    marks.blur()
    expect(site.page.locator("#inspector")).to_contain_text("Pinned")
    spoken = site.page.locator('#inspector [data-part="spoken"]')
    expect(spoken).to_contain_text("Feasible, rank 2 of 1072 feasible, total")


def test_heatmap_sorts_and_filters(site: FakeSite) -> None:
    heat(site)
    count = site.page.locator("#heat-count")
    expect(count).to_have_text("1,523 nodes")
    site.page.get_by_label("Show").select_option("plugin:NodeAffinity")
    expect(count).to_have_text("53 of 1,523 nodes")
    site.page.get_by_role("searchbox", name="Name").fill("no such node")
    expect(count).to_have_text("0 of 1,523 nodes")
    site.page.get_by_role("button", name="Show all nodes").click()
    expect(count).to_have_text("1,523 nodes")
    site.page.get_by_label("Sort").select_option("plugin:ImageLocality")
    site.page.get_by_role("button", name="Table").click()
    rows = site.page.locator(".heat-row")
    expect(rows.first).to_be_visible()
    assert rows.count() < 60


def test_heatmap_of_a_small_cluster_is_a_table_of_numbers(page: Page) -> None:
    site = FakeSite(page, nodes=5)
    site.open("/runs/1/heatmap/")
    rows = page.locator(".heat-row")
    expect(rows).to_have_count(5)
    expect(rows.first).to_contain_text("Chosen")
    rows.last.locator("button").focus()
    expect(page.locator("#inspector")).to_contain_text("Rejected by NodeAffinity")
    assert site.problems == []


def test_heatmap_follows_live_frames_by_deltas(site: FakeSite) -> None:
    heat(site)
    cycle = site.page.locator("#heat-cycle")
    base = fake_data.heatmap_of(fake_data.matrix(1523), seq=500, sequence=413)
    site.send(heatmap.encode_full(base))
    expect(cycle).to_contain_text("cycle 413")
    site.page.wait_for_timeout(50)
    assert {"ack": 500, "topic": "heatmap"} in site.acks
    changed = fake_data.matrix(1523)
    changed.rejection[:100] = 3
    changed.normalized[:, :100] = -1
    delta = heatmap.encode_delta(fake_data.heatmap_of(changed, seq=501, sequence=414), base)
    assert delta is not None
    site.send(delta)
    expect(cycle).to_contain_text("cycle 414")
    site.page.get_by_label("Show").select_option("plugin:NodeAffinity")
    shown = int((changed.rejection == 3).sum())
    expect(site.page.locator("#heat-count")).to_have_text(f"{shown} of 1,523 nodes")


def test_heatmap_starts_afresh_after_a_delta_on_another_base(site: FakeSite) -> None:
    heat(site)
    first = site.socket
    base = fake_data.heatmap_of(fake_data.matrix(1523), seq=500, sequence=413)
    delta = heatmap.encode_delta(
        base, fake_data.heatmap_of(fake_data.matrix(1523), seq=7, sequence=1)
    )
    assert delta is not None
    site.send(delta)
    site.page.wait_for_function("document.body.dataset.link === 'connected'")
    expect(site.page.locator("#link-state")).to_have_text("live")
    site.page.wait_for_timeout(100)
    assert site.socket is not first, "it has connected again"


def test_paused_heatmap_stays_and_goes_on_with_the_newest(site: FakeSite) -> None:
    heat(site)
    site.page.get_by_role("button", name="Pause").last.click()
    frame = fake_data.heatmap_of(fake_data.matrix(1523, seed=8), seq=500, sequence=420)
    site.send(heatmap.encode_full(frame))
    site.page.wait_for_timeout(100)
    expect(site.page.locator("#heat-cycle")).to_contain_text("cycle 412")
    assert not [ack for ack in site.acks if ack["topic"] == "heatmap"], "so that the server waits"
    site.page.get_by_role("button", name="Resume").last.click()
    expect(site.page.locator("#heat-cycle")).to_contain_text("cycle 420")


@pytest.mark.parametrize(
    ("state", "words"),
    [
        pytest.param("expired", "It is no longer kept", id="expired"),
        pytest.param("dropped", "It was dropped under load", id="dropped"),
        pytest.param("none", "No node was looked at", id="none"),
    ],
)
def test_heatmap_of_a_cycle_without_matrix_says_why(site: FakeSite, state: str, words: str) -> None:
    site.answers["cycles/9/matrix"] = (404, {"error": "Gone.", "matrix": state})
    site.open("/runs/1/heatmap/?cycle=9")
    expect(site.page.get_by_text("The matrix of cycle 9 is not there")).to_be_visible()
    expect(site.page.locator("#heat-state")).to_contain_text(words)
    expect(site.page.get_by_role("button", name="Open the decision")).to_be_visible()


def test_heatmap_of_5000_nodes_keeps_up_with_ten_frames_a_second(page: Page) -> None:
    site = FakeSite(page, nodes=5000)
    heat(site)
    for i in range(20):
        matrix = fake_data.matrix(5000, seed=i)
        site.send(heatmap.encode_full(fake_data.heatmap_of(matrix, seq=500 + i, sequence=500 + i)))
        page.wait_for_timeout(100)
    expect(page.locator("#heat-cycle")).to_contain_text("cycle 519")
    drawn = [ack["ack"] for ack in site.acks if ack["topic"] == "heatmap"]
    assert len(drawn) >= 15, f"only {len(drawn)} of 20 frames were drawn in time"
    assert site.problems == []


# --- waiting --------------------------------------------------------------------------------------


def open_waiting(site: FakeSite, rows: list[dict[str, Any]] | None = None) -> Page:
    frame = fake_data.waiting_frame(waiting_rows() if rows is None else rows)
    site.answers["waiting"] = frame
    site.open("/runs/1/waiting/")
    return site.page


def gang_row(page: Page, name: str) -> Locator:
    return page.locator(".gang", has_text=name)


def test_two_gangs_of_one_name_say_their_uids_and_are_decided_on_apart(site: FakeSite) -> None:
    name = "team-a/train"
    rows = [
        *fake_data.gang(name, 1, 2, 2, gang_uid="6b1f0c2e-0000-4000-8000-000000000001"),
        *fake_data.gang(name, 3, 2, 2, gang_uid="d94a7788-0000-4000-8000-000000000002"),
    ]
    results = [
        {"id": row["id"], "pod": row["pod"], "ok": True, "state": "sent", "message": ""}
        for row in rows[2:]
    ]
    site.answers["waiting/decide"] = {"results": results}
    page = open_waiting(site, rows)
    expect(page.locator(".gang")).to_have_count(2)
    page.get_by_role("button", name=f"Deny the gang {name} (d94a7788)").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text(f"{name} (d94a7788)")
    dialog.get_by_role("button", name="Deny").click()
    expect(dialog).to_be_hidden()
    ((_, body),) = site.posts
    assert (body["pod_group"], body["gang_uid"]) == (name, rows[-1]["gang_uid"])


def test_recently_ended_says_none_only_once_it_is_known(site: FakeSite) -> None:
    site.answers["waiting"] = (503, {"error": "The database does not answer."})
    site.open("/runs/1/waiting/")
    expect(site.page.locator("#notices")).to_contain_text("The database does not answer.")
    expect(site.page.locator("#ended-empty")).to_be_hidden()
    open_waiting(site, [])
    expect(site.page.locator("#ended-empty")).to_be_visible()


def test_waiting_groups_gangs_with_their_progress(site: FakeSite) -> None:
    page = open_waiting(site)
    expect(gang_row(page, "team-b/render")).to_contain_text("3 of 4 have a node so far")
    expect(gang_row(page, "team-a/train")).to_contain_text("5 of 5 have a node")
    member = page.locator(".wait", has_text="team-b/render-0")
    expect(member).to_contain_text("openb-node-0620")
    expect(member).to_contain_text("Coscheduling, ManualApproval")
    expect(page.locator(".ended-row").first).to_contain_text("denied by grace: not on a Friday")


def test_countdown_runs_by_the_servers_clock(site: FakeSite) -> None:
    page = open_waiting(site)
    left = gang_row(page, "team-b/render").locator(".wait-left")
    expect(left).to_have_text(re.compile("4[12] s"))
    expect(left).to_have_text("40 s")


def test_approving_a_gang_sends_it_and_shows_sent_until_the_frame(site: FakeSite) -> None:
    rows = fake_data.gang("team-a/train", 1, members=2, minimum=2)
    results = [
        {"id": row["id"], "pod": row["pod"], "ok": True, "state": "sent", "message": ""}
        for row in rows
    ]
    site.answers["waiting/decide"] = {"results": results}
    page = open_waiting(site, rows)
    page.get_by_role("button", name="Approve the gang team-a/train").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label(re.compile("Comment")).fill("looks right")
    dialog.get_by_role("button", name="Approve").click()
    expect(dialog).to_be_hidden()
    expect(page.locator(".wait").first).to_contain_text("approval sent")
    gang = {"pod_group": "team-a/train", "gang_uid": ""}
    body = {**gang, "verdict": "approve", "comment": "looks right"}
    assert site.posts == [("waiting/decide", body)]
    allowed = [{**row, "state": "allowed", "resolved_at": 1, "commit_seq": 200} for row in rows]
    site.send(fake_data.waiting_frame(allowed, seq=200, start=100))
    expect(page.get_by_text("Nobody waits")).to_be_visible()
    ended = page.locator(".ended-row")
    expect(ended).to_have_count(1)
    expect(ended).to_contain_text("team-a/train2 pods")
    expect(ended.get_by_role("link")).to_have_count(0)
    ended.locator("summary").click()
    expect(ended.get_by_role("link")).to_have_count(2)


def test_a_frame_that_is_faster_than_the_answer_leaves_nothing_on_its_way(site: FakeSite) -> None:
    rows = fake_data.gang("team-a/train", 1, members=2, minimum=3)
    page = open_waiting(site, rows)
    under_way: list[Route] = []
    page.route("**/waiting/decide", lambda route: under_way.append(route))
    page.get_by_role("button", name="Approve the gang team-a/train").click()
    page.get_by_role("dialog").get_by_role("button", name="Approve").click()
    page.wait_for_function("() => document.querySelector('#decide-dialog [type=submit]').disabled")
    said = {"user": "ada", "at": fake_data.NOW, "comment": "", "gang": True}
    decision = {**said, "verdict": "approve", "applied": True}
    approved = [
        {**row, "state": "sent", "needs_approval": False, "decision": decision, "approvals": [said],
         "commit_seq": 200, "pending": row["pending"][:1]}
        for row in rows
    ]  # fmt: skip
    site.send(fake_data.waiting_frame(approved, seq=200, start=100))
    expect(gang_row(page, "team-a/train")).to_contain_text("approved by ada")
    answer = [{"id": row["id"], "pod": row["pod"], "ok": True, "state": "sent", "message": ""}
              for row in rows]  # fmt: skip
    under_way[0].fulfill(json={"results": answer})
    expect(page.get_by_role("dialog")).to_be_hidden()
    expect(page.locator(".wait").first).to_contain_text("Coscheduling · approved by ada")
    expect(page.locator(".wait").first).not_to_contain_text("approval sent")


def test_denying_a_gang_asks_first(site: FakeSite) -> None:
    page = open_waiting(site)
    page.get_by_role("button", name="Deny the gang team-a/train").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("All 5 pods give up their nodes and go back to the queue.")
    dialog.get_by_role("button", name="Cancel").click()
    expect(dialog).to_be_hidden()
    assert site.posts == []


def test_lost_race_is_told_in_words(site: FakeSite) -> None:
    words = "Too late: the pod has timed out at 2026-09-21 14:13:20 UTC."
    result = {"id": 50, "pod": "team-a/worker-50", "ok": False, "state": "timed_out"}
    site.answers["waiting/decide"] = (
        409,
        {"error": words, "results": [{**result, "message": words}]},
    )
    page = open_waiting(site, [fake_data.waiting_row(50)])
    page.get_by_role("button", name="Deny team-a/worker-50").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Deny").click()
    expect(dialog.get_by_role("alert")).to_have_text(words)
    expect(dialog.get_by_role("button", name="Deny")).to_be_hidden()
    dialog.get_by_role("button", name="Close").click()
    expect(dialog).to_be_hidden()


def test_anothers_decision_shows_as_sent(site: FakeSite) -> None:
    decision = {"verdict": "approve", "user": "grace", "at": 1, "comment": ""}
    page = open_waiting(site, [fake_data.waiting_row(50, state="sent", decision=decision)])
    expect(page.locator(".wait")).to_contain_text("approval by grace sent")
    expect(page.get_by_role("button", name="Approve team-a/worker-50")).to_have_count(0)


def test_ten_thousand_waiting_pods_are_a_few_elements(site: FakeSite) -> None:
    rows = [fake_data.waiting_row(i, pod=f"team-a/w-{i:05d}") for i in range(10_000)]
    page = open_waiting(site, rows)
    expect(page.get_by_text("10,000 pods")).to_be_visible()
    assert page.locator(".wait").count() < 60
    page.locator("#waiting-list").evaluate("list => { list.scrollTop = list.scrollHeight }")
    expect(page.get_by_text("team-a/w-09999")).to_be_visible()
    page.get_by_label("Filter").fill("w-0777")
    expect(page.locator(".wait")).to_have_count(10)


@pytest.mark.parametrize("name", ["waiting", "decisions", "overview", "decision", "queues"])
def test_hostile_names_stay_text(site: FakeSite, name: str) -> None:
    pod = f"default/{HOSTILE}"
    queues = fake_data.queues_frame({"active": 1})
    queues["active"][0] |= {"pod": pod, "reason": HOSTILE}
    rows = fake_data.cycles_frame(1)
    rows["cycles"][0] |= {"pod": pod, "message": HOSTILE, "node": HOSTILE}
    site.answers |= {
        "waiting": fake_data.waiting_frame([fake_data.waiting_row(1, pod=pod, node=HOSTILE)]),
        "cycles": rows,
        "queues": queues,
        "cycles/412": fake_data.decision_detail(412, pod=pod, message=HOSTILE),
    }
    site.open(PATHS[name])
    expect(site.page.get_by_text(HOSTILE).first).to_be_visible()
    expect(site.page.locator("main img")).to_have_count(0)
    assert site.page.title() != "1"


# --- home -----------------------------------------------------------------------------------------


def test_home_without_clusters_says_what_to_do(site: FakeSite) -> None:
    site.open("/")
    expect(site.page.get_by_text("No cluster yet")).to_be_visible()


def test_home_starts_a_sandbox_or_says_what_is_wrong(site: FakeSite) -> None:
    errors = {"errors": {"name": ['A cluster named "demo" exists already.']}}
    site.answers["sandboxes"] = (400, errors)
    site.open("/")
    page = site.page
    page.get_by_label("Name").fill("demo")
    page.get_by_role("radio", name=re.compile("Large")).check()
    page.get_by_role("button", name="Start").click()
    expect(page.get_by_text('A cluster named "demo" exists already.')).to_be_visible()
    expect(page.get_by_label("Name")).to_be_focused()
    site.answers["sandboxes"] = (201, {"cluster": "demo2", "run": 1, "url": "/runs/1/"})
    page.get_by_label("Name").fill("demo2")
    page.get_by_role("button", name="Start").click()
    expect(page).to_have_url(re.compile("/runs/1/$"))
    assert site.posts[1] == ("sandboxes", {"name": "demo2", "preset": "large", "speed": 1})
