"""How long `make demo` takes, from the command to a live page that shows a decision."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import tempfile
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from playwright.sync_api import Page

from scripts.measure import browser

URL = re.compile(r"URL (\S+)")
STOP_SECONDS = 20


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--starts", type=int, default=3)
    parser.add_argument("--fresh", action="store_true", help="an empty data folder for each start")


def run(options: Namespace) -> dict[str, Any]:
    """Seconds since the command began, of each start.

    ``url``: the address is printed; ``live``: the page there is connected; ``decision``: it shows
    one. The browser is open before; .venv is ready (`make demo` has been run once).
    """
    starts = []
    with tempfile.TemporaryDirectory() as folder, browser.chromium() as chromium:
        if not options.fresh:
            _one_start(folder, browser.new_page(chromium))
        for number in range(options.starts):
            data = str(Path(folder, str(number))) if options.fresh else folder
            page = browser.new_page(chromium)
            starts.append(_one_start(data, page))
            page.context.close()
    return {
        "fresh": options.fresh,
        "starts": starts,
        "decision_s": browser.figures([one["decision"] for one in starts]),
    }


def _one_start(data: str, page: Page) -> dict[str, float]:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    began = time.monotonic()
    with demo(data, port) as output:
        times = {}
        for line in output:
            if found := URL.search(line):
                break
        else:
            raise SystemExit("make demo ended without an address")
        times["url"] = round(time.monotonic() - began, 2)
        page.goto(found.group(1))
        page.wait_for_selector('#link-state[data-status="connected"]')
        times["live"] = round(time.monotonic() - began, 2)
        page.wait_for_selector("#latest > *", timeout=60_000)
        times["decision"] = round(time.monotonic() - began, 2)
        return times


@contextmanager
def demo(data: str, port: int, *more: str) -> Iterator[IO[str]]:
    """`make demo` with its data in ``data``, and ``more`` such as TRACE=FOLDER; what it prints."""
    process = subprocess.Popen(
        ["make", "-s", "demo", f"PORT={port}", *more],
        cwd=browser.ROOT,
        env={**os.environ, "KUBESCHED_DATA_DIR": data},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    try:
        yield process.stdout
    finally:
        os.killpg(process.pid, signal.SIGINT)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
        process.stdout.close()
