"""An extender, brought in from the configuration page, and its verdict in a decision's page."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.core.extender.server import FakeExtender, Json, names_of
from tests.e2e.product import PATIENCE, Product, bound, nodes, pods, until

pytestmark = [pytest.mark.e2e, pytest.mark.browser, pytest.mark.slow]

CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - schedulerName: default-scheduler
extenders:
  - urlPrefix: {url}
    filterVerb: filter
    prioritizeVerb: prioritize
    weight: 1
    nodeCacheCapable: true
"""


def not_the_first(args: Json) -> Json:
    """Filter: the first of the nodes is turned down in the extender's own words."""
    first, *rest = sorted(names_of(args))
    return {"NodeNames": rest, "FailedNodes": {first: "its rack is being moved"}}


def likes_the_last(args: Json) -> list[Json]:
    """Prioritize: everything for the last of the nodes."""
    names = sorted(names_of(args))
    return [{"Host": name, "Score": 10 if name == names[-1] else 0} for name in names]


@pytest.fixture
def extender() -> Iterator[FakeExtender]:
    server = FakeExtender({"filter": not_the_first, "prioritize": likes_the_last})
    yield server
    server.stop()


def test_an_extenders_verdict_is_seen_in_a_decision(
    product: Product, visit: Callable[..., Page], extender: FakeExtender
) -> None:
    run = product.start_sandbox("extended")
    product.wait_for_state(run, "running")
    sandbox = product.sandbox(run)
    sandbox.create_all(nodes(3))
    last = sorted(node["metadata"]["name"] for node in nodes(3))[-1]
    page = visit(product, "admin")

    # The configuration is changed on the page.
    page.goto(f"{product.demo.base_url}/runs/{run.id}/configuration/")
    page.locator(".editor-text").fill(CONFIG.format(url=extender.url))
    page.get_by_role("button", name="Apply").click()
    expect(page.locator("#config-state")).to_contain_text(
        "Version 2, in use", timeout=PATIENCE * 1000
    )

    # The next pod is scheduled by the extender's word.
    (pod,) = pods("asked", 1)
    sandbox.create("Pod", pod)
    until(lambda: bound(sandbox, "asked"), "the pod is bound")
    (cycle,) = until(lambda: product.cycles(run), "the cycle is recorded")
    assert cycle["node"] == last

    # Its decision shows verdict and score like a plugin's.
    page.goto(f"{product.demo.base_url}/runs/{run.id}/cycles/{cycle['sequence']}/")
    expect(page.get_by_text("its rack is being moved").first).to_be_visible()
    expect(page.get_by_text("2 of 3 nodes feasible").first).to_be_visible()
    scores = page.get_by_role("columnheader").filter(has_text=f"Extender {extender.url}")
    expect(scores).to_be_visible()
    assert extender.asked("filter")
