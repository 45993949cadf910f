"""One person's way through the pages, against everything that `make demo` starts."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from scheduler_core.ports import Json
from tests.e2e.product import (
    PATIENCE,
    Product,
    Run,
    bound,
    gang,
    node_of,
    nodes,
    pods,
    pods_of,
    until,
)

pytestmark = [pytest.mark.e2e, pytest.mark.browser, pytest.mark.slow]
expect.set_options(timeout=PATIENCE * 1000)

Visit = Callable[..., Page]


def stay(page: Page) -> Callable[[], None]:
    """A check that the page was not loaded again since."""
    page.evaluate("window.stayed = true")

    def check() -> None:
        assert page.evaluate("window.stayed === true"), "the page was loaded again"

    return check


def changes(page: Page, read: Callable[[], object], what: str) -> None:
    """Wait until ``read()`` gives something else, without leaving the page."""
    still_here = stay(page)
    first = read()
    until(lambda: read() != first, f"{what} changes from {first!r:.200}")
    still_here()


def open_tab(page: Page, name: str) -> None:
    page.get_by_role("navigation", name="Pages of this run").get_by_role("link", name=name).click()
    expect(page.locator("#link-state")).to_have_text("live")


def test_from_the_login_to_one_decision(product: Product, visit: Visit) -> None:
    page = visit(product, "admin")

    # A sandbox from the form: five nodes, pods arrive by themselves, ten times as fast.
    page.get_by_label("Name").fill("journey")
    page.get_by_label("Small").check()
    page.get_by_label("Clock").select_option("10")
    page.get_by_role("button", name="Start").click()
    page.wait_for_url(re.compile(r"/runs/\d+/$"))
    run = product.run("journey")
    expect(page.locator("#run-state")).to_have_text("running")
    expect(page.locator("#link-state")).to_have_text("live")

    # The overview: totals count and decisions stream.
    changes(page, page.locator("#totals").inner_text, "the totals")
    changes(page, page.locator(".feed-row").first.inner_text, "the latest decision")
    changes(page, page.locator("#throughput-now").inner_text, "the throughput")

    # The heatmap: another cycle, other pixels.
    open_tab(page, "Heatmap")
    page.get_by_role("button", name="Tiles").click()
    cells = page.locator("#heat-cells")
    expect(cells).to_be_visible()
    changes(page, page.locator("#heat-cycle").inner_text, "the cycle of the heatmap")
    changes(page, lambda: cells.evaluate("canvas => canvas.toDataURL()"), "the heatmap's picture")

    # The queues: pods that fit nowhere come into sight, and go when they are deleted.
    open_tab(page, "Queues")
    unschedulable = page.locator('[data-queue="unschedulable"]')
    too_big = unschedulable.locator(".queue-row", has_text="default/too-big")
    expect(page.locator("#queues-note")).to_contain_text("held at Permit")
    expect(too_big).to_have_count(0)
    still_here = stay(page)
    sandbox = product.sandbox(run)
    sandbox.create_all(pods("too-big", 3, cpu="4000"))
    expect(too_big).to_have_count(3)
    expect(too_big.first.locator(".queue-reason")).to_contain_text("Insufficient cpu")
    for number in range(3):
        sandbox.delete("Pod", "default", f"too-big-{number:03d}")
    expect(too_big).to_have_count(0)
    still_here()

    # The decisions: new ones join the list; the first of them is opened.
    open_tab(page, "Decisions")
    first = page.locator("#decisions tr").first
    changes(page, first.inner_text, "the newest decision")
    page.get_by_label("Outcome").select_option("scheduled")
    expect(page.locator('#decisions .outcome:not([data-outcome="scheduled"])')).to_have_count(0)
    expect(first).to_be_visible()
    pod = first.locator(".cell-pod").inner_text()
    first.get_by_role("link").click()
    page.wait_for_url(re.compile(r"/cycles/\d+/$"))
    expect(page.locator("#decision-note")).to_contain_text(pod)
    expect(page.locator(".choice-words")).to_contain_text("nodes were feasible")
    expect(page.locator(".point-line").first).to_be_visible()
    expect(page.locator(".scores-table tbody tr").first).to_be_visible()
    expect(page.locator(".point-line", has_text="Bind").first).to_be_visible()


def in_dialog(page: Page, verdict: str, comment: str = "") -> None:
    dialog = page.get_by_role("dialog")
    if comment:
        dialog.get_by_label("Comment").fill(comment)
    dialog.get_by_role("button", name=verdict, exact=True).click()
    expect(dialog).to_be_hidden()


def ended(page: Page, pod: str) -> Locator:
    return page.locator(".ended-row", has=page.get_by_text(f"default/{pod}", exact=True))


def test_one_gang_is_approved_another_denied_while_a_viewer_looks_on(
    product: Product, visit: Visit
) -> None:
    run = product.start_sandbox("gangs")
    sandbox = product.sandbox(run)
    sandbox.create_all(nodes(4))
    address = f"{product.demo.base_url}/runs/{run.id}/waiting/"
    page, looking = visit(product, "admin"), visit(product, "viewer")
    for one in (page, looking):
        one.goto(address)
        expect(one.get_by_text("Nobody waits")).to_be_visible()
    checks = [stay(page), stay(looking)]

    sandbox.create_all([*gang("train", 3), *gang("render", 2)])

    # Both see both gangs, complete, on their nodes; one of them may decide.
    for one in (page, looking):
        expect(one.locator(".gang", has_text="default/train")).to_contain_text("3 of 3 have a node")
        expect(one.locator(".gang", has_text="default/render")).to_contain_text("2 of 2")
        expect(one.locator(".wait")).to_have_count(5)
        expect(one.locator(".wait").first).to_contain_text("ManualApproval")
        expect(one.locator(".gang").first).to_contain_text("ada@example.org")
    expect(page.get_by_role("button", name="Approve the gang default/train")).to_be_visible()
    for word in ("Approve", "Deny", "Pause", "Stop", "Start"):
        expect(looking.get_by_role("button", name=word)).to_have_count(0)

    page.get_by_role("button", name="Approve the gang default/train").click()
    in_dialog(page, "Approve")
    for one in (page, looking):
        for number in range(3):
            row = ended(one, f"train-{number}")
            expect(row).to_contain_text("allowed")
            expect(row).to_contain_text("approved by admin")
        expect(one.locator(".gang", has_text="default/train")).to_have_count(0)
    until(lambda: len(bound(sandbox, "train-")) == 3, "the approved gang is bound")

    page.get_by_role("button", name="Deny the gang default/render").click()
    in_dialog(page, "Deny", comment="not before <b>Monday</b>")
    for one in (page, looking):
        for number in range(2):
            row = ended(one, f"render-{number}")
            expect(row).to_contain_text("rejected")
            expect(row).to_contain_text("denied by admin: not before <b>Monday</b>")
        expect(one.get_by_text("Nobody waits")).to_be_visible()
    assert bound(sandbox, "render-") == []
    for check in checks:
        check()

    # What was decided is in the audit, and the decision page knows what became of it.
    ended(page, "train-0").locator("summary").click()
    page.get_by_role("link", name="default/train-0").click()
    expect(page.locator("#decision-note")).to_contain_text("default/train-0")
    expect(page.locator(".point-line", has_text="Bind").first).to_be_visible()
    page.goto(f"{product.demo.base_url}/runs/{run.id}/audit/")
    expect(page.locator("main")).to_contain_text("not before <b>Monday</b>")
    entries = product.rows(
        "select verb, outcome, username from dashboard_auditentry where run_id = ? and verb in"
        " ('approve', 'deny')", run.id,
    )  # fmt: skip
    assert sorted((e["verb"], e["outcome"]) for e in entries) == [
        ("approve", "applied"),
        ("deny", "applied"),
    ]
    assert {entry["username"] for entry in entries} == {"admin"}
    nodes_held = {row["name"]: row["node"] for row in product.waits(run, "allowed")}
    assert nodes_held == {
        pod["metadata"]["name"]: node_of(pod) for pod in pods_of(sandbox, "train-")
    }


def test_one_pod_is_approved_and_a_late_second_word_says_who_was_first(
    product: Product, visit: Visit
) -> None:
    run = product.start_sandbox("single")
    sandbox = product.sandbox(run)
    sandbox.create_all(nodes(1))
    (pod,) = pods("alone", 1)
    pod["metadata"]["labels"] = {"kubesched.io/approval": "required"}
    sandbox.create_all([pod])
    page = visit(product, "admin")
    page.goto(f"{product.demo.base_url}/runs/{run.id}/waiting/")
    page.get_by_role("button", name="Approve default/alone-000").click()
    # Somebody else is quicker, with the dialog open.
    (wait,) = product.waits(run)
    answer = product.person("admin").post(
        f"/api/runs/{run.id}/waiting/decide", {"pods": [wait["id"]], "verdict": "approve"}
    )
    assert answer.status_code == 200, answer.text
    expect(ended(page, "alone-000")).to_contain_text("approved by admin")
    until(lambda: bound(sandbox) == ["alone-000"], "the approved pod is bound")

    late = product.person("admin").post(
        f"/api/runs/{run.id}/waiting/decide", {"pods": [wait["id"]], "verdict": "deny"}
    )

    assert late.status_code == 409
    assert "Already approved by admin" in late.json()["results"][0]["message"]


def test_pause_resume_stop_and_start(product: Product, visit: Visit) -> None:
    run = product.start_sandbox("controls")
    sandbox = product.sandbox(run)
    sandbox.create_all(nodes(3))
    page = visit(product, "admin")
    page.goto(f"{product.demo.base_url}/runs/{run.id}/queues/")
    still_here = stay(page)
    state = page.locator("#run-state")
    active = page.locator('[data-queue="active"] .queue-depth')

    def press(word: str, becomes: str) -> None:
        page.locator("#run-controls").get_by_role("button", name=word, exact=True).click()
        expect(state).to_have_text(becomes)
        product.wait_for_state(run, becomes)

    def tried() -> list[str]:
        return [cycle["name"] for cycle in product.cycles(run)]

    sandbox.create_all(pods("before", 2))
    until(lambda: len(bound(sandbox)) == 2, "pods are bound")

    press("Pause", "paused")
    sandbox.create_all(pods("paused", 3))
    expect(active).to_have_text("3")
    assert not any(name.startswith("paused") for name in tried())
    assert bound(sandbox, "paused") == []

    press("Resume", "running")
    until(lambda: len(bound(sandbox, "paused")) == 3, "pods that came during the pause are bound")
    expect(active).to_have_text("0")

    press("Stop", "stopped")
    sandbox.create_all(pods("stopped", 3))
    expect(page.locator("#notices")).to_contain_text("The scheduler is stopped")
    assert len(pods_of(sandbox, "stopped")) == 3
    assert bound(sandbox, "stopped") == []

    press("Start", "running")
    until(lambda: len(bound(sandbox, "stopped")) == 3, "pods that came during the stop are bound")
    still_here()
    sequences = [cycle["sequence"] for cycle in product.cycles(run)]
    assert sequences == list(range(1, len(sequences) + 1))


def held(product: Product, run: Run) -> dict[str, str]:
    return {row["name"]: row["state"] for row in product.waits(run)}


def _plugins(row: Json) -> list[str]:
    """Whom the pod waits for."""
    return [item["plugin"] for item in json.loads(row["pending"])]


def _lasting(product: Product, run: Run) -> list[Json]:
    """Of each wait what a restart leaves as it is."""
    names = ("id", "uid", "node", "since", "deadline", "state")
    return [{name: row[name] for name in names} for row in product.waits(run)]


def test_waits_go_on_through_a_pause_and_a_stop(product: Product) -> None:
    run = product.start_sandbox("patience")
    sandbox = product.sandbox(run)
    admin = product.person("admin")
    sandbox.create_all([*nodes(2), *gang("hold", 2)])
    # The first member waits for the second one, then both for a person.
    asked = [["ManualApproval"]] * 2
    until(lambda: [_plugins(row) for row in product.waits(run)] == asked, "the gang waits")
    before = _lasting(product, run)

    admin.post(f"/api/runs/{run.id}/control", {"action": "stop"})
    product.wait_for_state(run, "stopped")
    admin.post(f"/api/runs/{run.id}/control", {"action": "start"})
    product.wait_for_state(run, "running")

    # A pod that comes now is tried after those that waited are back on their nodes.
    sandbox.create_all(pods("next", 1))
    until(lambda: bound(sandbox, "next"), "a pod is bound after the start")
    # Rows are written behind the scheduler, and again the first member waits for the second one.
    until(lambda: _lasting(product, run) == before, f"the waits are as they were: {before}")

    # A decision during a pause counts at once.
    admin.post(f"/api/runs/{run.id}/control", {"action": "pause"})
    product.wait_for_state(run, "paused")
    decision = {"pod_group": "default/hold", "verdict": "approve"}
    assert admin.post(f"/api/runs/{run.id}/waiting/decide", decision).status_code == 200
    until(lambda: len(bound(sandbox, "hold")) == 2, "the gang is bound during the pause")
    until(lambda: set(held(product, run).values()) == {"allowed"}, "the rows say so")
