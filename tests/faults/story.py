"""One seeded round: a small cluster, people, users of the cluster, and what fails meanwhile."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Final

import pytest
from django.contrib.auth.models import User
from django.db import DatabaseError, connection

from dashboard import configuration, permits
from dashboard.models import SchedulerRun, WaitingPod
from dashboard.permits import Target, UnknownWaitingPod
from scheduler_core.clock import VirtualClock
from scheduler_core.ports import ApiError
from scheduler_core.records import Verdict
from scheduler_core.testing.builders import (
    make_native_pod_group,
    make_node,
    make_pod,
    make_pod_group,
)
from tests.faults.injection import (
    AWAY_POINTS,
    AWAY_WAYS,
    COMMIT_POINTS,
    WAYS,
    Faults,
    FaultyDatabase,
    Killed,
    Shot,
)
from tests.faults.process import (
    GONE_WRONG,
    LEASE_SECONDS,
    Surrounding,
    Worker,
    make_rows,
    surroundings,
)

__all__ = ["PEOPLE", "TARGETS", "TIMEOUTS", "Round", "configuration_text", "shots_of"]

Json = dict[str, Any]
_rounds = itertools.count()
NOON: Final = 1_800_000_000.0
TICK: Final = 0.25
PEOPLE: Final = ("ann", "bob", "cat")
GROUP_KINDS: Final = ("PodGroup", "PodGroup.scheduling.k8s.io")
#: How long a pod may wait for people, in the configurations of the rounds.
TIMEOUTS: Final = (6.0, 9.0, 14.0)
QUORUM_SECONDS: Final = 8

BETWEEN_DECISION_AND_BIND: Final = "between decision and bind"
BETWEEN_TWO_BINDS: Final = "between two binds of a gang"
SITUATIONS: Final = (BETWEEN_DECISION_AND_BIND, BETWEEN_TWO_BINDS)
SITUATED: Final = tuple(
    f"{what} {situation}"
    for what in ("worker killed", "node deleted", "pod deleted", "database away", "worker frozen")
    for situation in SITUATIONS
)
ANY_TIME: Final = (
    "worker killed at rest",
    "database away for a moment",
    "database away for longer than a lease",
    "worker frozen for longer than a lease",
    "web killed between two clicks",
    "doorbell lost",
)
#: Every named fault. A snapshot's connection is lost like any other's.
TARGETS: Final = (*COMMIT_POINTS, *SITUATED, *ANY_TIME, *AWAY_POINTS)


def configuration_text(
    timeout: float = TIMEOUTS[0],
    approvers: int = 1,
    at_deadline: str = "Deny",
    requester: bool = True,
    reject_percentage: int = 100,
) -> str:
    """Gangs of both kinds, and people who are asked."""
    return f"""apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
podInitialBackoffSeconds: 1
podMaxBackoffSeconds: 2
profiles:
  - schedulerName: default-scheduler
    plugins:
      queueSort: {{enabled: [{{name: Coscheduling}}], disabled: [{{name: "*"}}]}}
      multiPoint:
        enabled: [{{name: Coscheduling}}, {{name: GangScheduling}}, {{name: ManualApproval}}]
    pluginConfig:
      - name: Coscheduling
        args:
          permitWaitingTimeSeconds: {QUORUM_SECONDS}
          podGroupRejectPercentage: {reject_percentage}
      - name: ManualApproval
        args:
          timeoutSeconds: {timeout:g}
          approvers: {approvers}
          atDeadline: {at_deadline}
          requesterMayApprove: {str(requester).lower()}
"""


def shots_of(point: str, passings: int) -> list[Shot]:
    """The shot of a commit's fault, by its name."""
    for way in (*WAYS, *AWAY_WAYS):
        if point.startswith(way + " "):
            return [Shot(way, point.removeprefix(way + " "), passings)]
    return []


