"""People who approve and deny, each in a browser of their own, against the running product."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from playwright.sync_api import Locator, Page, Route, expect

from tests.e2e.product import (
    APPROVAL_LABEL,
    PATIENCE,
    REQUESTED_BY,
    Json,
    Product,
    Run,
    bound,
    gang,
    nodes,
    pods,
    until,
)
from tests.servers import ROOT

pytestmark = [pytest.mark.e2e, pytest.mark.browser, pytest.mark.slow]
expect.set_options(timeout=PATIENCE * 1000)

Visit = Callable[..., Page]

#: Long enough to open a dialog on two busy cores, short enough to be waited for.
SHORT_SECONDS = 20
AT = r"at \d\d:\d\d:\d\d"


@pytest.fixture(scope="module", autouse=True)
def people(whole_product: Product) -> None:
    """Two more, who may decide and nothing else."""
    whole_product.add_people("olga", "grace", permission="decide_waitingpod")


def configuration(manual: Json, coscheduling: Json | None = None) -> str:
    """The demo's own, with other arguments."""
    config = yaml.safe_load((ROOT / "examples/demo.yaml").read_text(encoding="utf-8"))
    for entry in config["profiles"][0]["pluginConfig"]:
        more = {"ManualApproval": manual, "Coscheduling": coscheduling or {}}.get(entry["name"], {})
        entry["args"] |= more
    return yaml.safe_dump(config)


def start(product: Product, name: str, manual: Json | None = None, **more: Json) -> Run:
    run = product.start_sandbox(name)
    if manual is not None or more:
        product.configure(run, configuration(manual or {}, **more))
    return run


def look(visit: Visit, product: Product, run: Run, user: str, **options: Any) -> Page:
    """The waiting page of the run, as this person sees it."""
    page = visit(product, user, **options)
    page.goto(f"{product.demo.base_url}/runs/{run.id}/waiting/")
    expect(page.locator("#link-state")).to_have_text("live")
    return page


def asking(name: str, requested_by: str = "") -> Json:
    (pod,) = pods(name, 1)
    pod["metadata"]["labels"] = {APPROVAL_LABEL: "required"}
    pod["metadata"]["annotations"] = {REQUESTED_BY: requested_by} if requested_by else {}
    return pod


def press(page: Page, name: str) -> Locator:
    """Press a button of the list; its dialog, once that tells what there is to know."""
    page.get_by_role("button", name=name, exact=True).click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("Before you decide")).to_be_visible()
    return dialog


def confirm(page: Page, name: str, word: str) -> None:
    dialog = press(page, name)
    dialog.get_by_role("button", name=word, exact=True).click()
    expect(dialog).to_be_hidden()


def fact(dialog: Locator, term: str) -> Locator:
    return dialog.locator(".fact", has=dialog.page.get_by_text(term, exact=True)).locator("dd")


def ended(page: Page, pod: str) -> Locator:
    return page.locator(".ended-row", has=page.get_by_text(f"default/{pod}", exact=True))


def test_a_whole_gang_is_approved_by_somebody_who_knows_what_it_holds(
    product: Product, visit: Visit
) -> None:
    run = start(product, "whole-gang")
    sandbox = product.sandbox(run)
    sandbox.create_all([*nodes(1), asking("rival")])
    until(lambda: product.waits(run, "waiting"), "the first pod waits")
    sandbox.create_all(gang("train", 3, cpu="1"))
    page = look(visit, product, run, "olga")

    dialog = press(page, "Approve the gang default/train")

    expect(fact(dialog, "Gang")).to_have_text("3 pods have a node, the gang of 3 is complete")
    expect(fact(dialog, "Asked for by")).to_have_text("ada@example.org")
    expect(fact(dialog, "Asks for")).to_have_text("cpu 3")
    expect(fact(dialog, "Approved so far")).to_have_text("nobody")
    held = dialog.locator(".held-node")
    expect(held).to_contain_text("node-000")
    expect(held).to_contain_text("3 pods")
    expect(held.locator(".held-words")).to_have_text("100m → 3.1 of 4")
    expect(dialog).to_contain_text("default/rival-000 waits on node-000 too (cpu 100m)")
    expect(dialog).to_contain_text(re.compile(r"1?\d:\d\d left, then it is denied"))

    dialog.get_by_label("Comment").fill("the budget is there")
    dialog.get_by_role("button", name="Approve", exact=True).click()
    expect(dialog).to_be_hidden()

    for number in range(3):
        row = ended(page, f"train-{number}")
        expect(row).to_contain_text("approved by olga: the budget is there")
    until(lambda: len(bound(sandbox, "train-")) == 3, "the gang is bound")
    assert bound(sandbox, "rival") == []
    expect(page.locator(".wait").get_by_role("button")).to_have_text(["Approve", "Deny"])


