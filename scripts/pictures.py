"""The pictures of README and docs, taken anew: ``python -m scripts.pictures --trace FOLDER``.

A demo of its own replays the trace for the heatmap. In a second sandbox gangs gather until some
wait for approval; one of two people approves one of them, and the waiting page and the dialog of
the other person are taken. It takes a few minutes; what is in the pictures differs each time.
"""

from __future__ import annotations

import re
import socket
import tempfile
from argparse import ArgumentParser
from collections.abc import Iterable
from pathlib import Path

from playwright.sync_api import Browser, Page, expect

from scripts.measure import browser
from scripts.measure.start import URL, demo

IMAGES = browser.ROOT / "docs" / "images"
USER = re.compile(r"USER (\S+) PASSWORD (\S+)")
SANDBOX = "gpu-cluster"
#: Of the sandbox: gangs gather in a minute, and have minutes left when the pictures are taken.
SPEED = "2"
GANGS = 2
PATIENCE_MS = 300_000
HEATMAP_CYCLES = 300
TERMS = "\n          approvers: 2\n"


def main() -> None:
    parser = ArgumentParser(prog="python -m scripts.pictures", description=__doc__)
    parser.add_argument("--trace", required=True, metavar="FOLDER", help="as of make demo TRACE=")
    parser.add_argument("--out", type=Path, default=IMAGES, metavar="FOLDER", help="(docs/images)")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    trace = Path(options.trace).resolve()
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    with (
        tempfile.TemporaryDirectory() as data,
        browser.chromium() as chromium,
        demo(data, port, f"TRACE={trace}") as output,
    ):
        address, passwords = _greeting(output)
        page = browser.new_page(chromium, collect=False)
        page.goto(address)
        _heatmap(page, options.out)
        base = _sandbox(page)
        other = _person(chromium, base, "approver", passwords["approver"])
        _waiting(page, other, base, options.out)


def _greeting(lines: Iterable[str]) -> tuple[str, dict[str, str]]:
    """The address that logs in, and the passwords."""
    address, passwords = "", {}
    for line in lines:
        if found := URL.search(line):
            address = found.group(1)
        if found := USER.search(line):
            passwords[found.group(1)] = found.group(2)
        if "Ctrl-C" in line:
            return address, passwords
    raise SystemExit("the demo ended without an address")


def _heatmap(page: Page, out: Path) -> None:
    page.get_by_role("link", name="Heatmap").click()
    page.wait_for_function(
        "least => Number(document.querySelector('#heat-sequence')?.value) >= least",
        arg=HEATMAP_CYCLES,
        timeout=PATIENCE_MS,
    )
    # A node under the pointer, so that its scores stand beside the map.
    page.locator("#heat-marks").hover(position={"x": 8, "y": 40})
    expect(page.locator(".inspector-table tbody")).not_to_contain_text("…")
    page.screenshot(path=out / "heatmap.png")


def _sandbox(page: Page) -> str:
    """The address of the run of a new sandbox whose gangs need two people."""
    page.goto(page.url.split("/runs/")[0])
    form = page.locator("#sandbox-form")
    form.locator("[name=name]").fill(SANDBOX)
    form.locator("[name=speed]").select_option(SPEED)
    form.get_by_role("button", name="Start").click()
    page.wait_for_url("**/runs/*/")
    base = page.url
    page.goto(f"{base}configuration/")
    text = page.locator(".editor-text")
    expect(text).not_to_have_value("")
    text.fill(text.input_value().rstrip() + TERMS)
    page.get_by_role("button", name="Apply").click()
    expect(page.locator("#config-state")).to_have_text("Version 2, in use", timeout=30_000)
    return base


def _person(chromium: Browser, base: str, name: str, password: str) -> Page:
    page = browser.new_page(chromium, collect=False)
    page.goto(base)
    page.get_by_label("User name").fill(name)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url(base)
    return page


def _waiting(page: Page, other: Page, base: str, out: Path) -> None:
    """Two gangs, the second of which another person has approved."""
    for one in (page, other):
        one.goto(f"{base}waiting/")
    offers = other.get_by_role("button", name=re.compile("^Approve the gang"))
    expect(offers.nth(GANGS - 1)).to_be_visible(timeout=PATIENCE_MS)
    offers.nth(GANGS - 1).click()
    dialog = other.get_by_role("dialog")
    dialog.get_by_label(re.compile("Comment")).fill("the budget is there")
    dialog.get_by_role("button", name="Approve").click()
    approved = page.locator(".gang", has_text="approved by approver")
    expect(approved).to_be_visible()
    page.screenshot(path=out / "waiting.png")
    approved.get_by_role("button", name=re.compile("^Approve")).click()
    expect(page.get_by_role("dialog")).to_contain_text("the budget is there")
    page.screenshot(path=out / "approval.png")


if __name__ == "__main__":
    main()
