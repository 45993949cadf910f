"""Lists of ten thousand: how soon the waiting page shows them, what a frame and scrolling cost."""

from __future__ import annotations

import time
from argparse import ArgumentParser, Namespace
from typing import Any

from playwright.sync_api import Page

from scripts.measure import browser

#: Moves the list a little in each animation frame; the milliseconds between frames.
SCROLL = """([selector, frames]) => new Promise((resolve) => {
  const list = document.querySelector(selector);
  const step = (list.scrollHeight - list.clientHeight) / frames;
  const times = [];
  let last = performance.now();
  const move = (now) => {
    times.push(now - last);
    last = now;
    list.scrollTop += step;
    if (times.length <= frames) requestAnimationFrame(move);
    else resolve(times.slice(1));
  };
  requestAnimationFrame(move);
})"""
#: At 60 Hz a frame is there every 16.7 ms; where the next came later than this, one was missed.
MISSED_MS = 25.0


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--frames", type=int, default=300)


def run(options: Namespace) -> dict[str, Any]:
    """Milliseconds; ``open_s``: from the address to rows on the screen, with an answering API.

    ``update_ms``: script of one frame that changes 20 rows; ``scroll_ms``: between animation
    frames while the whole list goes by (16.7: none is missed); ``elements``: rows in the document.
    """
    browser.set_up_django()
    with browser.chromium() as chromium:
        return {
            "rows": options.rows,
            "waiting": _waiting(browser.new_page(chromium), options),
            "queues": _queues(browser.new_page(chromium), options),
        }


def scroll(page: Page, selector: str, frames: int) -> dict[str, Any]:
    """The times between frames while a list goes by, and how many frames were missed."""
    times: list[float] = page.evaluate(SCROLL, [selector, frames])
    return {**browser.figures(times), "missed": sum(ms > MISSED_MS for ms in times)}


def _waiting(page: Page, options: Namespace) -> dict[str, Any]:
    from tests.browser import fake_data
    from tests.browser.fake_site import FakeSite

    site = FakeSite(page)
    rows = [fake_data.waiting_row(i + 1, commit_seq=1) for i in range(options.rows)]

    def waiting(query: dict[str, str]) -> dict[str, Any]:
        after, limit = int(query.get("after", 0)), int(query["limit"])
        part = rows[after : after + limit]
        more = part[-1]["id"] if after + limit < len(rows) else None
        return {**fake_data.waiting_frame(part), "more": more, "open": len(rows)}

    site.answers["waiting"] = waiting
    began = time.monotonic()
    site.open("/runs/1/waiting/")
    page.wait_for_selector(".wait")
    opened = time.monotonic() - began
    page.get_by_text(f"{options.rows:,} pods").wait_for()
    while "loaded so far" in page.locator("#waiting-note").inner_text():
        page.wait_for_timeout(10)
    complete = time.monotonic() - began
    return {
        "open_s": round(opened, 2),
        "complete_s": round(complete, 2),
        "elements": page.locator(".wait").count(),
        "update_ms": _updates(page, site, rows, options.frames),
        "scroll_ms": scroll(page, "#waiting-list", options.frames),
    }


def _queues(page: Page, options: Namespace) -> dict[str, Any]:
    """Rows beyond the first hundred are asked for where the list rests; a frame comes meanwhile."""
    from tests.browser import fake_data
    from tests.browser.fake_site import FakeSite

    site = FakeSite(page)
    depths = {"active": options.rows, "backoff": 0, "unschedulable": options.rows, "gated": 0}

    def queues(query: dict[str, str]) -> dict[str, Any]:
        if "queue" not in query:
            return fake_data.queues_frame(depths)
        first, queue = int(query["offset"]), query["queue"]
        last = min(first + int(query["limit"]), depths[queue])
        rows = [fake_data.queue_row(queue, i + 1) for i in range(first, last)]
        return {"seq": 100, "queue": queue, "total": depths[queue], "rows": rows}

    site.answers["queues"] = queues
    began = time.monotonic()
    site.open("/runs/1/queues/")
    page.get_by_text("default/active-pod-00001").wait_for()
    opened = time.monotonic() - began
    active = '[data-queue="active"] [data-part="list"]'
    return {
        "open_s": round(opened, 2),
        "elements": page.locator(".queue-row").count(),
        "scroll_ms": scroll(page, active, options.frames),
    }


def _updates(page: Page, site: Any, rows: list[dict[str, Any]], frames: int) -> dict[str, Any]:
    from tests.browser import fake_data

    page.evaluate("window.__painted.length = 0")
    for number in range(frames):
        seq = 101 + number
        state = "allowed" if number % 2 else "sent"
        some = rows[number // 2 * 20 : number // 2 * 20 + 20]
        changed = [{**row, "state": state, "commit_seq": seq, "resolved_at": seq} for row in some]
        site.send(fake_data.waiting_frame(changed, seq=seq, start=seq - 1))
        page.evaluate("(count) => window.__reached(count)", number + 1)
    return browser.figures([one["drawMs"] for one in page.evaluate("window.__painted")][5:])
