"""Processes that are killed in mid-run: the product comes back; nothing is lost or done twice.

One demo of its own for all of them, in the order of the file: later tests look at what the earlier
ones have left.
"""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import troubles
from tests.e2e.product import (
    PATIENCE,
    Json,
    Product,
    Run,
    bound,
    create_surely,
    gang,
    node_of,
    nodes,
    pods,
    pods_of,
    until,
)
from tests.servers import start_demo

pytestmark = [pytest.mark.e2e, pytest.mark.slow]
expect.set_options(timeout=PATIENCE * 1000)

#: What is promised.
BACK_WITHIN = 15.0
ARRIVING = 300
KILLED = ("loop worker", "sandbox worker", "loop worker")


@pytest.fixture(scope="module")
def mortal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """A demo whose processes may be killed."""
    product = Product(start_demo(tmp_path_factory.mktemp("crashes") / "data"))
    yield product
    product.close()
    assert product.demo.stop() == 0


@pytest.fixture(scope="module")
def crashing(mortal: Product) -> Run:
    """Twenty nodes, and two gangs that wait for a person's word."""
    run = mortal.start_sandbox("crashes")
    mortal.sandbox(run).create_all([*nodes(20), *gang("blue", 3), *gang("green", 3)])
    until(lambda: len(mortal.waits(run, "waiting")) == 6, "both gangs wait")
    return run


def kill(product: Product, name: str) -> int:
    """SIGKILL one of the demo's processes; its number."""
    number = product.demo.children()[name]
    os.kill(number, signal.SIGKILL)
    return number


def is_back(product: Product, name: str, old: int) -> Callable[[], bool]:
    return lambda: product.demo.children().get(name, old) != old


class Arrivals(threading.Thread):
    """Creates pods one by one, however often the sandbox goes away."""

    def __init__(self, product: Product, run: Run, objects: list[Json]) -> None:
        super().__init__(daemon=True)
        self._sandbox, self._objects = product.sandbox(run), objects
        self.names: list[str] = []
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            for obj in self._objects:
                self.names += create_surely(self._sandbox, [obj])
                time.sleep(0.02)
        except BaseException as error:  # noqa: BLE001 - told by the test
            self.error = error


def amount(pod: Json) -> Fraction:
    (container,) = pod["spec"]["containers"]
    cpu = container["resources"]["requests"]["cpu"]
    return Fraction(cpu.removesuffix("m")) / (1000 if cpu.endswith("m") else 1)


def check_bindings(product: Product, run: Run) -> None:
    """By the journal of the API: one bind per pod, for good, and no node over-committed."""
    writes = product.rows(
        "select verb, uid, name, object from dashboard_sandboxwrite"
        " where cluster_id = ? and kind = 'Pod' order by resource_version", run.cluster,
    )  # fmt: skip
    binds = Counter(write["uid"] for write in writes if write["verb"] == "bind")
    assert {uid: count for uid, count in binds.items() if count > 1} == {}
    seen: dict[str, str] = {}
    used: dict[str, Fraction] = defaultdict(Fraction)
    for write in writes:
        pod = json.loads(write["object"])
        node = node_of(pod)
        if seen.get(write["uid"]):
            assert node == seen[write["uid"]], f"{write['name']} moved"
        elif node:
            used[node] += amount(pod)
        seen[write["uid"]] = node
    assert {node: cpu for node, cpu in used.items() if cpu > 4} == {}


def check_cycles(product: Product, run: Run) -> None:
    """Numbered without a gap; nobody is placed twice; of every binding the end is known."""
    until(lambda: all(c["bound"] is not None for c in product.cycles(run)
                      if c["outcome"] == "scheduled"), "every binding has an end")  # fmt: skip
    cycles = product.cycles(run)
    assert [cycle["sequence"] for cycle in cycles] == list(range(1, len(cycles) + 1))
    placed = Counter(cycle["pod_uid"] for cycle in cycles if cycle["bound"])
    assert {uid: count for uid, count in placed.items() if count > 1} == {}


