"""Who leads: two and more candidates, clocks that are wrong, servers that hang."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from scheduler_core.clock import VirtualClock
from scheduler_core.kube.api import KubeApi
from scheduler_core.kube.cluster import KubeCluster
from scheduler_core.kube.election import LeaderElector, LeaseSettings
from scheduler_core.kube.fence import LeaseLost
from scheduler_core.kube.rate_limit import RateLimit
from scheduler_core.kube.transport import Answer
from scheduler_core.ports import Fenced
from tests.contract.support import pod
from tests.kube.fake import (
    FakeServer,
    FakeTransport,
    Request,
    VirtualTiming,
    lost,
    on,
    status,
)

SETTINGS = LeaseSettings("kubesched")


class Candidate:
    """A worker in virtual time: one that is stopped makes no turns."""

    def __init__(self, server: FakeServer, name: str, skew: float = 0.0) -> None:
        self.changes: list[bool] = []
        self.elector = LeaderElector(
            SETTINGS,
            name,
            server.open(1),
            clock=VirtualClock(server.timing.monotonic() + skew),
            timing=server.timing,
            random=lambda: 0.5,
            on_change=self.changes.append,
        )

    @property
    def leads(self) -> bool:
        return self.elector.leads


def go_on(timing: VirtualTiming, seconds: float, *candidates: Candidate) -> list[int]:
    """Everybody has a turn each two seconds; how many led at each moment in between."""
    leaders: list[int] = []
    end = timing.monotonic() + seconds
    while timing.monotonic() < end:
        for candidate in candidates:
            candidate.elector.turn()
            leaders.append(sum(c.leads for c in candidates))
        timing.clock.advance(2)
    return leaders


def test_one_leads_and_the_next_takes_over_within_the_lease(
    server: FakeServer, timing: VirtualTiming
) -> None:
    a, b = Candidate(server, "a"), Candidate(server, "b")
    assert max(go_on(timing, 60, a, b)) == 1
    assert (a.leads, b.leads) == (True, False)
    died = timing.monotonic()
    while not b.leads:
        go_on(timing, 2, b)
    assert timing.monotonic() - died <= SETTINGS.lease_duration + 4
    assert not a.leads
    lease = server.leases["kubesched"]["spec"]
    assert (lease["holderIdentity"], lease["leaseTransitions"]) == ("b", 1)


def test_ten_candidates(server: FakeServer, timing: VirtualTiming) -> None:
    everybody = [Candidate(server, f"w{index}") for index in range(10)]
    assert set(go_on(timing, 120, *everybody)) == {1}


@pytest.mark.parametrize("skew", [-86_400.0, -3.0, 3.0, 86_400.0])
def test_the_time_of_day_does_not_matter(
    server: FakeServer, timing: VirtualTiming, skew: float
) -> None:
    a, b = Candidate(server, "a"), Candidate(server, "b", skew)
    assert max(go_on(timing, 60, a, b)) == 1
    assert a.leads
    died = timing.monotonic()
    while not b.leads:
        go_on(timing, 2, b)
    assert SETTINGS.lease_duration - 2 <= timing.monotonic() - died <= SETTINGS.lease_duration + 4
    assert max(go_on(timing, 60, a, b)) == 1


def test_the_right_to_write_ends_before_anybody_else_may_lead(
    server: FakeServer, timing: VirtualTiming
) -> None:
    """Also where the holder hangs: nothing has to run for it."""
    a, b = Candidate(server, "a"), Candidate(server, "b")
    go_on(timing, 4, a, b)
    assert a.elector.check() <= SETTINGS.renew_deadline
    ended = None
    began = timing.monotonic()
    while not b.leads:
        if not a.leads and ended is None:
            ended = timing.monotonic()
        assert not (a.leads and b.leads)
        go_on(timing, 1, b)
    assert ended is not None
    assert ended - began <= SETTINGS.renew_deadline
    with pytest.raises(LeaseLost, match="a does not hold the lease kube-system/kubesched"):
        a.elector.check()


def test_a_process_that_was_stopped_and_goes_on_is_no_leader(
    server: FakeServer, timing: VirtualTiming
) -> None:
    a, b = Candidate(server, "a"), Candidate(server, "b")
    go_on(timing, 4, a, b)
    go_on(timing, 40, b)
    assert (a.leads, b.leads) == (False, True)
    a.elector.turn()
    assert (a.leads, b.leads) == (False, True)
    assert a.changes == [True, False]


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(status(500, "InternalError"), id="500"),
        pytest.param(status(503, "ServiceUnavailable"), id="503"),
        pytest.param(lost(), id="reset"),
        pytest.param(Answer(200, b"<html>"), id="a proxy's page"),
    ],
)
def test_a_server_in_trouble(
    server: FakeServer, timing: VirtualTiming, fault: Answer | Exception
) -> None:
    a = Candidate(server, "a")
    go_on(timing, 4, a)
    server.before.append(on("GET", "/kubesched", fault))
    go_on(timing, 6, a)
    assert a.leads  # what it has lasts until the renew deadline
    assert a.elector.trouble
    go_on(timing, 8, a)
    assert not a.leads
    assert a.changes == [True, False]
    server.before.clear()
    go_on(timing, 4, a)
    assert a.leads
    assert a.elector.trouble == ""


def test_a_hung_write_does_not_prolong(server: FakeServer, timing: VirtualTiming) -> None:
    a = Candidate(server, "a")
    go_on(timing, 4, a)

    def hang(request: Request) -> Any:
        if request.verb != "PUT":
            return None
        timing.clock.advance(12)
        raise lost()

    server.before.append(hang)
    a.elector.turn()
    assert not a.leads
    assert a.changes == [True, False]


def test_a_slow_answer_counts_from_when_it_was_asked_for(
    server: FakeServer, timing: VirtualTiming
) -> None:
    a = Candidate(server, "a")

    def slow(request: Request) -> Any:
        if request.verb in ("PUT", "POST"):
            timing.clock.advance(4)

    server.before.append(slow)
    a.elector.turn()
    assert a.elector.check() <= SETTINGS.renew_deadline - 4


def test_a_renewal_whose_answer_was_lost_is_ours(server: FakeServer, timing: VirtualTiming) -> None:
    a = Candidate(server, "a")
    go_on(timing, 4, a)
    server.after.append(on("PUT", "/kubesched", lost()))
    a.elector.turn()
    assert a.leads
    server.after.clear()
    timing.clock.advance(2)
    a.elector.turn()
    assert a.leads
    assert a.changes == [True]


def test_it_is_given_back_at_the_end(server: FakeServer, timing: VirtualTiming) -> None:
    a, b = Candidate(server, "a"), Candidate(server, "b")
    go_on(timing, 4, a, b)
    a.elector.stop()
    a.elector.run()
    assert server.leases["kubesched"]["spec"]["holderIdentity"] == ""
    b.elector.turn()
    assert b.leads
    assert a.changes == [True, False]


def test_a_lease_of_a_stock_scheduler_is_waited_for(
    server: FakeServer, timing: VirtualTiming
) -> None:
    """It may be valid for longer than ours would."""
    spec = {
        "holderIdentity": "stock_1",
        "leaseDurationSeconds": 60,
        "renewTime": "2001-01-01T00:00:00.000000Z",
        "leaseTransitions": 4,
    }
    metadata = {"name": "kubesched", "namespace": "kube-system", "resourceVersion": "7"}
    server.leases["kubesched"] = {"metadata": metadata, "spec": spec}
    a = Candidate(server, "a")
    go_on(timing, 58, a)
    assert not a.leads
    assert a.elector.holder == "stock_1"
    go_on(timing, 6, a)
    assert a.leads
    assert server.leases["kubesched"]["spec"]["leaseTransitions"] == 5


def test_the_lease_is_never_shorter_than_the_right_to_write(
    server: FakeServer, timing: VirtualTiming
) -> None:
    """The API knows whole seconds alone."""
    elector = LeaderElector(
        LeaseSettings("kubesched", "kube-system", 2.4, 2.3, 0.5),
        "a",
        server.open(1),
        clock=timing.clock,
        timing=timing,
        random=lambda: 0.5,
    )
    elector.turn()
    assert server.leases["kubesched"]["spec"]["leaseDurationSeconds"] == 3


def test_a_fault_of_our_own_does_not_end_the_candidacy(
    server: FakeServer, timing: VirtualTiming
) -> None:
    a = Candidate(server, "a")
    server.before.append(on("GET", "/kubesched", RuntimeError("a bug")))
    a.elector.turn()
    assert (a.leads, a.elector.trouble) == (False, "RuntimeError")
    server.before.clear()
    a.elector.turn()
    assert (a.leads, a.elector.trouble) == (True, "")


@pytest.mark.parametrize(
    ("durations", "text"),
    [
        pytest.param((10, 10, 2), "leaseDuration must be greater than renewDeadline", id="lease"),
        pytest.param(
            (15, 2.4, 2),
            r"renewDeadline must be greater than retryPeriod\*JitterFactor",
            id="renew",
        ),
        pytest.param((15, 10, 0), "retryPeriod must be greater than zero", id="retry"),
    ],
)
def test_durations_that_could_leave_two_leaders(
    durations: tuple[float, float, float], text: str
) -> None:
    with pytest.raises(ValueError, match=text):
        LeaseSettings("x", "y", *durations)


# -- what it is for --------------------------------------------------------------------------------


def test_nothing_is_written_without_the_lease(
    server: FakeServer, timing: VirtualTiming, cluster: KubeCluster
) -> None:
    uid = server.sandbox.create("Pod", pod())["metadata"]["uid"]
    elector = cluster.elect(SETTINGS, "a")
    writes: list[Any] = [
        lambda: cluster.bind("default", "web", uid, "n1"),
        lambda: cluster.delete("Pod", "default", "web", uid=uid),
        lambda: cluster.patch("Pod", "default", "web", {}),
        lambda: cluster.create("Pod", pod("other")),
        lambda: cluster.update("Pod", pod()),
        lambda: cluster.patch_pod_status("default", "web", uid, nominated_node_name="n1"),
    ]
    for write in writes:
        with pytest.raises(LeaseLost):
            write()
    with pytest.raises(LeaseLost):
        cluster.check_writable()  # what an extender that binds is asked after
    assert isinstance(cluster, Fenced)
    assert {r.method for r in server.requests} <= {"GET"}
    elector.turn()
    cluster.check_writable()
    cluster.bind("default", "web", uid, "n1")
    assert server.sandbox.get("Pod", "default", "web")["spec"]["nodeName"] == "n1"


def test_a_write_has_to_be_over_before_the_lease_is(
    server: FakeServer, timing: VirtualTiming, cluster: KubeCluster
) -> None:
    uid = server.sandbox.create("Pod", pod())["metadata"]["uid"]
    cluster.elect(SETTINGS, "a").turn()
    timing.clock.advance(6)
    cluster.bind("default", "web", uid, "n1")
    assert server.asked("POST", "/binding")[0].query["timeout"] == "4s"


def test_also_in_its_last_moment(
    server: FakeServer, timing: VirtualTiming, cluster: KubeCluster
) -> None:
    uid = server.sandbox.create("Pod", pod())["metadata"]["uid"]
    cluster.elect(SETTINGS, "a").turn()
    timing.clock.advance(9.75)
    cluster.bind("default", "web", uid, "n1")
    assert server.asked("POST", "/binding")[0].query["timeout"] == "250ms"


def test_a_write_that_waited_for_a_connection_asks_for_the_lease_afterwards(
    server: FakeServer, timing: VirtualTiming
) -> None:
    """Every connection hangs; when one is free at last, the lease is another's."""
    elector = Candidate(server, "a").elector
    elector.turn()
    hanging, go_on = threading.Event(), threading.Event()

    class Hanging(FakeTransport):
        def request(self, method: str, path: str, **how: Any) -> Answer:
            hanging.set()
            assert go_on.wait(10)
            return super().request(method, path, **how)

    api = KubeApi(
        Hanging(server),
        server.open(1),
        timing,
        lambda: 0.5,
        RateLimit(-1, 1, timing),
        elector,
        slots=threading.Semaphore(1),
    )
    server.requests.clear()
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(api.get, "/api/v1/nodes")
        assert hanging.wait(10)
        second = pool.submit(api.call, "DELETE", "/api/v1/nodes/n1")
        timing.clock.advance(11)
        go_on.set()
        assert first.result(10)["items"] == []
        with pytest.raises(LeaseLost):
            second.result(10)
    assert {request.method for request in server.requests} == {"GET"}


def test_a_lost_answer_is_not_repeated_after_the_lease(
    server: FakeServer, timing: VirtualTiming, cluster: KubeCluster
) -> None:
    uid = server.sandbox.create("Pod", pod())["metadata"]["uid"]
    cluster.elect(SETTINGS, "a").turn()

    def hang(request: Request) -> Any:
        if not request.path.endswith("/binding"):
            return None
        timing.clock.advance(11)
        raise lost()

    server.before.append(hang)
    with pytest.raises(LeaseLost):
        cluster.bind("default", "web", uid, "n1")
    assert len(server.asked("POST", "/binding")) == 1
