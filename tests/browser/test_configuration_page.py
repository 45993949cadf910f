"""The configuration page: what it shows, what it sends, and what it does when things go wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from dashboard import configuration
from scheduler_core.config import load_configuration
from scheduler_core.plugins.registry import in_tree_registry
from tests.browser import fake_data
from tests.browser.fake_site import FakeSite

PATH = "/runs/1/configuration/"
DEMO = (Path(__file__).resolve().parents[2] / "examples/demo.yaml").read_text(encoding="utf-8")
OTHER = DEMO.replace("timeoutSeconds: 900", "timeoutSeconds: 300")
HOSTILE = '<img src=x onerror="document.title=1">'


class FakeConfiguration:
    """Answers of /config: a run whose configuration is changed by its own rules."""

    def __init__(self, site: FakeSite) -> None:
        self._site = site
        self._seen = 0
        self.body: dict[str, Any] = {
            "run": 1, "seq": 3, "text": DEMO, "version": 3, "applied_version": 3, "error": "",
            "completed_version": 3, "changed_by": "olga", "changed_at": fake_data.NOW,
            "faults": [], "history": [change(3), change(2, outcome="too_late")],
            **completed(DEMO),
        }  # fmt: skip
        #: What the next POST is answered, instead of what it asks for.
        self.refusals: list[tuple[int, dict[str, Any]]] = []
        site.answers["config"] = self._answer

    def _answer(self, query: dict[str, str]) -> Any:
        posts = [body for path, body in self._site.posts if path == "config"]
        if len(posts) == self._seen:
            return self.body
        self._seen = len(posts)
        if self.refusals:
            return self.refusals.pop(0)
        if posts[-1].get("validate_only"):
            return completed(posts[-1]["text"])
        self.write(posts[-1]["text"], "ada", posts[-1]["comment"])
        return self.body

    def write(self, text: str, by: str, comment: str = "") -> None:
        """Somebody applied a text; the scheduler has not taken it up."""
        version = self.body["version"] + 1
        row = change(version, by=by, comment=comment, outcome="sent")
        history = [row, *self.body["history"]]
        self.body |= {"text": text, "version": version, "seq": self.body["seq"] + 1}
        self.body |= {"changed_by": by, "history": history}

    def take_up(self) -> None:
        """The scheduler uses it from now on."""
        version = self.body["version"]
        self.body |= {"applied_version": version, "completed_version": version, "error": ""}
        self.body |= {"seq": self.body["seq"] + 1, **completed(self.body["text"])}
        self.body["history"][0] |= {"outcome": "applied", "outcome_label": "Applied"}

    def tell(self, **columns: Any) -> None:
        """The run's frame."""
        body = self.body
        versions = {"config_version": body["version"], "config_error": body["error"]}
        versions["applied_config_version"] = body["applied_version"]
        self._site.send(fake_data.run_frame(seq=body["seq"], **versions, **columns))


def completed(text: str) -> dict[str, Any]:
    return configuration.completed(load_configuration(text, in_tree_registry()))


def change(version: int, **columns: Any) -> dict[str, Any]:
    outcome = columns.get("outcome", "applied")
    labels = {"applied": "Applied", "sent": "Sent, not applied yet", "too_late": "Too late"}
    return {
        "version": version, "by": "olga", "at": fake_data.NOW, "comment": "Gangs hurry now",
        "outcome": outcome, "outcome_label": labels[outcome], "message": "",
        "diff": configuration.difference(DEMO, OTHER), **columns,
    }  # fmt: skip


@pytest.fixture
def site(page: Page) -> Iterator[FakeSite]:
    site = FakeSite(page)
    yield site
    page.wait_for_timeout(0)
    assert site.problems == []


@pytest.fixture
def config(site: FakeSite) -> FakeConfiguration:
    return FakeConfiguration(site)


def text(page: Page) -> Any:
    return page.locator(".editor-text")


def said(page: Page) -> Any:
    return page.locator("#config-said")


def button(page: Page, name: str) -> Any:
    return page.get_by_role("button", name=name, exact=True)


# --- looking ------------------------------------------------------------------------------------


def test_what_is_in_use(site: FakeSite, config: FakeConfiguration) -> None:
    site.open(PATH)
    page = site.page
    expect(page.locator("#config-state")).to_have_text("Version 3, in use")
    expect(text(page)).to_have_value(DEMO)
    expect(page.locator(".editor-lines > li")).to_have_count(DEMO.count("\n") + 1)
    expect(page.locator("#completed")).to_contain_text("percentageOfNodesToScore: 100")
    row = page.get_by_role("row", name=re.compile("^score"))
    expect(row.get_by_role("listitem").first).to_have_text("TaintToleration× 3")
    expect(page.get_by_role("row", name=re.compile("^permit"))).to_contain_text("ManualApproval")
    first = page.locator(".change").first
    expect(first).to_contain_text("Version 3 by olga")
    first.get_by_text("What changed").click()
    expect(first.locator(".diff-added")).to_have_text("+          timeoutSeconds: 300")