class Round:
    """Runs one seed. Afterwards its rows are there to be judged.

    Args:
        target: the fault that this round is about; others come by chance.
        shots: these faults of commits and no others (``target`` is not looked at).
    """

    settle_seconds = max(TIMEOUTS) + QUORUM_SECONDS

    def __init__(
        self,
        seed: int,
        *,
        target: str = "",
        shots: Sequence[Shot] | None = None,
        seconds: float = 0,
    ) -> None:
        self.seed = seed
        self.rng = random.Random(f"round {seed}")
        self.target = target
        self.faults = Faults()
        self.faults.goes_away = self._database_goes_at_a_commit
        self._planned: list[str] = []
        if shots is None:
            self._plan()
        else:
            self.faults.shots = list(shots)
        self._plot = random.Random(f"story {seed}")
        self.seconds = seconds or self._plot.uniform(12, 20)
        self.clock = VirtualClock(NOON)
        self.worker: Worker | None = None
        self._restart_at = NOON
        self._zombie: tuple[float, Worker] | None = None
        self._back_at: float | None = None
        #: (from, until) in which no worker lived, or the database was away.
        self.away: list[tuple[float, float]] = []
        self._away_since: float | None = NOON
        self._names = 0
        self.answers: list[str] = []

    def _plan(self) -> None:
        others = self.rng.sample(TARGETS, self.rng.choice((0, 1, 2, 3, 5)))
        for point in dict.fromkeys([self.target, *others]):
            shots = shots_of(point, self._spared(point))
            self.faults.shots += shots
            if not shots and point:
                self._planned.append(point)

    def _spared(self, point: str) -> int:
        """How many commits the fault lets pass; there are few with bindings in a round."""
        few = point.endswith(" bind")
        if point == self.target:
            return self.rng.choice((0, 0, 1) if few else (0, 0, 1, 2, 5))
        return self.rng.randrange(4 if few else 12)

    # --- the whole round ----------------------------------------------------------------------

    def run(self, patch: pytest.MonkeyPatch) -> None:
        """Live through it, then let everything settle.

        Raises:
            AssertionError: something came to no rest.
        """
        text = self._configuration()
        name = f"round-{self.seed}-{next(_rounds)}"
        self.cluster_id, self.run_id = make_rows(name, self.seed, text)
        self.around = Surrounding(self.clock, self.rng, self.faults, self.cluster_id, self.run_id)
        self.around.waits = self._wait
        self.people = list(User.objects.filter(username__in=PEOPLE).order_by("username"))
        with surroundings(self.around, patch), FaultyDatabase(self.faults).installed():
            while self.worker is None:
                self._revive()
                self._wait(TICK)
            self._first_objects()
            until = self.clock.now() + self.seconds
            while self.clock.now() < until:
                self._tick()
            self._settle()

    def _settle(self) -> None:
        """Nothing fails any more, nobody says anything; what can happen happens."""
        self.faults.shots, self._planned = [], []
        self.around.doorbell_rings = True
        self._database_returns()
        self._zombie = None
        until = self.clock.now() + self.settle_seconds
        while self.clock.now() < until or self.worker is None:
            self._revive()
            if self.worker is not None:
                self._as_worker(lambda worker: worker.renew())
                self._as_worker(lambda worker: worker.settle())
            self.clock.advance(0.5)
        assert self.worker.recorder.queued == 0
        self.ended_at = self.clock.now()
        self.worker.end()
        self.worker = None

    def _tick(self) -> None:
        self._time_goes_on()
        self._revive()
        if self._plot.random() < 0.6:
            self._as_web(self._somebody_decides)
        if self._plot.random() < 0.18:
            self._users_act()
        if self._plot.random() < (0.15 if self.target.endswith("configure") else 0.02):
            self._as_web(self._somebody_configures)
        self._work()
        self.clock.advance(TICK)

    # --- the worker -----------------------------------------------------------------------------

    def _work(self) -> None:
        """A few steps in an order by chance, with people between them, then all that is due: what
        the scheduler owes at once. Bindings and the recorder may take their time."""
        self._as_worker(lambda worker: worker.renew())
        for _ in range(self.rng.randint(1, 6)):
            self._as_worker(self.rng.choice(_STEPS))
            self._look_for_a_situation()
            if self.rng.random() < 0.1:
                self._as_web(self._somebody_decides)
        slow = self.rng.random() < 0.5
        self._as_worker(lambda worker: worker.turns() if slow else worker.settle())
        self._look_for_a_situation()
        if self.rng.random() < (0.15 if self.target.endswith("snapshot") else 0.03):
            self._as_worker(lambda worker: worker.save_snapshot())
        if self.worker is not None and self.worker.is_lost:
            self._end_worker()

    def _as_worker(self, step: Callable[[Worker], object]) -> None:
        """A step of the worker, if there is one; whatever it comes to."""
        if self.worker is None:
            return
        try:
            step(self.worker)
        except Killed:
            self._worker_is_gone()
        except GONE_WRONG:
            self._end_worker()

    def _revive(self) -> None:
        if self.worker is None and self.clock.now() >= self._restart_at:
            self._start_worker()

    def _start_worker(self) -> None:
        worker = self.worker = Worker(self.around)
        try:
            if worker.start():
                self._is_back()
                return
        except Killed:
            self._worker_is_gone()
            return
        except GONE_WRONG:
            pass
        self._end_worker()

    def _end_worker(self) -> None:
        worker, self.worker = self.worker, None
        assert worker is not None
        connection.close()
        try:
            worker.end()
        except Killed:
            self.faults.bury()
            worker.vanish()
        except GONE_WRONG:
            worker.vanish()
        self._is_away(self.rng.uniform(0, 2))

    def _worker_is_gone(self) -> None:
        """It was killed: its leases run out."""
        worker, self.worker = self.worker, None
        assert worker is not None
        self.faults.bury()
        worker.vanish()
        self._is_away(LEASE_SECONDS + self.rng.uniform(0, 2))

    def _is_away(self, seconds: float) -> None:
        self._restart_at = self.clock.now() + seconds
        if self._away_since is None:
            self._away_since = self.clock.now()

    def _is_back(self) -> None:
        if self._away_since is not None and not self.faults.away:
            self.away.append((self._away_since, self.clock.now()))
            self._away_since = None

    # --- faults that are not those of a commit ---------------------------------------------------

    def _look_for_a_situation(self) -> None:
        if not self._planned or self.worker is None:
            return
        found = list(_situations(self.worker))
        for situation, uid in found:
            for point in self._planned:
                if point.endswith(situation):
                    self._planned.remove(point)
                    self.faults.note(point)
                    self._happens(point.removesuffix(f" {situation}"), uid)
                    return

    def _time_goes_on(self) -> None:
        """What happens at any time: now and then, one of those that are planned."""
        now = self.clock.now()
        if self._back_at is not None and now >= self._back_at:
            self._database_returns()
        if self._zombie is not None and now >= self._zombie[0] and self.worker is not None:
            self._zombie_wakes_up(self._zombie[1])
            self._zombie = None
        if self._plot.random() > 0.12:
            return
        for point in self._planned:
            if point in ANY_TIME and (self.worker is not None or point == "doorbell lost"):
                self._planned.remove(point)
                if point != "doorbell lost":
                    self.faults.note(point)
                self._happens(point, "")
                return

    def _happens(self, what: str, uid: str) -> None:
        worker = self.worker
        if what.startswith("worker killed"):
            self._worker_is_gone()
        elif what.startswith("worker frozen"):
            assert worker is not None
            worker.vanish()
            self.worker = None
            self._is_away(LEASE_SECONDS + self.rng.uniform(0, 2))
            self._zombie = (self._restart_at + self.rng.uniform(0, 3), worker)
        elif what.startswith("database away"):
            long = what.endswith("lease") or self.rng.random() < 0.3
            self._database_goes(self.rng.uniform(5, 7) if long else self.rng.uniform(0.2, 2.5))
        elif what == "doorbell lost":
            self.around.doorbell_rings = False
        elif what in ("node deleted", "pod deleted"):
            self._deleted(what, uid)

    def _database_goes_at_a_commit(self) -> None:
        self._database_goes(self.rng.uniform(0.2, 7))

    def _wait(self, seconds: float) -> None:
        """Nothing happens, save that a database that is away comes back."""
        self.clock.advance(seconds)
        if self._back_at is not None and self.clock.now() >= self._back_at:
            self._database_returns()

    def _database_goes(self, seconds: float) -> None:
        connection.close()
        self.faults.away = True
        self._back_at = self.clock.now() + seconds
        if self._away_since is None:
            self._away_since = self.clock.now()

    def _database_returns(self) -> None:
        self.faults.away, self._back_at = False, None
        if self.worker is not None:
            self._is_back()

    def _zombie_wakes_up(self, zombie: Worker) -> None:
        """A worker that stood still goes on where it was, not knowing that it has a successor."""
        with suppress(*GONE_WRONG):
            for _ in range(3):
                zombie.scheduler.run_once()
                zombie.run_binding()
            told = zombie.recorder.queued
            zombie.recorder.pump()
            wrote = told and not zombie.recorder.fenced and not self.faults.away
            assert not wrote or zombie.recorder.queued, "a worker wrote without its lease"

    # --- people -------------------------------------------------------------------------------

    def _as_web(self, act: Callable[[], None]) -> None:
        try:
            act()
        except Killed:
            self.faults.bury()
        except DatabaseError:
            connection.close()  # the person reads that it did not work

    @property
    def _is_about_binding(self) -> bool:
        """It needs approvals to come to its fault."""
        return self.target in SITUATED or self.target.endswith(" bind")

    def _somebody_decides(self) -> None:
        rng = self._plot
        person = rng.choice(self.people)
        rows = list(WaitingPod.objects.filter(run=self.run_id, state__in=WaitingPod.OPEN))
        rows.sort(key=lambda row: (row.namespace, row.name, row.pk))
        if not rows:
            return
        if rng.random() < 0.1:  # a page that was open for long
            rows = list(WaitingPod.objects.filter(run=self.run_id).order_by("pk"))
        now = self.clock.now()
        urgent = [row for row in rows if abs(row.deadline - now) <= 2 * TICK]
        row = rng.choice(urgent or rows)
        verdict = rng.choices(list(Verdict), (86, 6, 8) if self._is_about_binding else (7, 1, 2))[0]
        if row.pod_group and rng.random() < 0.6:
            target = Target.whole_gang(self.run_id, row.pod_group)
        else:
            target = Target.rows(self.run_id, [row.pk])
        with suppress(UnknownWaitingPod), self.faults.within("decide"):
            answers = permits.decide(person, verdict, target, comment=f"at {now:.2f}")
            self.answers += [answer.code.value for answer in answers]

    def _somebody_configures(self) -> None:
        run = SchedulerRun.objects.get(pk=self.run_id)
        with self.faults.within("configure"):
            configuration.change(
                self.run_id, text=self._configuration(), comment="", version=run.config_version,
                user=self.people[0],
            )  # fmt: skip

    def _configuration(self) -> str:
        rng = self._plot
        return configuration_text(
            timeout=rng.choice(TIMEOUTS),
            approvers=rng.choice((1, 1, 2)),
            at_deadline=rng.choice(("Deny", "Deny", "Approve")),
            requester=rng.choice((True, False)),
            reject_percentage=rng.choice((10, 100)),
        )

    # --- users of the cluster -------------------------------------------------------------------

    def _first_objects(self) -> None:
        for number in range(3):
            self._create(make_node(f"node-{number}").capacity(cpu="4", memory="8Gi", pods="20"))
        self._new_gang(native=False)
        self._new_gang(native=self._plot.random() < 0.6)
        for _ in range(self._plot.randint(1, 3)):
            self._new_pod()

    def _users_act(self) -> None:
        rng = self._plot
        acts: list[tuple[int, Callable[[], None]]] = [
            (5, self._new_pod),
            (3, lambda: self._new_gang(native=rng.random() < 0.4)),
            (3, self._delete_some_pod),
            (2, self._make_pod_again),
            (1, self._delete_some_node),
            (3, self._change_some_group),
            (1, self._delete_some_group),
            (2, self._new_node),
        ]
        weights, choices = zip(*acts, strict=True)
        rng.choices(choices, weights)[0]()

    def _name(self, prefix: str) -> str:
        self._names += 1
        return f"{prefix}-{self._names}"

    def _new_pod(self) -> None:
        pod = make_pod(self._name("pod")).req(cpu=self._plot.choice(("1", "2")))
        if self._plot.random() < 0.8:
            pod.label({"kubesched.io/approval": "required"})
            pod.annotation({"kubesched.io/requested-by": self._plot.choice(PEOPLE)})
        self._create(pod)

    def _new_gang(self, native: bool) -> None:
        rng = self._plot
        name, members = self._name("gang"), rng.randint(2, 3)
        wanted = members if rng.random() < 0.85 else members - 1
        group = make_native_pod_group(name, wanted) if native else make_pod_group(name, wanted)
        group.label({"kubesched.io/approval": "required"})
        group.annotation({"kubesched.io/requested-by": rng.choice(PEOPLE)})
        self._create(group)
        for number in range(members):
            self._create(self._member(f"{name}-{number}", name, native))

    def _member(self, name: str, group: str, native: bool) -> Any:
        pod = make_pod(name).req(cpu=self._plot.choice(("1", "1", "2")))
        return pod.scheduling_group(group) if native else pod.pod_group(group)

    def _new_node(self) -> None:
        name = self._name("late-node")
        self._create(make_node(name).capacity(cpu="4", memory="8Gi", pods="20"))

    def _delete_some_pod(self) -> None:
        pod = self._some("Pod")
        if pod is not None:
            self._delete("Pod", pod)

    def _make_pod_again(self) -> None:
        """Another pod of the same name: what was said of the first is not said of it."""
        pod = self._some("Pod")
        if pod is None:
            return
        self._delete("Pod", pod)
        labels = pod["metadata"].get("labels") or {}
        again = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": pod["metadata"]["name"],
                "namespace": "default",
                "labels": labels,
                "annotations": pod["metadata"].get("annotations") or {},
            },
            "spec": {
                "containers": [
                    {key: item[key] for key in ("name", "image", "resources") if key in item}
                    for item in pod["spec"]["containers"]
                ],
            },
        }
        if pod["spec"].get("schedulingGroup"):
            again["spec"]["schedulingGroup"] = pod["spec"]["schedulingGroup"]
        self._ask(lambda cluster: cluster.create("Pod", again))

    def _delete_some_node(self) -> None:
        node = self._some("Node")
        if node is not None:
            self._delete("Node", node)

    def _change_some_group(self) -> None:
        """A lower or a higher number, or only another label."""
        group = self._some("PodGroup")
        if group is None:
            return
        change: Json = {"metadata": {"labels": {"changed": self._name("x")}}}
        if self._plot.random() < 0.7:
            wanted = max(1, int(group["spec"]["minMember"]) + self._plot.choice((-1, 1)))
            change = {"spec": {"minMember": wanted}}
        name = group["metadata"]["name"]
        self._ask(lambda cluster: cluster.patch("PodGroup", "default", name, change))

    def _delete_some_group(self) -> None:
        kind = self._plot.choice(GROUP_KINDS)
        group = self._some(kind)
        if group is not None:
            self._delete(kind, group)

    def _deleted(self, what: str, uid: str) -> None:
        """The pod that is about to be bound, or the node that it is to be bound to."""
        worker = self.worker
        assert worker is not None
        pod = next(p for p in worker.cluster.list("Pod").items if p["metadata"]["uid"] == uid)
        if what == "pod deleted":
            self._delete("Pod", pod)
            return
        record = worker.scheduler.waiting_room._let_go[uid]
        self._delete("Node", {"metadata": {"name": record.node}})

    def _some(self, kind: str) -> Json | None:
        """One of a kind, by chance; None where there is none, or nobody answers."""
        found = self._ask(lambda cluster: cluster.list(kind).items) or []
        return self._plot.choice(found) if found else None

    def _create(self, builder: Any) -> None:
        obj = builder.raw()
        kind = GROUP_KINDS[1] if obj["apiVersion"].startswith("scheduling.k8s.io") else obj["kind"]
        self._ask(lambda cluster: cluster.create(kind, obj))

    def _delete(self, kind: str, obj: Json) -> None:
        namespace = obj["metadata"].get("namespace", "")
        name = obj["metadata"]["name"]
        self._ask(lambda cluster: cluster.delete(kind, namespace, name, grace_period_seconds=0))

    def _ask(self, request: Callable[[Any], Any]) -> Any:
        """A request of a user; None where it is refused, or the sandbox is away."""
        answer: list[Any] = []

        def ask(worker: Worker) -> None:
            with suppress(ApiError), self.faults.within("journal"):
                answer.append(request(worker.cluster.as_actor("user")))

        self._as_worker(ask)
        return answer[0] if answer else None


