"""The running product from outside: its pages, its database, its sandboxes and its processes."""

from __future__ import annotations

import re
import secrets
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import requests

from kubesched_site.environment import default_runtime_dir
from scheduler_core.cluster.remote import RemoteSandbox
from scheduler_core.ports import ApiError
from scheduler_core.testing.builders import make_node, make_pod, make_pod_group
from tests.servers import ROOT, Demo, clean_environment

#: Long enough for two busy cores: everything is waited for, nothing is timed by it.
PATIENCE = 45.0
APPROVAL_LABEL = "kubesched.io/approval"
REQUESTED_BY = "kubesched.io/requested-by"
#: What a sandbox answers while nobody owns it.
AWAY = (503, 504)
PROCESSES = ("broker", "web", "sandbox-worker", "loop-worker", "default-worker", "beat")

Json = dict[str, Any]
T = TypeVar("T")


def until(ask: Callable[[], T], what: str, seconds: float = PATIENCE) -> T:
    """Ask until the answer is true, and return it.

    Raises:
        AssertionError: it was not within ``seconds``; the message holds the last answer.
    """
    deadline = time.monotonic() + seconds
    while True:
        answer = ask()
        if answer:
            return answer
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what}; last: {answer!r}"
        time.sleep(0.05)


@dataclass(frozen=True, slots=True)
class Run:
    """A sandbox and the scheduler on it."""

    id: int
    cluster: int
    name: str


class Person:
    """Somebody with a session, who sends what the pages send."""

    def __init__(self, base_url: str) -> None:
        self.base_url = base_url
        self.session = requests.Session()

    def log_in(self, name: str, password: str) -> Person:
        """Through the login form, with its token."""
        form = self.session.get(f"{self.base_url}/login/", timeout=PATIENCE)
        token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', form.text)
        assert token is not None
        fields = {"username": name, "password": password, "csrfmiddlewaretoken": token[1]}
        self.session.post(f"{self.base_url}/login/", fields, timeout=PATIENCE)
        assert "kubesched_session" in self.session.cookies, f"{name} could not log in"
        return self

    def get(self, path: str) -> requests.Response:
        return self.session.get(self.base_url + path, timeout=PATIENCE, allow_redirects=False)

    def post(self, path: str, body: Json) -> requests.Response:
        headers = {
            "X-CSRFToken": self.session.cookies.get("csrftoken", ""),
            "Referer": self.base_url + "/",
        }
        return self.session.post(self.base_url + path, json=body, headers=headers, timeout=PATIENCE)

    @property
    def cookies(self) -> str:
        """As a Cookie header."""
        return "; ".join(f"{cookie.name}={cookie.value}" for cookie in self.session.cookies)