def test_two_people_have_to_approve_and_neither_may_be_the_requester(
    product: Product, visit: Visit
) -> None:
    run = start(product, "two-people", {"approvers": 2, "requesterMayApprove": False})
    sandbox = product.sandbox(run)
    sandbox.create_all([*nodes(1), asking("pair", requested_by="olga"), *gang("both", 2)])
    olga, grace = (look(visit, product, run, name) for name in ("olga", "grace"))

    # Her own request: she sees why there is nothing to approve.
    own = olga.locator(".wait", has_text="default/pair-000")
    expect(own).to_contain_text("0 of 2 approved · your own request")
    expect(own.get_by_role("button")).to_have_text(["Deny"])

    # One approval is shown to both, and is not enough.
    dialog = press(olga, "Approve the gang default/both")
    expect(fact(dialog, "Approved so far")).to_have_text("nobody; 2 people have to")
    dialog.get_by_role("button", name="Approve", exact=True).click()
    for page in (olga, grace):
        row = page.locator(".wait", has_text="default/both-0")
        expect(row).to_contain_text("1 of 2 approved: olga")
        expect(page.locator(".gang")).to_contain_text("approved by olga, later members too")
    expect(olga.get_by_role("button", name="Approve the gang default/both")).to_have_count(0)

    # She takes it back, and gives it again.
    confirm(olga, "Take back the approval of the gang default/both", "Take back")
    expect(grace.locator(".wait", has_text="default/both-1")).to_contain_text("0 of 2 approved")
    expect(grace.locator(".gang")).not_to_contain_text("approved by olga")
    confirm(olga, "Approve the gang default/both", "Approve")
    expect(grace.locator(".wait", has_text="default/both-1")).to_contain_text("1 of 2")
    assert bound(sandbox) == []

    # The second person's dialog says whose word is there already.
    dialog = press(grace, "Approve the gang default/both")
    expect(fact(dialog, "Approved so far")).to_contain_text(re.compile(f"olga {AT}"))
    expect(fact(dialog, "Approved so far")).to_contain_text("one more person has to")
    dialog.get_by_role("button", name="Approve", exact=True).click()
    for page in (olga, grace):
        expect(ended(page, "both-0")).to_contain_text("allowed")
        expect(ended(page, "both-1")).to_contain_text("approved by olga and grace")
    until(lambda: len(bound(sandbox, "both-")) == 2, "the gang is bound")
    assert bound(sandbox, "pair") == []
    words = product.rows(
        "select verdict, username from dashboard_decision where run_id = ? order by id", run.id
    )
    assert [(word["verdict"], word["username"]) for word in words] == [
        *[("approve", "olga")] * 2, *[("revoke", "olga")] * 2, *[("approve", "olga")] * 2,
        *[("approve", "grace")] * 2,
    ]  # fmt: skip


