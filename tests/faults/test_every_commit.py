"""One gang, approved by two people: a fault before and after each single commit on its way.

The rounds hit commits by chance; here none is left out.
"""

from __future__ import annotations

from collections import Counter

import pytest
from django.contrib.auth.models import User

from dashboard import permits
from dashboard.models import WaitingPod
from dashboard.permits import Target
from scheduler_core.ports import ApiError
from scheduler_core.testing.builders import make_node, make_pod_group
from tests.faults.checker import Database, Terms, check
from tests.faults.cleaning import throw_away
from tests.faults.injection import EVERYWHERE, WAYS, Shot
from tests.faults.process import Worker
from tests.faults.story import TICK, Round, configuration_text

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

MEMBERS = ("g-0", "g-1")
TIMEOUT = 60.0
#: Commits after the last binding that are tried too: rows of its end, renewals of leases.
AFTERWARDS = 6


class Play(Round):
    """Everybody does what is still to be done, again and again: create, approve, look."""

    settle_seconds = 8.0

    def __init__(self, way: str = "", number: int = 0) -> None:
        shots = [Shot(way, EVERYWHERE, number)] if way else []
        super().__init__(7, shots=shots, seconds=8.0)
        #: Commits until every member was bound.
        self.commits_until_bound = 0

    def _configuration(self) -> str:
        return configuration_text(timeout=TIMEOUT, approvers=2)

    def _first_objects(self) -> None:
        return

    def _tick(self) -> None:
        self._revive()
        self._as_worker(self._create_what_is_missing)
        for person in self.people[:2]:
            self._as_web(lambda person=person: self._approve(person))
        self._work()
        if self.worker is not None and not self.commits_until_bound and len(self.bound()) == 2:
            self.commits_until_bound = self.number_of_commits
        self.clock.advance(TICK)

    @property
    def number_of_commits(self) -> int:
        return sum(n for where, n in self.faults.commits.items() if where != "elsewhere")

    def _create_what_is_missing(self, worker: Worker) -> None:
        group = make_pod_group("g", 2).label({"kubesched.io/approval": "required"})
        node = make_node("n").capacity(cpu="4", memory="8Gi", pods="20")
        pods = [self._member(name, "g", native=False) for name in MEMBERS]
        for builder in (node, group, *pods):
            obj = builder.raw()
            namespace = obj["metadata"].get("namespace", "")
            try:
                worker.cluster.get(obj["kind"], namespace, obj["metadata"]["name"])
            except ApiError:
                self._create(builder)

    def _approve(self, person: User) -> None:
        rows = WaitingPod.objects.filter(run=self.run_id, state=WaitingPod.State.WAITING)
        missing = [
            row.pk
            for row in rows.order_by("name")
            if all(item["user"] != person.username for item in row.approvals)
        ]
        if missing:
            with self.faults.within("decide"):
                permits.decide(person, "approve", Target.rows(self.run_id, missing))

    def bound(self) -> list[str]:
        assert self.worker is not None
        pods = self.worker.cluster.list("Pod").items
        return sorted(p["metadata"]["name"] for p in pods if p["spec"].get("nodeName"))


def bindings(database: Database, play: Play) -> Counter[str]:
    query = "select name from dashboard_sandboxwrite where cluster_id = ? and verb = 'bind'"
    return Counter(row["name"] for row in database(query, play.cluster_id))


def test_a_gang_is_bound_once_whatever_commit_fails(
    people: list[User], database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = Play()
    first.run(monkeypatch)
    assert bindings(database, first) == dict.fromkeys(MEMBERS, 1)
    number = first.commits_until_bound + AFTERWARDS
    assert number > 20
    wrong: list[str] = []
    seen: Counter[str] = Counter()
    for way in WAYS:
        for nth in range(number):
            play = Play(way, nth)
            play.run(monkeypatch)
            seen += play.faults.fired
            terms = Terms(play.ended_at, away=play.away, timeouts=(TIMEOUT,))
            found = [str(v) for v in check(database, play.cluster_id, play.run_id, terms)]
            if bindings(database, play) != dict.fromkeys(MEMBERS, 1):
                found.append(f"bound: {dict(bindings(database, play))}")
            wrong += [f"{way} commit {nth} ({play.faults.log}): {text}" for text in found]
            throw_away(play.cluster_id, play.run_id)
    assert wrong == []
    assert seen.total() == number * len(WAYS)