def listed(product: Product, run: Run, queue: str) -> list[str]:
    answer = product.person("viewer").get(f"/api/runs/{run.id}/queues?queue={queue}&limit=1000")
    return [row["pod"].removeprefix("default/") for row in answer.json()["rows"]]


def held(product: Product, run: Run, group: str) -> dict[str, tuple[Any, ...]]:
    """What a restart must not change of the waits of a gang."""
    keys = ("id", "uid", "node", "since", "deadline", "state", "group_min_member", "requested_by")
    rows = [row for row in product.waits(run) if row["pod_group"] == f"default/{group}"]
    return {row["name"]: tuple(row[key] for key in keys) for row in rows}


def kill_and_see_decisions(product: Product, run: Run, name: str) -> None:
    """Kill a worker: it comes back by itself, new decisions are made, waits are restored."""
    old, killed = kill(product, name), time.monotonic()
    seen = product.last_sequence(run)

    def back() -> bool:
        return (
            is_back(product, name, old)()
            and product.last_sequence(run) > seen
            and all(row["cycle"] > seen for row in product.waits(run, "waiting"))
        )

    until(back, "decisions after the kill", BACK_WITHIN - (time.monotonic() - killed))


def test_workers_killed_three_times_in_mid_run(mortal: Product, crashing: Run) -> None:
    sandbox = mortal.sandbox(crashing)
    logs = mortal.log_sizes()
    waits = held(mortal, crashing, "blue") | held(mortal, crashing, "green")
    big = pods("huge", 2, cpu="5")
    objects = [*pods("swarm", ARRIVING // 2), *big, *pods("flock", ARRIVING // 2)]
    names: set[str] = set()

    for number, name in enumerate(KILLED):
        # A sandbox lives on without its scheduler: what arrives meanwhile is scheduled at once.
        arrivals = Arrivals(mortal, crashing, objects[number :: len(KILLED)])
        arrivals.start()
        before = mortal.last_sequence(crashing)
        until(
            lambda before=before: mortal.last_sequence(crashing) > before + 20,
            "pods are being scheduled",
        )
        kill_and_see_decisions(mortal, crashing, name)
        arrivals.join(PATIENCE)
        assert arrivals.error is None
        names |= set(arrivals.names)

    assert len(names) == len(objects)
    expected = {name for name in names if not name.startswith("huge")}
    until(lambda: expected <= set(bound(sandbox)), "every pod that fits is bound")
    until(lambda: set(listed(mortal, crashing, "unschedulable")) >= {"huge-000", "huge-001"},
          "those that fit nowhere are in the queue")  # fmt: skip
    assert {pod["metadata"]["name"] for pod in pods_of(sandbox)} == {*names, *waits}
    assert held(mortal, crashing, "blue") | held(mortal, crashing, "green") == waits
    check_bindings(mortal, crashing)
    check_cycles(mortal, crashing)
    assert not troubles(mortal, logs)


def test_a_decision_given_while_the_worker_is_down_counts(mortal: Product, crashing: Run) -> None:
    sandbox = mortal.sandbox(crashing)
    logs = mortal.log_sizes()
    nodes_held = {name: wait[2] for name, wait in held(mortal, crashing, "blue").items()}
    others = held(mortal, crashing, "green")
    admin = mortal.person("admin")
    epoch = epoch_of(mortal, crashing)
    old = kill(mortal, "loop worker")
    killed = time.monotonic()

    answer = admin.post(
        f"/api/runs/{crashing.id}/waiting/decide",
        {"pod_group": "default/blue", "verdict": "approve", "comment": "nobody home?"},
    )

    assert answer.status_code == 200, answer.text
    assert epoch_of(mortal, crashing) == epoch, "the worker was back too soon for this test"
    left = BACK_WITHIN - (time.monotonic() - killed)
    until(lambda: len(waits_of(mortal, crashing, "blue", "allowed")) == 3, "the rows say so", left)
    assert is_back(mortal, "loop worker", old)()
    found = until(lambda: _all_bound(sandbox, "blue-", 3), "the gang is bound")
    assert found == nodes_held
    rows = waits_of(mortal, crashing, "blue", "allowed")
    assert {row["decision_user"] for row in rows} == {"admin"}
    audit = mortal.rows(
        "select outcome from dashboard_auditentry where run_id = ? and verb = 'approve'",
        crashing.id,
    )
    assert [entry["outcome"] for entry in audit] == ["applied"]
    assert held(mortal, crashing, "green") == others
    check_bindings(mortal, crashing)
    check_cycles(mortal, crashing)
    assert not troubles(mortal, logs)


def epoch_of(product: Product, run: Run) -> int:
    """It rises with each worker that carries the run."""
    name = f"run:{run.id}"
    return int(product.row("select epoch from dashboard_lease where name = ?", name)["epoch"])


def waits_of(product: Product, run: Run, group: str, *states: str) -> list[Json]:
    return [row for row in product.waits(run, *states) if row["pod_group"] == f"default/{group}"]


def _all_bound(sandbox: Any, prefix: str, count: int) -> dict[str, str] | None:
    found = {pod["metadata"]["name"]: node_of(pod) for pod in pods_of(sandbox, prefix)}
    return found if len(found) == count and all(found.values()) else None


@pytest.mark.parametrize("worker", ["loop worker", "sandbox worker"])
def test_a_worker_that_stood_still_goes_on(mortal: Product, crashing: Run, worker: str) -> None:
    """As on a machine that is far too busy: its leases run out, and it is still the only worker."""
    sandbox = mortal.sandbox(crashing)
    logs = mortal.log_sizes()
    waits = held(mortal, crashing, "green")
    number = mortal.demo.children()[worker]
    is_loop = worker == "loop worker"
    name = f"run:{crashing.id}" if is_loop else f"sandbox:{crashing.cluster}"
    awake = f"awake-{worker.split()[0]}"

    def lease() -> Json:
        return mortal.row("select * from dashboard_lease where name = ?", name)

    epoch = lease()["epoch"]
    os.kill(number, signal.SIGSTOP)
    try:
        until(lambda: lease()["renewed_at"] < time.time() - 6, "the lease has run out")
    finally:
        os.kill(number, signal.SIGCONT)

    until(lambda: lease()["renewed_at"] > time.time() - 2, "the lease is renewed")
    create_surely(sandbox, pods(awake, 5))
    until(lambda: len(bound(sandbox, awake)) == 5, "pods are bound")
    assert mortal.demo.children()[worker] == number
    assert lease()["epoch"] == epoch
    assert held(mortal, crashing, "green") == waits
    check_bindings(mortal, crashing)
    check_cycles(mortal, crashing)
    assert not troubles(mortal, logs)


@pytest.mark.browser
def test_web_server_killed_the_page_comes_back_and_catches_up(
    mortal: Product, crashing: Run, visit: Callable[..., Page]
) -> None:
    sandbox = mortal.sandbox(crashing)
    page = visit(mortal, "admin", tolerant=True)
    page.goto(f"{mortal.demo.base_url}/runs/{crashing.id}/")
    expect(page.locator("#link-state")).to_have_text("live")
    page.evaluate("window.stayed = true")
    old = kill(mortal, "web")
    expect(page.locator("#link-state")).to_have_text("reconnecting")

    sandbox.create_all(pods("unseen", 30))

    until(lambda: len(bound(sandbox, "unseen")) == 30, "scheduling goes on without a web server")
    until(is_back(mortal, "web", old), "the web server is back")
    expect(page.locator("#link-state")).to_have_text("live")
    total = len([c for c in mortal.cycles(crashing) if c["outcome"] == "scheduled"])
    expect(page.locator("#totals .total-value").first).to_have_text(str(total))
    expect(page.locator(".feed-row").first).to_contain_text("default/unseen-")
    assert page.evaluate("window.stayed === true")
    assert mortal.person("viewer").get("/api/clusters").status_code == 200


@pytest.mark.browser
def test_broker_killed_pages_and_decisions_go_on(
    mortal: Product, crashing: Run, visit: Callable[..., Page]
) -> None:
    sandbox = mortal.sandbox(crashing)
    sandbox.create_all(gang("grey", 2))
    page = visit(mortal, "admin", tolerant=True)
    page.goto(f"{mortal.demo.base_url}/runs/{crashing.id}/waiting/")
    expect(page.locator("#link-state")).to_have_text("live")
    expect(page.locator(".gang", has_text="default/grey")).to_contain_text("2 of 2")
    page.evaluate("window.stayed = true")

    old = kill(mortal, "broker")
    answer = mortal.person("admin").post(
        f"/api/runs/{crashing.id}/waiting/decide",
        {"pod_group": "default/grey", "verdict": "approve"},
    )

    assert answer.status_code == 200, answer.text
    until(lambda: _all_bound(sandbox, "grey-", 2), "the approved gang is bound")
    until(is_back(mortal, "broker", old), "the broker is back")
    # What was told while the broker was away is on the page all the same, without a click.
    expect(page.locator(".gang", has_text="default/grey")).to_have_count(0)
    expect(page.locator(".ended-row", has_text="default/grey-1")).to_contain_text("allowed")
    # Whatever the log holds of that moment is the libraries' own word on it.
    assert "never retrieved" not in mortal.log("web")
    # And the page is as live as before.
    sandbox.create_all(gang("white", 2))
    expect(page.locator(".gang", has_text="default/white")).to_contain_text("2 of 2")
    assert page.evaluate("window.stayed === true")


def test_beat_and_default_worker_killed(mortal: Product, crashing: Run) -> None:
    logs = mortal.log_sizes()
    for name in ("beat", "default worker"):
        old = kill(mortal, name)
        until(is_back(mortal, name, old), f"{name} is back")

    # They are what revives a run: with both new, a start from the page still works.
    admin = mortal.person("admin")
    for action, state in (("stop", "stopped"), ("start", "running")):
        body = {"action": action}
        assert admin.post(f"/api/runs/{crashing.id}/control", body).status_code == 200
        mortal.wait_for_state(crashing, state)
    create_surely(mortal.sandbox(crashing), pods("late", 2))
    until(lambda: len(bound(mortal.sandbox(crashing), "late")) == 2, "pods are bound again")
    assert not troubles(mortal, logs)


def alive(number: int) -> bool:
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    return True


def test_stopped_and_started_again_it_continues(mortal: Product, crashing: Run) -> None:
    sandbox = mortal.sandbox(crashing)
    waits = held(mortal, crashing, "green") | held(mortal, crashing, "white")
    objects = {pod["metadata"]["uid"]: node_of(pod) for pod in pods_of(sandbox)}
    last = mortal.last_sequence(crashing)
    children = mortal.demo.children()

    began = time.monotonic()
    assert mortal.demo.stop() == 0
    assert time.monotonic() - began < 5

    assert not any(map(alive, children.values()))
    assert not mortal.runtime_folder.exists()
    assert not (mortal.demo.data_dir / "demo.json").exists()
    assert mortal.demo.output.rstrip().endswith("continues with it.")
    logs = mortal.log_sizes()

    passwords = mortal.passwords
    mortal.demo = start_demo(mortal.demo.data_dir)
    mortal.passwords = passwords
    assert mortal.demo.passwords == {}, "passwords are told once"
    mortal.wait_for_state(crashing, "running")
    assert {pod["metadata"]["uid"]: node_of(pod) for pod in pods_of(sandbox)} == objects
    create_surely(sandbox, pods("again", 3))
    until(lambda: len(bound(sandbox, "again")) == 3, "pods are bound after the start")
    assert held(mortal, crashing, "green") | held(mortal, crashing, "white") == waits
    first = next(c for c in mortal.cycles(crashing) if c["sequence"] > last)
    assert first["sequence"] == last + 1
    check_bindings(mortal, crashing)
    check_cycles(mortal, crashing)
    assert not troubles(mortal, logs)
