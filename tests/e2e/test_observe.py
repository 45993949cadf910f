"""A cluster is observed beside the scheduler that places its pods: agreement and differences."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from scheduler_core.testing.builders import make_node, make_pod
from tests.e2e.product import PATIENCE, Product, Run, bound, until

pytestmark = [pytest.mark.e2e, pytest.mark.browser, pytest.mark.slow]

#: The scheduler that is observed: at first as the observer decides, then it packs.
ALIKE = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - schedulerName: default-scheduler
"""
PACKING = (
    ALIKE
    + """\
    pluginConfig:
      - name: NodeResourcesFit
        args:
          scoringStrategy:
            type: MostAllocated
            resources: [{name: cpu, weight: 1}, {name: memory, weight: 1}]
"""
)
#: Milliseconds; what a page shows comes over worker, database, Redis and websocket.
SLOWLY = PATIENCE * 1000
SIZES = {"big": "32", "middle": "16", "small": "4"}


def test_agreement_and_differences_beside_another_scheduler(
    product: Product, visit: Callable[..., Page]
) -> None:
    run = product.start_sandbox("watched")
    product.configure(run, ALIKE)
    sandbox = product.sandbox(run)
    for name, cpu in SIZES.items():
        sandbox.create("Node", make_node(name).capacity(cpu=cpu, memory=f"{cpu}Gi").raw())

    # Whoever may control runs has the cluster observed; the new run's page opens.
    page = visit(product, "admin")
    page.goto(f"{product.demo.base_url}/runs/{run.id}/observe/")
    page.get_by_role("button", name="Observe watched").click()
    expect(page.get_by_role("heading", name="watched-observer")).to_be_visible()
    expect(page.locator("#observe-empty")).to_contain_text(
        "Waiting for the first pod", timeout=SLOWLY
    )
    observer = product.run("watched-observer")
    rates, tallies = page.locator("#rates"), page.locator("#tallies")

    # Alike they agree: the page says so without being loaded again.
    place(product, run, "same", 3)
    expect(rates).to_contain_text("3 of 3 pods", timeout=SLOWLY)
    expect(rates).to_contain_text("100 %", timeout=SLOWLY)
    expect(page.locator("#observed")).to_contain_text("default/same-0", timeout=SLOWLY)

    # The other one packs from now on: its choices differ, and each difference is explained.
    packs(product, run)
    place(product, run, "packed", 2)
    expect(rates).to_contain_text("3 of 5 pods", timeout=SLOWLY)
    expect(rates).to_contain_text("60.0 %", timeout=SLOWLY)
    tallies.get_by_role("button").filter(has_text="differs").click()
    lines = page.locator("#observed tr")
    expect(lines).to_have_count(2, timeout=SLOWLY)
    expect(lines.first).to_contain_text("NodeResourcesFit prefers big by")
    expect(page).to_have_url(re.compile("verdict=differs"))

    # A pod that nobody can place waits, for both of them.
    sandbox.create("Pod", make_pod("huge").req(cpu="64").raw())
    expect(tallies.get_by_role("button").filter(has_text="not placed yet")).to_contain_text(
        "1", timeout=SLOWLY
    )

    # One pod taken apart.
    lines.first.get_by_role("link").click()
    expect(page.get_by_role("heading", name="default/packed-1")).to_be_visible()
    scores = page.locator(".compare-table")
    expect(scores.get_by_role("row").filter(has_text="NodeResourcesFit").first).to_contain_text(
        "ours"
    )
    expect(scores.locator("tfoot")).to_contain_text("+")
    page.get_by_role("link", name="All pods").click()
    expect(page.locator("#observed tr")).to_have_count(6, timeout=SLOWLY)
    expect(page.get_by_text("watched schedules")).to_be_visible()

    # It has written nothing to the cluster; a viewer sees what it found.
    query = "select distinct actor from dashboard_sandboxwrite where cluster_id = ?"
    assert "observer" not in {row["actor"] for row in product.rows(query, run.cluster)}
    seen = visit(product, "viewer")
    seen.goto(f"{product.demo.base_url}/runs/{observer.id}/observe/?verdict=pending")
    expect(seen.locator("#observed tr")).to_have_count(1, timeout=SLOWLY)
    expect(seen.locator("#observed")).to_contain_text("no node fits for us either")


def place(product: Product, run: Run, prefix: str, count: int) -> None:
    """Pods that come one after another and are placed by the run's scheduler."""
    sandbox = product.sandbox(run)
    for number in range(count):
        sandbox.create("Pod", make_pod(f"{prefix}-{number}").req(cpu="1", memory="1Gi").raw())
        until(lambda n=number: len(bound(sandbox, prefix)) == n + 1, "the pod is placed")


def packs(product: Product, run: Run) -> None:
    body = {"text": PACKING, "version": 2, "comment": "", "validate_only": False}
    answer = product.person("admin").post(f"/api/runs/{run.id}/config", body)
    assert answer.status_code == 200, answer.text
    query = "select applied_config_version as used from dashboard_schedulerrun where id = ?"
    until(lambda: product.row(query, run.id)["used"] == 3, "the configuration is in use")