def test_a_viewer_reads_only(site: FakeSite, config: FakeConfiguration) -> None:
    site.context |= {"may_control": False}
    site.open(PATH)
    expect(text(site.page)).to_have_value(DEMO)
    expect(text(site.page)).to_have_attribute("readonly", "")
    expect(site.page.get_by_text("You may look.")).to_be_visible()
    for name in ("Validate", "Apply", "Discard my edits"):
        expect(button(site.page, name)).to_have_count(0)
    config.write(OTHER, "otto")
    config.tell()
    expect(text(site.page)).to_have_value(OTHER)


@pytest.mark.parametrize("may_control", [True, False], ids=["editor", "viewer"])
def test_page_fits_its_window(site: FakeSite, config: FakeConfiguration, may_control: bool) -> None:
    site.context |= {"may_control": may_control}
    config.body["text"] += "# " + "long " * 200
    site.open(PATH)
    expect(site.page.locator(".points")).to_be_visible()
    for width in (1280, 820, 390):
        site.page.set_viewport_size({"width": width, "height": 844})
        site.page.wait_for_timeout(50)
        wide = site.page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert wide <= 0, f"scrolls sideways by {wide} px at {width}"


def test_a_configuration_that_cannot_be_read_is_no_empty_page(
    site: FakeSite, config: FakeConfiguration
) -> None:
    fault = {"path": "parallelism", "message": "Invalid value: 0", "line": 3}
    config.body |= {"completed": "", "profiles": [], "faults": [fault]}
    site.open(PATH)
    expect(site.page.locator("#completed")).to_have_text("# parallelism: Invalid value: 0")


def test_a_server_that_fails_can_be_asked_again(site: FakeSite, config: FakeConfiguration) -> None:
    answer = site.answers["config"]
    site.answers["config"] = (500, {})
    site.open(PATH)
    notice = site.page.locator("#notices")
    expect(notice).to_contain_text("The server failed")
    site.answers["config"] = answer
    notice.get_by_role("button", name="Try again").click()
    expect(text(site.page)).to_have_value(DEMO)


def test_words_of_others_are_text(site: FakeSite, config: FakeConfiguration) -> None:
    rows = [change(3, by=HOSTILE, comment=HOSTILE, message=HOSTILE, diff=f"+{HOSTILE}")]
    config.body |= {"changed_by": HOSTILE, "history": rows, "error": HOSTILE}
    config.body["profiles"][0] |= {"name": HOSTILE}
    config.body["profiles"][0]["points"][0]["plugins"] = [{"name": HOSTILE, "weight": None}]
    site.open(PATH)
    expect(site.page.locator(".change-comment")).to_have_text(HOSTILE)
    expect(site.page.locator(".diff")).to_have_text(f"+{HOSTILE}")
    expect(site.page.locator(".config-profile h4")).to_have_text(HOSTILE)
    expect(site.page.locator("main img")).to_have_count(0)


# --- changing -----------------------------------------------------------------------------------


def test_a_change_from_the_edit_to_its_use(site: FakeSite, config: FakeConfiguration) -> None:
    site.open(PATH)
    page = site.page
    expect(button(page, "Apply")).to_be_disabled()
    text(page).fill(OTHER)
    page.get_by_label("Comment").fill("hurry")
    button(page, "Apply").click()
    assert site.posts == [("config", {"text": OTHER, "comment": "hurry", "version": 3})]
    expect(said(page)).to_have_text(
        "Version 4 is written; the scheduler takes it up with its next cycle."
    )
    state = page.locator("#config-state")
    expect(state).to_have_text("Version 4 is on its way to the scheduler; version 3 is in use")
    expect(page.locator("#completed")).to_contain_text("timeoutSeconds: 900")
    config.take_up()
    config.tell()
    expect(state).to_have_text("Version 4, in use")
    expect(page.locator("#completed")).to_contain_text("timeoutSeconds: 300")
    expect(page.locator(".change").first).to_contain_text("hurry")
    expect(page.locator(".change").first).to_contain_text("Applied")
    expect(page.get_by_label("Comment")).to_have_value("")
    expect(button(page, "Apply")).to_be_disabled()


def test_apply_with_the_keyboard(site: FakeSite, config: FakeConfiguration) -> None:
    site.open(PATH)
    text(site.page).fill(OTHER)
    text(site.page).press("Tab")
    expect(site.page.get_by_label("Comment")).to_be_focused()
    site.page.keyboard.press("Enter")
    expect(said(site.page)).to_contain_text("Version 4 is written")


