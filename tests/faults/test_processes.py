"""Rounds with real processes, killed by SIGKILL while people decide; the same judge.

A product of its own for all rounds of a database: the supervisor brings back what was killed. A
seed decides what dies and when; how long the machine takes is its own affair, so that nothing here
is repeatable to the millisecond.
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
import requests
from psycopg.rows import dict_row

from scheduler_core.ports import ApiError
from scheduler_core.testing.builders import make_pod
from tests.e2e.product import (
    APPROVAL_LABEL,
    AWAY,
    PATIENCE,
    Json,
    Person,
    Product,
    Run,
    create_surely,
    gang,
    node_of,
    nodes,
    pods_of,
    until,
)
from tests.faults.checker import Terms, check
from tests.servers import Demo, start_demo

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(600)]

#: The machine of the suite may be busy: how long a deadline may take there.
SOON = 10.0
#: Longer than any pod of a round waits for people, and than nobody decides on the quick one.
PATIENT, QUICK = 120, 5
CONFIGURATION = f"""apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - schedulerName: default-scheduler
    plugins:
      queueSort: {{enabled: [{{name: Coscheduling}}], disabled: [{{name: "*"}}]}}
      multiPoint: {{enabled: [{{name: Coscheduling}}, {{name: ManualApproval}}]}}
    pluginConfig:
      - name: ManualApproval
        args:
          timeoutSeconds: {PATIENT}
          policies:
            - {{name: quick, selector: {{matchLabels: {{quick: "yes"}}}}, timeoutSeconds: {QUICK}}}
"""
#: What is killed, round by round.
ON_SQLITE = (
    "loop worker", "sandbox worker", "web", "loop worker", "broker", "sandbox worker",
    "loop worker", "sandbox worker and loop worker",
)  # fmt: skip
ON_POSTGRESQL = ("database", "loop worker", "database", "database and loop worker")


class OnPostgreSQL(Product):
    """The same product with another database."""

    url = ""

    def rows(self, query: str, *values: Any) -> list[Json]:
        with psycopg.connect(self.url, row_factory=dict_row) as database:
            return list(database.execute(query.replace("?", "%s"), values))  # type: ignore[call-overload]

    def crash_database(self) -> None:
        """A server process dies: PostgreSQL ends all others, recovers, and starts again."""
        with psycopg.connect(self.url) as database:
            os.kill(database.info.backend_pid, signal.SIGKILL)


class Cast:
    """One product, its run and its people, over all rounds."""

    def __init__(self, product: Product) -> None:
        self.product = product
        self.run: Run = product.start_sandbox("rounds")
        self.admin: Person = product.person("admin")
        self.away: list[tuple[float, float]] = []
        path = f"/api/runs/{self.run.id}/config"
        body = {
            "text": CONFIGURATION,
            "comment": "",
            "version": self.admin.get(path).json()["version"],
        }
        answer = self.admin.post(path, body)
        assert answer.status_code == 200, answer.text
        query = (
            "select applied_config_version, config_version from dashboard_schedulerrun where id = ?"
        )
        until(lambda: len(set(product.row(query, self.run.id).values())) == 1, "it is applied")
        create_surely(product.sandbox(self.run), nodes(6))

    def waits(self, prefix: str, *states: str) -> list[Json]:
        return [
            row for row in self.product.waits(self.run, *states) if row["name"].startswith(prefix)
        ]

    def violations(self) -> list[str]:
        terms = Terms(ended_at=time.time(), rest=SOON, away=self.away, soon=SOON)
        return [str(v) for v in check(self.product.rows, self.run.cluster, self.run.id, terms)]


def asking(name: str, **labels: str) -> Json:
    pod: Json = make_pod(name).label({APPROVAL_LABEL: "required", **labels}).req(cpu="100m").raw()
    return pod


class Decisions(threading.Thread):
    """A person who says what is to be said, again where nobody answers."""

    def __init__(self, cast: Cast, words: list[Json], rng: random.Random) -> None:
        super().__init__(daemon=True)
        self._cast, self._words = cast, words
        self._pauses = [rng.uniform(0, 0.25) for _ in words]
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            for word, pause in zip(self._words, self._pauses, strict=True):
                time.sleep(pause)
                until(lambda word=word: self._say(word), f"an answer to {word}")
        except BaseException as error:  # noqa: BLE001 - told by the test
            self.error = error

    def _say(self, word: Json) -> bool:
        path = f"/api/runs/{self._cast.run.id}/waiting/decide"
        try:
            answer = self._cast.admin.post(path, word)
        except requests.ConnectionError:
            return False
        assert answer.status_code != 400, answer.text
        # 409: an answer that was lost had said yes.
        return answer.status_code in (200, 404, 409)


def live(cast: Cast, number: int, victims: str, seed: int) -> None:
    """One round: ask, decide, kill meanwhile, wait until all has come to rest, judge."""
    rng = random.Random(seed)
    name, product = f"r{number}", cast.product
    sandbox = product.sandbox(cast.run)
    singles = [asking(f"{name}-s{i}") for i in range(3)]
    objects = [*gang(f"{name}-a", 3), *gang(f"{name}-b", 2), *singles]
    create_surely(sandbox, objects)
    until(lambda: len(cast.waits(name, "waiting")) == 8, f"all pods of {name} wait")
    create_surely(sandbox, [asking(f"{name}-quick", quick="yes")])
    ids = [row["id"] for row in cast.waits(f"{name}-s", "waiting")]
    words: list[Json] = [
        {"pod_group": f"default/{name}-a", "verdict": "approve"},
        {"pod_group": f"default/{name}-b", "verdict": "deny"},
        {"pods": ids, "verdict": "approve"},
    ]
    rng.shuffle(words)
    decisions = Decisions(cast, words, rng)
    decisions.start()
    for victim in victims.split(" and "):
        time.sleep(rng.uniform(0, 0.5))
        kill(cast, victim)
    decisions.join(2 * PATIENCE)
    assert decisions.error is None, decisions.error
    bound = [f"{name}-{which}" for which in ("a-0", "a-1", "a-2", "s0", "s1", "s2")]
    until(lambda: placed(sandbox, name) == bound, "what was approved is bound", 2 * PATIENCE)
    until(lambda: len(cast.waits(f"{name}-b", "rejected")) == 2, "what was denied is turned down")
    until(lambda: cast.waits(f"{name}-quick", "timed_out"), "whose time was over is turned down")
    until(lambda: not unanswered(cast), "every word has its answer")
    remove(sandbox, [f"{name}-b-0", f"{name}-b-1", f"{name}-quick"])
    until(lambda: not cast.waits(name, "waiting", "sent"), "nobody waits any more")
    assert cast.violations() == []


def placed(sandbox: Any, prefix: str) -> list[str]:
    found = pods_of(sandbox, f"{prefix}-")
    return sorted(pod["metadata"]["name"] for pod in found if node_of(pod))


def unanswered(cast: Cast) -> list[Json]:
    query = "select id from dashboard_decision where run_id = ? and applied is null"
    return ask_again(lambda: cast.product.rows(query, cast.run.id))


def remove(sandbox: Any, names: list[str]) -> None:
    for name in names:
        until(lambda name=name: _removed(sandbox, name), f"{name} is deleted")


def _removed(sandbox: Any, name: str) -> bool:
    try:
        sandbox.delete("Pod", "default", name, grace_period_seconds=0)
    except ApiError as error:
        return error.code not in AWAY
    return True


def ask_again(ask: Callable[[], Any]) -> Any:
    """The database may be starting."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return ask()
        except psycopg.OperationalError:
            assert time.monotonic() < deadline, "the database does not come back"
            time.sleep(0.1)


