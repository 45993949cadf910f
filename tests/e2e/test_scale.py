"""A real trace, and a synthetic cluster of the same size beside it, in one demo."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import troubles
from tests.e2e.product import PATIENCE, Product, bound, until
from tests.servers import ROOT, clean_environment, start_demo

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.traces]
expect.set_options(timeout=PATIENCE * 1000)

NODES = 1523


@pytest.fixture(scope="module")
def tracing(trace_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """What `make demo TRACE=FOLDER` starts."""
    folder = tmp_path_factory.mktemp("trace") / "data"
    product = Product(start_demo(folder, "--trace", str(trace_folder)))
    yield product
    product.close()
    assert product.demo.stop() == 0
    assert not troubles(product, dict.fromkeys(product.log_sizes(), 0))


@pytest.mark.browser
def test_a_trace_is_replayed_on_the_pages(tracing: Product, visit: Callable[..., Page]) -> None:
    (row,) = tracing.rows("select name from dashboard_schedulerrun")
    run = tracing.run(row["name"])
    page = visit(tracing, "viewer")
    page.goto(f"{tracing.demo.base_url}/runs/{run.id}/heatmap/")
    expect(page.locator("#heat-cycle")).to_contain_text("of 1,523 nodes feasible")
    first = page.locator("#heat-cycle").inner_text()
    cells = page.locator("#heat-cells")
    picture = cells.evaluate("canvas => canvas.toDataURL()")
    until(lambda: page.locator("#heat-cycle").inner_text() != first, "the next cycle is shown")
    until(lambda: cells.evaluate("canvas => canvas.toDataURL()") != picture, "another picture")
    page.goto(f"{tracing.demo.base_url}/runs/{run.id}/cycles/")
    expect(page.locator("#decisions tr").first).to_contain_text(re.compile("openb-pod-"))
    cycles = tracing.cycles(run)
    assert {cycle["nodes_total"] for cycle in cycles} == {NODES}
    until(lambda: len(bound(tracing.sandbox(run))) > 20, "pods of the trace are bound")


@pytest.mark.browser
def test_a_large_sandbox_beside_it_with_pages_open(
    tracing: Product, visit: Callable[..., Page]
) -> None:
    run = tracing.start_sandbox("large", preset="large")
    logs = tracing.log_sizes()
    pages = [visit(tracing, user) for user in ("admin", "viewer")]
    for page, path in zip(pages, ("heatmap/", ""), strict=True):
        page.goto(f"{tracing.demo.base_url}/runs/{run.id}/{path}")
        expect(page.locator("#link-state")).to_have_text("live")

    until(lambda: tracing.last_sequence(run) > 200, "two hundred decisions on 1,523 nodes")

    # A click does not wait long for the recorder's transactions.
    admin = tracing.person("admin")
    for action, state in (("pause", "paused"), ("resume", "running")):
        answer = admin.post(f"/api/runs/{run.id}/control", {"action": action})
        assert (answer.status_code, answer.elapsed.total_seconds() < 2) == (200, True)
        tracing.wait_for_state(run, state)
    expect(pages[0].locator("#heat-cycle")).to_contain_text("nodes feasible")
    for page in pages:
        expect(page.locator("#link-state")).to_have_text("live")
    told = tracing.row(
        "select back_pressure_seconds, matrices_dropped from dashboard_schedulerrun where id = ?",
        run.id,
    )
    assert told == {"back_pressure_seconds": 0.0, "matrices_dropped": 0}
    assert not troubles(tracing, logs)
    check_size(tracing, "loop worker", megabytes=800, threads=100)
    check_size(tracing, "web", megabytes=400, threads=40)


def check_size(product: Product, name: str, *, megabytes: int, threads: int) -> None:
    """Generous: what grows with every page or every cycle would show, nothing else."""
    status = Path(f"/proc/{product.demo.children()[name]}/status").read_text(encoding="ascii")
    found = dict(re.findall(r"^(VmRSS|Threads):\s+(\d+)", status, re.MULTILINE))
    assert int(found["VmRSS"]) < megabytes * 1024, f"{name}: {found}"
    assert int(found["Threads"]) < threads, f"{name}: {found}"


@pytest.mark.parametrize(
    ("files", "lines"),
    [
        pytest.param(
            {},
            ["no table of nodes (*node*.csv) in this folder", "no table of pods (*pod*.csv)"],
            id="nothing",
        ),
        pytest.param({"nodes.csv": ""}, ["no table of pods (*pod*.csv)"], id="no pods"),
        pytest.param(
            {"nodes.csv": "sn,cpu_milli\n", "pods.csv": "name\n"},
            ["nodes.csv, line 1: the columns must be", "pods.csv, line 1: the columns must be"],
            id="other columns",
        ),
    ],
)
def test_each_fault_of_a_trace_is_one_clear_line(
    tmp_path: Path, files: dict[str, str], lines: list[str]
) -> None:
    folder = tmp_path / "trace"
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    command = [sys.executable, "manage.py", "demo", "--port", "0", "--trace", str(folder)]
    done = subprocess.run(
        [*command, "--data-dir", str(tmp_path / "data")],
        cwd=ROOT, env=clean_environment(), capture_output=True, text=True, timeout=60,
    )  # fmt: skip

    assert done.returncode == 1
    told = done.stderr.splitlines()
    assert len(told) == len(lines), done.stderr
    for line, words in zip(told, lines, strict=True):
        assert str(folder) in line and words in line
