"""How much work a page does, in operations and elements; seconds are for scripts.measure."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from dashboard import heatmap
from scripts.measure.heatmap import make_maps
from tests.browser.fake_site import FakeSite

COUNT_CALLS = """
  window.__calls = {};
  const target = CanvasRenderingContext2D.prototype;
  for (const name of ["putImageData", "fillRect", "drawImage", "strokeRect"]) {
    const real = target[name];
    target[name] = function (...args) {
      if (this.canvas.matches("#heat-cells, #heat-marks")) {
        window.__calls[name] = (window.__calls[name] ?? 0) + 1;
      }
      return real.apply(this, args);
    };
  }
"""


@pytest.fixture
def site(page: Page) -> Iterator[FakeSite]:
    site = FakeSite(page, nodes=12)
    yield site
    page.wait_for_timeout(0)
    assert site.problems == []


# --- heatmap --------------------------------------------------------------------------------------


def redraw_calls(site: FakeSite, part: float) -> dict[str, int]:
    """Canvas calls of one redraw of 5,000 nodes and fifteen plugins of which ``part`` changed."""
    first, second = make_maps(5000, 15, 2, part)
    site.page.add_init_script(COUNT_CALLS)
    site.answers |= {
        "nodes": {"names": [f"node-{i:05d}" for i in range(5000)]},
        "cycles/latest/matrix": heatmap.encode_full(first),
    }
    site.open("/runs/1/heatmap/")
    expect(site.page.locator("#heat")).to_be_visible()
    expect(site.page.locator("#link-state")).to_have_text("live")
    site.page.evaluate("window.__calls = {}")
    site.send(heatmap.encode_full(second))
    expect(site.page.locator("#heat-cycle")).to_contain_text(f"cycle {second.meta['sequence']}")
    calls: dict[str, int] = site.page.evaluate("window.__calls")
    return calls


def test_heatmap_redraw_is_one_image_per_panel_and_no_call_per_cell(site: FakeSite) -> None:
    calls = redraw_calls(site, part=1.0)
    assert calls["putImageData"] == 16, "the total and fifteen plugins"
    assert calls.get("fillRect", 0) == calls.get("drawImage", 0) == 0
    assert calls["strokeRect"] <= 2 * 2 * 16, "two rings, drawn at most twice"


def test_heatmap_redraw_of_the_same_scores_draws_no_tile(site: FakeSite) -> None:
    assert redraw_calls(site, part=0.0).get("putImageData", 0) == 0


def test_maps_of_the_measurement_change_as_many_nodes_as_they_say() -> None:
    first, second = make_maps(1000, 3, 2, 0.1)
    changed = (first.normalized != second.normalized).any(axis=0)
    assert 50 < int(np.count_nonzero(changed)) <= 100