def kill(cast: Cast, victim: str) -> None:
    """SIGKILL, and be sure that what was killed is there again, later."""
    at, product = time.time(), cast.product
    name = f"run:{cast.run.id}"
    before = "select epoch from dashboard_lease where name = ?"
    epoch = ask_again(lambda: product.rows(before, name))[0]["epoch"]
    if victim == "database":
        assert isinstance(product, OnPostgreSQL)
        product.crash_database()
    else:
        old = product.demo.children()[victim]
        os.kill(old, signal.SIGKILL)
        until(lambda: product.demo.children().get(victim, old) != old, f"{victim} is back")
    if victim in ("web", "broker"):
        return
    query = (
        "select renewed_at, epoch from dashboard_lease, dashboard_schedulerrun"
        " where dashboard_lease.name = ? and dashboard_schedulerrun.id = ? and state = 'running'"
    )

    def is_carried() -> bool:
        rows = ask_again(lambda: product.rows(query, name, cast.run.id))
        # A run that is beside its sandbox ends a moment after it.
        ends = victim == "sandbox worker"
        return bool(rows) and rows[0]["renewed_at"] > at and (not ends or rows[0]["epoch"] > epoch)

    until(is_carried, "the run is carried again")
    cast.away.append((at, time.time()))


def started(data: Path, kind: type[Product], **environment: str) -> Iterator[Cast]:
    demo: Demo = start_demo(data, KUBESCHED_WRITES_KEPT="1000000", **environment)
    product = kind(demo)
    if isinstance(product, OnPostgreSQL):
        product.url = environment["DATABASE_URL"]
    try:
        yield Cast(product)
    finally:
        product.close()
        code = demo.stop()
    assert code == 0


@pytest.fixture(scope="module")
def on_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cast]:
    yield from started(tmp_path_factory.mktemp("rounds") / "data", Product)


@pytest.fixture(scope="module")
def on_postgresql(tmp_path_factory: pytest.TempPathFactory, postgres_server: str) -> Iterator[Cast]:
    folder = tmp_path_factory.mktemp("rounds-postgresql") / "data"
    yield from started(folder, OnPostgreSQL, DATABASE_URL=postgres_server)


@pytest.mark.parametrize(("number", "victims"), list(enumerate(ON_SQLITE)))
def test_round_on_sqlite(on_sqlite: Cast, number: int, victims: str) -> None:
    live(on_sqlite, number, victims, seed=number)


@pytest.mark.parametrize(("number", "victims"), list(enumerate(ON_POSTGRESQL)))
def test_round_on_postgresql(on_postgresql: Cast, number: int, victims: str) -> None:
    live(on_postgresql, number, victims, seed=100 + number)
