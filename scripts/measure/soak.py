"""Pages left open under ten times the load: their heap and DOM nodes, after garbage collection."""

from __future__ import annotations

import statistics
import time
from argparse import ArgumentParser, Namespace
from typing import Any

from scripts.measure import browser

PATHS = {
    "overview": "/runs/1/",
    "decisions": "/runs/1/cycles/",
    "waiting": "/runs/1/waiting/",
    "queues": "/runs/1/queues/",
    "heatmap": "/runs/1/heatmap/",
}
FRAMES_PER_SECOND = 10
CYCLES_PER_FRAME = 50
MAPS = 40


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--settle", type=float, default=5.0, help="minutes before it counts")
    parser.add_argument("--every", type=float, default=30.0, help="seconds between two samples")
    parser.add_argument("--load", type=float, default=2000.0, help="decisions per second")
    parser.add_argument("--pages", nargs="+", choices=PATHS, default=list(PATHS))


def run(options: Namespace) -> dict[str, Any]:
    """Per page: samples ``[minute, MiB, nodes]``; what it had after the settling minutes, and last.

    Frames are those that the server would send at that load: ten a second with the newest 50
    decisions each, waits that come and end, queues and heatmaps that change.
    """
    browser.set_up_django()
    with browser.chromium("--js-flags=--expose-gc") as chromium:
        feeds = [_Feed(browser.new_page(chromium, collect=False), name) for name in options.pages]
        began = time.monotonic()
        sampled = began
        tick = 0
        while (now := time.monotonic()) - began < options.minutes * 60:
            tick += 1
            for feed in feeds:
                feed.send(tick, options.load / FRAMES_PER_SECOND)
            if now - sampled >= options.every:
                sampled = now
                for feed in feeds:
                    feed.sample((now - began) / 60)
            pause = began + tick / FRAMES_PER_SECOND - time.monotonic()
            feeds[0].page.wait_for_timeout(max(1.0, pause * 1000))
        return {
            "minutes": options.minutes,
            "frames": tick,
            "pages": {feed.name: feed.result(options.settle) for feed in feeds},
        }


class _Feed:
    """One page and what it is sent."""

    def __init__(self, page: Any, name: str) -> None:
        from dashboard import heatmap
        from scripts.measure.heatmap import make_maps
        from tests.browser import fake_data
        from tests.browser.fake_site import FakeSite

        self.page, self.name, self.data = page, name, fake_data
        self.site = FakeSite(page)
        self.samples: list[tuple[float, float, int]] = []
        self.sequence = 1000
        self.maps = make_maps(1523, 12, MAPS, 0.3) if name == "heatmap" else []
        self.encode = heatmap.encode_full
        if self.maps:
            names = [f"node-{i:05d}" for i in range(1523)]
            self.site.answers |= {
                "nodes": {"names": names},
                "cycles/latest/matrix": self.encode(self.maps[0]),
            }
        self.site.open(PATHS[name])
        page.wait_for_selector('#link-state[data-status="connected"]')
        self.devtools = page.context.new_cdp_session(page)
        self.devtools.send("HeapProfiler.enable")

    def send(self, tick: int, decisions: float) -> None:
        seq = 1000 + tick
        getattr(self, f"_{self.name}")(tick, seq, round(decisions))
        self.site.acks.clear()

    def _cycles(self, tick: int, seq: int, decisions: int) -> None:
        self.sequence += decisions
        shown = min(decisions, CYCLES_PER_FRAME)
        frame = self.data.cycles_frame(shown, seq=seq, first=self.sequence - shown)
        start = 0 if tick == 1 else seq - 1
        self.site.send({**frame, "from": start, "skipped": decisions - shown})

    _decisions = _cycles

    def _overview(self, tick: int, seq: int, decisions: int) -> None:
        self._cycles(tick, seq, decisions)
        if tick % FRAMES_PER_SECOND:
            return
        second = int(self.data.NOW) + tick // FRAMES_PER_SECOND
        frame = self.data.overview_frame(1523, seq=seq)
        points = {
            "throughput": [[second, 10 * decisions, 5, 0]],
            "depths": [[second, tick % 900, 30, 20, 5, 3, 8]],
        }
        self.site.send({**frame, **points, "from": 0})

    def _waiting(self, tick: int, seq: int, decisions: int) -> None:
        come = [
            self.data.waiting_row(10 * tick + i, commit_seq=seq, pod_group=f"ns/g{tick}")
            for i in range(10)
        ]
        end = {"state": "allowed", "commit_seq": seq, "resolved_at": seq, "pending": []}
        gone = [
            self.data.waiting_row(10 * (tick - 50) + i, **end)
            for i in range(10 if tick > 50 else 0)
        ]
        start = 0 if tick == 1 else seq - 1
        self.site.send(self.data.waiting_frame([*come, *gone], seq=seq, start=start))

    def _queues(self, tick: int, seq: int, decisions: int) -> None:
        depths = {"active": 9000 + tick % 1000, "backoff": tick % 90, "unschedulable": 900}
        frame = self.data.queues_frame({**depths, "gated": tick % 7}, seq=seq)
        for row in frame["active"]:
            row["uid"] = f"{tick}-{row['uid']}"
        self.site.send(frame)

    def _heatmap(self, tick: int, seq: int, decisions: int) -> None:
        shown = self.maps[tick % MAPS]
        changed = type(shown)(
            seq, {**shown.meta, "sequence": seq}, True, shown.normalized, shown.rejection
        )
        self.site.send(self.encode(changed))

    def sample(self, minute: float) -> None:
        self.devtools.send("HeapProfiler.collectGarbage")
        usage = self.devtools.send("Runtime.getHeapUsage")
        # Typed arrays lie outside the heap proper; an older Chromium does not tell of them.
        size = usage["usedSize"] + usage.get("backingStorageSize", 0)
        nodes = self.devtools.send("Memory.getDOMCounters")["nodes"]
        self.samples.append((round(minute, 2), round(size / 2**20, 2), nodes))

    def result(self, settle: float) -> dict[str, Any]:
        return {
            "samples": self.samples,
            **growth(self.samples, settle),
            "problems": self.site.problems,
        }


def growth(samples: list[tuple[float, float, int]], settle: float) -> dict[str, Any]:
    """Medians of as many minutes after the settling ones, and of the last ones: single samples vary
    with what the collector has left."""
    end = samples[-1][0] if samples else 0.0
    parts = {
        "settled": [sample for sample in samples if settle <= sample[0] < 2 * settle],
        "end": [sample for sample in samples if sample[0] > end - settle],
    }
    if end < 2 * settle:
        return {"settled": None, "end": None}
    return {
        name: {
            "heap_mib": round(statistics.median(sample[1] for sample in part), 2),
            "nodes": round(statistics.median(sample[2] for sample in part)),
        }
        for name, part in parts.items()
    }