class Product:
    """A demo under test."""

    def __init__(self, demo: Demo, passwords: dict[str, str] | None = None) -> None:
        self.demo = demo
        self.passwords = passwords or demo.passwords
        self._sandboxes: dict[int, RemoteSandbox] = {}
        self._people: list[Person] = []

    def close(self) -> None:
        for sandbox in self._sandboxes.values():
            sandbox.close()
        for person in self._people:
            person.session.close()

    # --- people -----------------------------------------------------------------------------
    def anonymous(self) -> Person:
        self._people.append(Person(self.demo.base_url))
        return self._people[-1]

    def person(self, name: str) -> Person:
        """admin, approver or viewer, logged in."""
        return self.anonymous().log_in(name, self.passwords[name])

    def add_people(self, *names: str, permission: str) -> None:
        """Users of the product who have this one permission, with passwords made up for them."""
        made = {name: secrets.token_urlsafe(9) for name in names}
        code = (
            "from django.contrib.auth.models import Permission, User\n"
            f"for name, password in {made!r}.items():\n"
            "    user = User.objects.create_user(name, password=password)\n"
            f"    user.user_permissions.add(Permission.objects.get(codename={permission!r}))\n"
        )
        subprocess.run(
            [sys.executable, str(ROOT / "manage.py"), "shell", "--no-imports", "-c", code],
            env=clean_environment(
                KUBESCHED_MODE="demo", KUBESCHED_DATA_DIR=str(self.demo.data_dir)
            ),
            cwd=ROOT, check=True, capture_output=True, timeout=PATIENCE,
        )  # fmt: skip
        self.passwords |= made

    # --- sandboxes --------------------------------------------------------------------------
    def start_sandbox(self, name: str, preset: str = "empty", speed: Any = 1) -> Run:
        """Make one through the API, and wait until its scheduler runs."""
        body = {"name": name, "preset": preset, "speed": speed}
        answer = self.person("admin").post("/api/sandboxes", body)
        assert answer.status_code == 201, answer.text
        run = self.run(name)
        self.wait_for_state(run, "running")
        return run

    def configure(self, run: Run, text: str) -> None:
        """Another configuration for the run's scheduler, in use when this returns."""
        body = {"text": text, "version": 1, "comment": "", "validate_only": False}
        answer = self.person("admin").post(f"/api/runs/{run.id}/config", body)
        assert answer.status_code == 200, answer.text
        query = "select applied_config_version as used from dashboard_schedulerrun where id = ?"
        until(lambda: self.row(query, run.id)["used"] == 2, "the configuration is in use")

    def run(self, name: str) -> Run:
        row = self.row("select id, cluster_id from dashboard_schedulerrun where name = ?", name)
        return Run(row["id"], row["cluster_id"], name)

    def wait_for_state(self, run: Run, state: str, seconds: float = PATIENCE) -> None:
        query = "select state, message from dashboard_schedulerrun where id = ?"
        until(lambda: self.row(query, run.id)["state"] == state, f"{run.name} {state}", seconds)

    def sandbox(self, run: Run) -> RemoteSandbox:
        """Its objects, through the socket of whatever process owns it."""
        if run.cluster not in self._sandboxes:
            path = self.runtime_folder / f"sandbox-{run.cluster}.sock"
            self._sandboxes[run.cluster] = RemoteSandbox(path, actor="tester")
        return self._sandboxes[run.cluster]

    @property
    def runtime_folder(self) -> Path:
        """Where the demo's sockets are."""
        return default_runtime_dir(self.demo.data_dir)

    # --- database ---------------------------------------------------------------------------
    def rows(self, query: str, *values: Any) -> list[Json]:
        """Read-only SQL over the product's own database."""
        path = self.demo.data_dir / "kubesched.sqlite3"
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=20)) as database:
            database.row_factory = sqlite3.Row
            return [dict(row) for row in database.execute(query, values)]

    def row(self, query: str, *values: Any) -> Json:
        found = self.rows(query, *values)
        assert len(found) == 1, f"{len(found)} rows: {query} {values}"
        return found[0]

    def cycles(self, run: Run) -> list[Json]:
        query = "select * from dashboard_schedulingcycle where run_id = ? order by sequence"
        return self.rows(query, run.id)

    def last_sequence(self, run: Run) -> int:
        query = "select max(sequence) as last from dashboard_schedulingcycle where run_id = ?"
        return int(self.row(query, run.id)["last"] or 0)

    def waits(self, run: Run, *states: str) -> list[Json]:
        rows = self.rows("select * from dashboard_waitingpod where run_id = ? order by id", run.id)
        return [row for row in rows if not states or row["state"] in states]

    # --- processes and logs -----------------------------------------------------------------
    def log(self, name: str) -> str:
        return self.demo.log(name)

    def log_sizes(self) -> dict[str, int]:
        return {name: len(self.demo.log(name)) for name in PROCESSES}


# --- what tests put into a sandbox -----------------------------------------------------------
def nodes(count: int, cpu: str = "4") -> list[Json]:
    names = [f"node-{number:03d}" for number in range(count)]
    return [make_node(name).capacity(cpu=cpu, memory="32Gi", pods="110").raw() for name in names]


def pods(prefix: str, count: int, cpu: str = "100m") -> list[Json]:
    return [make_pod(f"{prefix}-{number:03d}").req(cpu=cpu).raw() for number in range(count)]


def gang(name: str, members: int, cpu: str = "100m") -> list[Json]:
    """A PodGroup that asks for a person's word, and all of its members."""
    group = make_pod_group(name, members).label({APPROVAL_LABEL: "required"})
    group.annotation({REQUESTED_BY: "ada@example.org"})
    pods = [
        make_pod(f"{name}-{number}").req(cpu=cpu).pod_group(name).raw() for number in range(members)
    ]
    return [group.raw(), *pods]


def create_surely(sandbox: RemoteSandbox, objects: Iterable[Json]) -> list[str]:
    """Create one by one, however often the owner dies meanwhile; the names.

    A connection that breaks leaves open whether the object was made: it is tried again, and
    "it exists already" is then an answer like any other.
    """
    made = []
    for obj in objects:
        until(lambda obj=obj: _created(sandbox, obj), f"creation of {obj['metadata']['name']}")
        made.append(obj["metadata"]["name"])
    return made


def _created(sandbox: RemoteSandbox, obj: Json) -> bool:
    try:
        sandbox.create(obj["kind"], obj)
    except ApiError as error:
        if error.code in AWAY:
            return False
        if error.code != 409:
            raise
    return True


def pods_of(sandbox: RemoteSandbox, prefix: str = "") -> list[Json]:
    """The pods as they are now; asks again while nobody owns the sandbox."""

    def ask() -> tuple[Sequence[Json]] | None:
        try:
            return (sandbox.list("Pod").items,)
        except ApiError as error:
            if error.code in AWAY:
                return None
            raise

    (found,) = until(ask, "an answer of the sandbox")
    return [pod for pod in found if pod["metadata"]["name"].startswith(prefix)]


def node_of(pod: Json) -> str:
    return str(pod["spec"].get("nodeName") or "")


def bound(sandbox: RemoteSandbox, prefix: str = "") -> list[str]:
    return [pod["metadata"]["name"] for pod in pods_of(sandbox, prefix) if node_of(pod)]
