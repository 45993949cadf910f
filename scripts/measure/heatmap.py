"""How long one redraw of the heatmap takes: frame decoded, delta applied, map on the canvas."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any

import numpy as np

from dashboard.heatmap import Heatmap, encode_delta, encode_full
from scripts.measure import browser


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--plugins", type=int, default=15)
    parser.add_argument("--redraws", type=int, default=120)
    parser.add_argument("--scale", type=float, default=1.0, help="device pixels per CSS pixel")


def run(options: Namespace) -> dict[str, Any]:
    """Milliseconds of script per redraw, and until the picture has been painted.

    ``one``: one node's scores differ from frame to frame (a pod was placed, the next is alike);
    ``some``: a tenth of the nodes; ``all``: every score of every node (another kind of pod).
    """
    browser.set_up_django()
    result: dict[str, Any] = {
        "nodes": options.nodes,
        "plugins": options.plugins,
        "scale": options.scale,
    }
    with browser.chromium() as chromium:
        for name, part in (("one", 1 / options.nodes), ("some", 0.1), ("all", 1.0)):
            page = browser.new_page(chromium, scale=options.scale)
            result[name] = _redraws(page, options, part)
            page.context.close()
    return result


def _redraws(page: Any, options: Namespace, part: float) -> dict[str, Any]:
    from tests.browser.fake_site import FakeSite

    site = FakeSite(page, nodes=12)
    maps = make_maps(options.nodes, options.plugins, options.redraws, part)
    names = [f"node-{i:05d}" for i in range(options.nodes)]
    site.answers |= {"nodes": {"names": names}, "cycles/latest/matrix": encode_full(maps[0])}
    site.open("/runs/1/heatmap/")
    page.wait_for_selector("#heat:not([hidden])")
    drawn = None
    for count, matrix in enumerate(maps, 1):
        frame = None if drawn is None else encode_delta(matrix, drawn)
        site.send(frame or encode_full(matrix))
        page.evaluate("(count) => window.__reached(count)", count)
        drawn = matrix
    page.wait_for_timeout(50)
    assert site.problems == [], site.problems
    # The first ones compile the code that all others run.
    told = page.evaluate("window.__painted")[10:]
    return {
        "script_ms": browser.figures([one["drawMs"] for one in told]),
        "painted_ms": browser.figures([one["paintMs"] for one in told]),
    }


def make_maps(nodes: int, plugins: int, count: int, part: float) -> list[Heatmap]:
    """``count`` heatmaps in a row, in each of which ``part`` of the nodes get other scores."""
    random = np.random.default_rng(3)
    scores = random.integers(0, 101, (plugins, nodes)).astype(np.int8)
    rejection = np.where(random.random(nodes) < 0.2, random.integers(0, 4, nodes), -1)
    reasons = [["NodeResourcesFit", "Insufficient cpu", "Unschedulable"],
               ["TaintToleration", "untolerated taint", "UnschedulableAndUnresolvable"],
               ["NodeAffinity", "no match", "UnschedulableAndUnresolvable"],
               ["VolumeBinding", "no volume", "Unschedulable"]]  # fmt: skip
    maps = []
    for number in range(1, count + 1):
        scores, rejection = scores.copy(), rejection.astype(np.int16)
        changed = random.choice(nodes, round(part * nodes), replace=False)
        scores[:, changed] = random.integers(0, 101, (plugins, len(changed)))
        rejection[changed] = np.where(
            random.random(len(changed)) < 0.2, random.integers(0, 4, len(changed)), -1
        )
        shown = np.where(rejection == -1, scores, -1).astype(np.int8)
        chosen = int(np.argmax(shown.sum(axis=0)))
        meta = {
            "run": 1, "sequence": number, "pod": f"default/pod-{number}", "outcome": "scheduled",
            "node": f"node-{chosen:05d}", "chosen": chosen,
            "plugins": [f"ScorePlugin{i:02d}" for i in range(plugins)],
            "weights": [1 + i % 3 for i in range(plugins)], "reasons": reasons,
            "feasible": int((rejection == -1).sum()), "names_hash": "h",
        }  # fmt: skip
        maps.append(Heatmap(100 + number, meta, True, shown, rejection))
    return maps