def test_validation_shows_what_a_text_comes_to(site: FakeSite, config: FakeConfiguration) -> None:
    site.open(PATH)
    page = site.page
    text(page).fill(OTHER)
    button(page, "Validate").click()
    expect(said(page)).to_have_text("No faults. Nothing was changed.")
    expect(page.locator("#completed-title")).to_have_text("Completed, as your text comes to")
    expect(page.locator("#completed")).to_contain_text("timeoutSeconds: 300")
    assert site.posts == [("config", {"text": OTHER, "validate_only": True})]
    text(page).press("x")
    expect(page.locator("#completed-title")).to_have_text("Completed, as the scheduler uses it")
    expect(page.locator("#completed")).to_contain_text("timeoutSeconds: 900")
    button(page, "Discard my edits").click()
    expect(text(page)).to_have_value(DEMO)


def test_faults_are_listed_and_their_lines_found(site: FakeSite, config: FakeConfiguration) -> None:
    path, message = "profiles[0].schedulerName", 'Invalid value: "Demo": a lowercase RFC 1123 name'
    errors = [
        {"path": path, "message": message, "line": 9},
        {"path": "", "message": HOSTILE, "line": None},
    ]
    config.refusals = [(400, {"error": "2 faults", "errors": errors})]
    site.open(PATH)
    page = site.page
    text(page).fill(OTHER)
    button(page, "Apply").click()
    faults = page.locator("#faults")
    expect(faults).to_contain_text("2 faults; nothing was changed")
    expect(faults.locator(".fault").first).to_contain_text(path)
    expect(faults.locator(".fault").nth(1)).to_contain_text(HOSTILE)
    expect(page.locator(".line-faulty")).to_have_text("9")
    faults.get_by_role("button", name="line 9").click()
    expect(text(page)).to_be_focused()
    selected = page.evaluate("getSelection().toString()")
    assert selected == "  - schedulerName: default-scheduler"
    expect(text(page)).to_have_value(OTHER)
    button(page, "Apply").click()
    expect(faults).to_be_hidden()
    expect(page.locator(".line-faulty")).to_have_count(0)


def test_what_the_scheduler_refuses_is_said(site: FakeSite, config: FakeConfiguration) -> None:
    site.open(PATH)
    state = site.page.locator("#config-state")
    expect(state).to_have_text("Version 3, in use")
    config.write(OTHER, "otto")
    config.body |= {"error": "plugin X does not exist", "seq": 9}
    config.tell()
    expect(state).to_have_text(
        "Version 4 could not be used, version 3 is in use: plugin X does not exist"
    )


def test_a_stopped_scheduler_takes_it_up_later(site: FakeSite, config: FakeConfiguration) -> None:
    site.answers["run"] = fake_data.run_frame(state="stopped", desired_state="stopped")
    config.write(OTHER, "otto")
    site.open(PATH)
    expect(site.page.locator("#config-state")).to_have_text(
        "Version 4 is used from the next start on; version 3 is in use"
    )


# --- two people at once -------------------------------------------------------------------------


def test_a_text_under_edit_is_not_lost_when_somebody_is_quicker(
    site: FakeSite, config: FakeConfiguration
) -> None:
    site.open(PATH)
    page = site.page
    mine = OTHER + "# mine\n"
    text(page).fill(mine)
    config.write(OTHER, "otto")
    config.tell()
    conflict = page.locator("#conflict")
    expect(conflict).to_contain_text("Version 4 by otto")
    expect(text(page)).to_have_value(mine)
    expect(button(page, "Apply")).to_be_disabled()
    conflict.get_by_role("button", name="Keep my text").click()
    expect(said(page)).to_have_text("Apply replaces version 4 by your text.")
    button(page, "Apply").click()
    expect(said(page)).to_contain_text("Version 5 is written")
    assert site.posts[-1][1]["version"] == 4


def test_a_conflict_that_the_page_had_not_heard_of(
    site: FakeSite, config: FakeConfiguration
) -> None:
    site.open(PATH)
    page = site.page
    text(page).fill(OTHER + "# mine\n")
    config.write(OTHER, "otto")
    words = "The configuration was changed to version 4 by otto at 10:00, after you had begun."
    config.refusals = [(409, {"error": words, "version": 4})]
    button(page, "Apply").click()
    conflict = page.locator("#conflict")
    expect(conflict).to_contain_text("otto")
    conflict.get_by_role("button", name="Show the new version").click()
    expect(text(page)).to_have_value(OTHER)
    expect(conflict).to_be_hidden()