def test_both_click_one_is_first_the_other_reads_who_and_when(
    product: Product, visit: Visit
) -> None:
    run = start(product, "race")
    sandbox = product.sandbox(run)
    sandbox.create_all([*nodes(1), asking("prize")])
    # The browser writes the answer 409 into its console.
    olga, grace = (look(visit, product, run, name, tolerant=True) for name in ("olga", "grace"))
    under_way: list[Route] = []
    for page in (olga, grace):
        page.route("**/waiting/decide", lambda route: under_way.append(route))
    yes = press(olga, "Approve default/prize-000")
    no = press(grace, "Deny default/prize-000")

    # Both words are on their way before either arrives.
    yes.get_by_role("button", name="Approve", exact=True).click()
    no.get_by_role("button", name="Deny", exact=True).click()
    until(lambda: olga.evaluate("1") and len(under_way) == 2, "both have clicked")
    for route in under_way:
        route.continue_()

    until(lambda: olga.locator("dialog[open]").count() + grace.locator("dialog[open]").count() == 1,
          "one dialog closes, the other stays")  # fmt: skip
    (wait,) = until(lambda: product.waits(run, "allowed", "rejected"), "the wait is over")
    first = wait["decision_user"]
    assert {"olga": "allowed", "grace": "rejected"}[first] == wait["state"]
    loser, word = (grace, "approved") if first == "olga" else (olga, "denied")
    told = loser.get_by_role("dialog").get_by_role("alert")
    expect(told).to_contain_text(re.compile(rf"Already {word} by {first} at \d{{4}}-\d\d-\d\d "))
    expect(loser.get_by_role("dialog").get_by_role("button")).to_have_text(["Close"])
    for page in (olga, grace):
        expect(ended(page, "prize-000")).to_contain_text(f"{word} by {first}")
    until(lambda: bool(bound(sandbox)) == (first == "olga"), "what was decided first is done")


def test_a_dialog_tells_of_the_word_that_comes_before_its_own(
    product: Product, visit: Visit
) -> None:
    run = start(product, "overtaken")
    product.sandbox(run).create_all([*nodes(1), *gang("slow", 2)])
    olga, grace = (look(visit, product, run, name) for name in ("olga", "grace"))
    dialog = press(grace, "Deny the gang default/slow")

    confirm(olga, "Approve the gang default/slow", "Approve")

    told = dialog.get_by_role("alert")
    expect(told).to_contain_text(re.compile(rf"default/slow-[01] was approved by olga {AT}"))
    expect(dialog.get_by_role("button", name="Deny")).to_have_count(0)
    dialog.get_by_role("button", name="Close").click()
    expect(dialog).to_be_hidden()


def test_time_runs_out_while_people_look(product: Product, visit: Visit) -> None:
    run = start(product, "expiry", {"timeoutSeconds": SHORT_SECONDS})
    sandbox = product.sandbox(run)
    sandbox.create_all(nodes(1))
    olga = look(visit, product, run, "olga")
    grace = look(visit, product, run, "grace", tolerant=True)
    sandbox.create_all(gang("late", 2))

    # One has the dialog open; the other's click is on its way, and arrives when time is over.
    dialog = press(olga, "Approve the gang default/late")
    expect(dialog).to_contain_text(re.compile(r"\d s left, then it is denied"))
    under_way: list[Route] = []
    grace.route("**/waiting/decide", lambda route: under_way.append(route))
    hers = press(grace, "Approve the gang default/late")
    hers.get_by_role("button", name="Approve", exact=True).click()
    until(lambda: grace.evaluate("1") and under_way, "the click is on its way")

    over = re.compile(rf"default/late-[01] (timed out|was rejected) {AT}")
    expect(dialog.get_by_role("alert")).to_contain_text(over)
    expect(dialog.get_by_role("button")).to_have_text(["Close"])
    dialog.get_by_role("button", name="Close").click()
    under_way[0].continue_()
    # The server's own answer: which pod, what happened to it, and when.
    late = re.compile(
        r"Too late: default/late-[01] (has timed out|was rejected) .*at [\d-]+ \d\d:\d\d"
    )
    expect(hers.get_by_role("alert")).to_contain_text(late)
    expect(hers.get_by_role("button")).to_have_text(["Close"])
    for page in (olga, grace):
        for number in range(2):
            expect(ended(page, f"late-{number}")).to_have_count(1)
        # Each has a deadline of its own: who is not over it loses its gang.
        expect(page.locator(".ended-row", has_text="timed out").first).to_be_visible()
    assert bound(sandbox) == []
    ends = {(row["state"], row["decision_user"]) for row in product.waits(run)}
    assert ends <= {("timed_out", ""), ("rejected", "")}, ends


