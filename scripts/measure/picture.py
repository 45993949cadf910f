"""From a decision to its picture, in a real browser on the machine that decides."""

from __future__ import annotations

import time
from argparse import ArgumentParser, Namespace
from typing import Any

from scripts.measure import browser
from scripts.measure.start import URL, demo

PROMISED_MS = 250

#: Keeps the moment at which each decision's line was in a picture that was painted first:
#: {sequence: [ended, painted, in the window]}, seconds. Its line is an element of the document, and
#: lies in the window or just below it.
WATCH = """
  window.__lines = {};
  window.__known = {};
  document.addEventListener("kubesched:painted", ({ detail }) => {
    for (const row of detail.data?.cycles?.cycles ?? []) {
      window.__known[row.sequence] ??= row.started_at + row.duration_ms / 1000;
    }
    for (const link of document.querySelectorAll("#latest a, #decisions a")) {
      const sequence = link.pathname.match(/\\/cycles\\/(\\d+)\\/$/)?.[1];
      const { top, bottom } = link.getBoundingClientRect();
      if (!window.__known[sequence]) continue;
      const seen = bottom > 0 && top < innerHeight;
      window.__lines[sequence] ??= [window.__known[sequence], detail.at / 1000, seen];
    }
  });
"""


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--rate", type=float, default=200.0, help="pods that arrive per second")
    parser.add_argument("--nodes", type=int, default=1523)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--page", default="", help="of the run, e.g. cycles/ (default: overview)")
    parser.add_argument("--data", required=True, metavar="FOLDER", help="an empty data folder")


def run(options: Namespace) -> dict[str, Any]:
    """Milliseconds from the end of a scheduling cycle until its line is painted.

    ``told_per_s``: decisions that reached the page. ``lines``: those that got an element of the
    document; ``in_window``: those of them that lay in the window when they came (a page shows the
    newest, and a frame may bring more of them than there is room for).

    A demo with one sandbox whose pods arrive ``rate`` a second and run for a few seconds; the first
    ten seconds (the page opens, caches fill) are left out.
    """
    name = _make_sandbox(options)
    with browser.chromium() as chromium, demo(options.data, 0) as output:
        found = next(match for line in output if (match := URL.search(line)))
        page = browser.new_page(chromium, collect=False)
        page.add_init_script(WATCH)
        page.goto(found.group(1))
        base = found.group(1).split("/demo-login")[0]
        page.goto(f"{base}/runs/{name}/{options.page}")
        page.wait_for_selector('#link-state[data-status="connected"]')
        page.wait_for_timeout(10_000)
        page.evaluate("window.__lines = {}; window.__known = {}")
        began = time.time()
        page.wait_for_timeout(options.seconds * 1000)
        lines = page.evaluate("window.__lines")
        known = page.evaluate("window.__known")
    found = [
        ((shown - ended) * 1000, seen) for ended, shown, seen in lines.values() if ended > began
    ]
    return {
        "page": options.page or "overview",
        "asked_per_s": options.rate,
        "told_per_s": round(sum(ended > began for ended in known.values()) / options.seconds, 1),
        "lines": _figures([ms for ms, _ in found]),
        "in_window": _figures([ms for ms, seen in found if seen]),
    }


def _figures(times: list[float]) -> dict[str, Any]:
    within = sum(ms <= PROMISED_MS for ms in times) / max(1, len(times))
    return {**browser.figures(times), f"within_{PROMISED_MS}_ms": round(within, 4)}


def _make_sandbox(options: Namespace) -> int:
    """In the demo's own database, so that the demo takes it up when it starts; the run's number."""
    import os

    os.environ |= {
        "KUBESCHED_MODE": "demo",
        "KUBESCHED_DATA_DIR": options.data,
        "DJANGO_SETTINGS_MODULE": "kubesched_site.settings",
    }
    import django

    django.setup()
    from django.core.management import call_command
    from django.db import connections

    from dashboard.models import Sandbox
    from dashboard.sandboxes import create_sandbox

    call_command("migrate", verbosity=0)
    cluster, run = create_sandbox(name="stream", preset="empty")
    workload = {
        "kind": "synthetic",
        "preset": {
            "name": "stream", "nodes": options.nodes, "arrivals": options.rate,
            "run_seconds": 20.0, "most_pods": 20_000,
        },
    }  # fmt: skip
    Sandbox.objects.filter(cluster=cluster).update(workload=workload)
    connections.close_all()
    return run.pk