def _pump_a_little(worker: Worker) -> None:
    worker.recorder.pump(worker.around.rng.randint(1, 4))


_STEPS: Final[tuple[Callable[[Worker], object], ...]] = (
    Worker.turn,
    Worker.turn,
    Worker.run_binding,
    Worker.look,
    Worker.tick_controllers,
    _pump_a_little,
)


def _situations(worker: Worker) -> Iterator[tuple[str, str]]:
    """Where the worker stands: (situation, uid of a pod that is let go and not bound)."""
    let_go = worker.scheduler.waiting_room._let_go
    tasks = worker.executor.waiting()
    pods = {pod["metadata"]["uid"]: pod for pod in worker.cluster.list("Pod").items}
    for uid, record in let_go.items():
        if uid not in tasks or uid not in pods or pods[uid]["spec"].get("nodeName"):
            continue
        yield BETWEEN_DECISION_AND_BIND, uid
        if record.pod_group and any(
            _is_bound_member(pod, record.pod_group) for pod in pods.values()
        ):
            yield BETWEEN_TWO_BINDS, uid


def _is_bound_member(pod: Json, group: str) -> bool:
    labels = pod["metadata"].get("labels") or {}
    name = labels.get("scheduling.x-k8s.io/pod-group") or (
        pod["spec"].get("schedulingGroup") or {}
    ).get("podGroupName")
    return bool(pod["spec"].get("nodeName")) and f"default/{name}" == group
