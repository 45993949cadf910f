"""A real Chromium for measurements, and the figures that come out of them."""

from __future__ import annotations

import os
import shutil
import statistics
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).resolve().parents[2]
CHROMIUMS = ("chromium", "chromium-browser", "google-chrome")
#: Quiet: what a fresh profile would fetch and sync has nothing to do with the pages.
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
WIDTH, HEIGHT = 1280, 900

#: Keeps what pages say of their drawing (static/js/lib/painted.js).
COLLECT = """
  window.__painted = [];
  document.addEventListener("kubesched:painted", (event) => window.__painted.push(event.detail));
  window.__reached = (count) => new Promise((resolve) => {
    const look = () => (window.__painted.length >= count ? resolve() : setTimeout(look, 1));
    look();
  });
"""


@contextmanager
def chromium(*more: str) -> Iterator[Browser]:
    """The machine's own Chromium, else the one that Playwright brought."""
    found = next(filter(None, map(shutil.which, CHROMIUMS)), None)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=found, args=[*ARGUMENTS, *more])
        try:
            yield browser
        finally:
            browser.close()


def new_page(browser: Browser, *, scale: float = 1.0, collect: bool = True) -> Page:
    """A page of a laptop's size that keeps what is painted in ``window.__painted``."""
    context = browser.new_context(
        viewport={"width": WIDTH, "height": HEIGHT}, device_scale_factor=scale
    )
    page = context.new_page()
    if collect:
        page.add_init_script(COLLECT)
    return page


def set_up_django() -> None:
    """For templates of pages that no server renders."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    os.environ.setdefault("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
    import django

    django.setup()


def share(values: Sequence[float], part: float) -> float:
    """The value below which ``part`` (0..1) of ``values`` lie; the highest where there are few."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


def figures(values: Sequence[float]) -> dict[str, Any]:
    """Median, 95th percentile and highest, rounded."""
    if not values:
        return {"count": 0}
    return {
        "count": len(values),
        "median": round(statistics.median(values), 2),
        "p95": round(share(values, 0.95), 2),
        "max": round(max(values), 2),
    }