def test_an_approval_of_the_gang_covers_the_member_that_comes_later(
    product: Product, visit: Visit
) -> None:
    coscheduling = {"permitWaitingTimeSeconds": 300, "podGroupRejectPercentage": 100}
    run = start(product, "later", {}, coscheduling=coscheduling)
    sandbox = product.sandbox(run)
    sandbox.create_all([*nodes(1, cpu="2"), *gang("grow", 3, cpu="1")])
    page = look(visit, product, run, "olga")
    group = page.locator(".gang", has_text="default/grow")
    expect(group).to_contain_text("2 of 3 have a node so far")

    confirm(page, "Approve the gang default/grow", "Approve")
    expect(group).to_contain_text("approved by olga, later members too")
    expect(page.locator(".wait").first).to_contain_text("Coscheduling · approved by olga")
    dialog = press(page, "Take back the approval of the gang default/grow")
    expect(fact(dialog, "Approved so far")).to_contain_text("for the whole gang, later members too")
    dialog.get_by_role("button", name="Take back", exact=True).click()
    expect(dialog).to_be_hidden()
    expect(group).not_to_contain_text("approved by olga")
    confirm(page, "Approve the gang default/grow", "Approve")
    expect(group).to_contain_text("approved by olga, later members too")

    # Room for the third: it waits under the approval that is there, and all are bound.
    (more,) = nodes(2)[1:]
    sandbox.create("Node", more)
    until(lambda: len(bound(sandbox, "grow-")) == 3, "the whole gang is bound")
    for number in range(3):
        expect(ended(page, f"grow-{number}")).to_contain_text("approved by olga")


def test_a_viewer_sees_all_and_can_say_nothing(product: Product, visit: Visit) -> None:
    run = start(product, "viewed")
    product.sandbox(run).create_all([*nodes(1), *gang("shown", 2)])
    page = look(visit, product, run, "viewer", tolerant=True)
    expect(page.locator(".gang")).to_contain_text("2 of 2 have a node")
    for word in ("Approve", "Deny", "Take back"):
        expect(page.get_by_role("button", name=word)).to_have_count(0)
    expect(page.get_by_role("checkbox")).to_have_count(0)

    dialog = press(page, "Details of the gang default/shown")
    expect(fact(dialog, "Asked for by")).to_have_text("ada@example.org")
    expect(dialog.get_by_role("button")).to_have_text(["Close"])
    dialog.get_by_role("button", name="Close").click()

    # A POST with everything that a page would send, and one without the token.
    (wait, _) = product.waits(run, "waiting")
    for body in ({"pods": [wait["id"]]}, {"pod_group": "default/shown"}):
        for token in (True, False):
            assert forge(page, run, {**body, "verdict": "approve"}, token) == 403
    assert {row["state"] for row in product.waits(run)} == {"waiting"}
    assert product.rows("select id from dashboard_decision where run_id = ?", run.id) == []


def forge(page: Page, run: Run, body: Json, with_token: bool) -> int:
    """The status of a POST that the page itself would never send."""
    status: int = page.evaluate(
        """async ([path, body, withToken]) => {
            const headers = { "Content-Type": "application/json" };
            const token = document.querySelector('meta[name="csrf-token"]').content;
            if (withToken) headers["X-CSRFToken"] = token;
            const answer = await fetch(path, { method: "POST", headers, body });
            return answer.status;
        }""",
        [f"/api/runs/{run.id}/waiting/decide", json.dumps(body), with_token],
    )
    return status
