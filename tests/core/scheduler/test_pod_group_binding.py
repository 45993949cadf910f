"""A native pod group that can be scheduled: the second Permit run, binding, people's words, a
restart (gang.md, section 3); a named case for each rule."""

from __future__ import annotations

import yaml

from scheduler_core.api import NATIVE_POD_GROUP, Pod, load_manifest_file
from scheduler_core.executor import InlineExecutor
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.status import SKIP, SUCCESS, Status, error, unschedulable, wait
from scheduler_core.plugins.gang_scheduling.plugin import LOST_A_MEMBER
from scheduler_core.pod_group_attempt import GROUP_UNSCHEDULABLE
from scheduler_core.records import (
    Outcome,
    PendingPlugin,
    PermitDecision,
    PodRef,
    Verdict,
    WaitingPodRecord,
)
from scheduler_core.scheduler_options import SchedulerOptions
from scheduler_core.testing.builders import make_native_pod_group
from scheduler_core.testing.harness import Harness
from tests.core.scheduler.native_gang import (
    EXAMPLES,
    gang_harness,
    group_condition,
    last,
    member,
    node,
    nodes_of,
    place,
    profile,
    spy,
)

# -- for good ------------------------------------------------------------------------------------


def test_permit_runs_a_second_time_in_normal_mode() -> None:
    runs: list[tuple[str, bool]] = []

    def note(state: CycleState, pod: Pod, _node: str) -> tuple[Status, float]:
        runs.append((pod.name, state.pod_group_cycle))
        return SUCCESS, 0.0

    gang_harness(
        nodes=[node("n", "9")], pods=[member("a"), member("b")], plugins=[spy("Note", permit=note)]
    )
    assert runs == [("a", True), ("b", True), ("a", False), ("b", False)]


def test_a_wait_in_the_second_run_really_parks_the_pod() -> None:
    def ask(state: CycleState, _pod: Pod, _node: str) -> tuple[Status, float]:
        return (SUCCESS, 0.0) if state.pod_group_cycle else (wait("asks"), 60.0)

    harness = gang_harness(
        nodes=[node("n", "9")], pods=[member("a"), member("b")], plugins=[spy("Ask", permit=ask)]
    )
    assert harness.waiting_names() == ["a", "b"]
    assert [last(harness, name).outcome for name in "ab"] == [Outcome.WAITING] * 2
    assert group_condition(harness)["status"] == "True"
    for waiting in harness.scheduler.waiting_pods:
        assert waiting.pending_plugins == ("Ask",)  # the quorum is there from the start
        waiting.allow("Ask")
    harness.settle()
    assert nodes_of(harness, "a", "b") == ["n", "n"]


def test_a_permit_plugin_that_always_waits_makes_every_group_unschedulable() -> None:
    """Section 3's consequence: nobody gives Success in the group's cycle."""

    def ask(_state: CycleState, _pod: Pod, _node: str) -> tuple[Status, float]:
        return wait("asks a person"), 60.0

    harness = gang_harness(
        nodes=[node("n", "9")], pods=[member("a"), member("b")], plugins=[spy("Ask", permit=ask)]
    )
    assert nodes_of(harness, "a", "b") == ["", ""]
    assert harness.waiting_names() == []
    assert last(harness, "b").message.startswith(f"{GROUP_UNSCHEDULABLE}, asks a person")


def test_a_gang_that_loses_a_member_waiting_at_permit_is_given_up() -> None:
    def ask(state: CycleState, _pod: Pod, _node: str) -> tuple[Status, float]:
        return (SUCCESS, 0.0) if state.pod_group_cycle else (wait("asks"), 60.0)

    harness = gang_harness(
        nodes=[node("n", "9")], pods=[member("a"), member("b")], plugins=[spy("Ask", permit=ask)]
    )
    waiting = {w.pod.name: w for w in harness.scheduler.waiting_pods}
    waiting["a"].reject("Ask", "no")
    waiting["b"].allow("Ask")
    waiting["b"].ask("Later", 5.0, harness.clock.now(), "x")
    harness.settle()
    assert nodes_of(harness, "a", "b") == ["", ""]
    ends = {record.pod.name: record.message for record in harness.observer.resolved}
    assert ends == {"a": "no", "b": LOST_A_MEMBER}


def test_a_gang_of_which_permit_turns_too_many_down_is_not_bound() -> None:
    """Only the second run says no, to one member of the two that are needed."""

    def fickle(state: CycleState, pod: Pod, _node: str) -> tuple[Status, float]:
        no = pod.name == "b" and not state.pod_group_cycle
        return (unschedulable("changed its mind") if no else SUCCESS), 0.0

    harness = gang_harness(
        nodes=[node("n", "9")],
        pods=[member("a"), member("b")],
        plugins=[spy("Fickle", permit=fickle)],
    )
    assert nodes_of(harness, "a", "b") == ["", ""]
    assert "changed its mind" in harness.cycles("b")[0].message
    assert harness.cycles("a")[0].message == (
        f"0/1 nodes are available: 1 {LOST_A_MEMBER}. "
        "pod group default/g: 1 of minCount 2 pods passed Permit the second time"
    )
    assert group_condition(harness)["reason"] == "Unschedulable"


def test_a_gang_of_which_reserve_turns_too_many_down_is_not_bound() -> None:
    def fickle(state: CycleState, pod: Pod, _node: str) -> Status:
        no = pod.name == "a" and not state.pod_group_cycle
        return unschedulable("taken meanwhile") if no else SUCCESS

    harness = gang_harness(
        nodes=[node("n", "9")],
        pods=[member("a"), member("b")],
        plugins=[spy("Fickle", reserve=fickle)],
    )
    assert nodes_of(harness, "a", "b") == ["", ""]
    assert harness.scheduler.cache.pod_count == 0


def test_each_member_is_bound_on_its_own() -> None:
    """One binding fails: the others stay, and it is tried again as a group of one."""
    fails: list[str] = ["b"]

    def bind(_state: CycleState, pod: Pod, _node: str) -> Status:
        if pod.name in fails:
            fails.remove(pod.name)
            return error("connection reset")
        return SKIP

    flaky = spy("Flaky", bind=bind)
    config = profile()
    config["plugins"]["bind"] = {
        "disabled": [{"name": "*"}],
        "enabled": [{"name": "Flaky"}, {"name": "DefaultBinder"}],
    }
    harness = gang_harness(
        nodes=[node("n", "9")],
        pods=[member(name) for name in "abc"],
        min_count=3,
        plugins=[flaky],
        profile=config,
    )
    assert nodes_of(harness, "a", "b", "c") == ["n", "", "n"]
    harness.advance(3.0)
    assert harness.node_of("b") == "n"


# -- after a restart -----------------------------------------------------------------------------


def waited(name: str, uid: str, now: float) -> WaitingPodRecord:
    return WaitingPodRecord(
        cycle=1,
        pod=PodRef(uid, "default", name),
        node="n",
        profile="default-scheduler",
        priority=0,
        since=now - 60.0,
        deadline=now + 240.0,
        pending=(PendingPlugin("GangScheduling", now + 240.0, ""),),
        pod_group="default/g",
    )


def restarted(b_cpu: str) -> Harness:
    """The scheduler after a restart: a waited for its gang, b is in the queue."""
    first = Harness(
        nodes=[node("n", "9")],
        pods=[member("a"), member("b", cpu=b_cpu)],
        objects={NATIVE_POD_GROUP: [make_native_pod_group("g", 2)]},
        profile=profile(),
    )
    uid = first.pod("a")["metadata"]["uid"]
    harness = Harness(
        cluster=first.cluster,
        clock=first.clock,
        waiting=[waited("a", uid, first.clock.now())],
        profile=profile(),
    )
    harness.settle()
    return harness


def test_a_member_alone_at_permit_waits_five_minutes_at_most() -> None:
    harness = restarted(b_cpu="90")
    assert harness.waiting_names() == ["a"]
    assert harness.observer.waiting[-1].pending[0].plugin == "GangScheduling"
    harness.advance(239.0)
    assert harness.waiting_names() == ["a"]
    harness.advance(2.0)
    end = harness.observer.resolved[-1]
    assert end.message == "rejected due to timeout after waiting 5m0s at plugin GangScheduling"
    assert nodes_of(harness, "a", "b") == ["", ""]


def test_the_rest_of_the_gang_releases_members_that_wait() -> None:
    harness = restarted(b_cpu="1")
    assert nodes_of(harness, "a", "b") == ["n", "n"]
    assert harness.observer.resolved[-1].resolved_by == "GangScheduling"


# -- odds and ends -------------------------------------------------------------------------------


def test_a_pod_group_that_goes_while_its_pods_back_off_gates_them() -> None:
    harness = gang_harness(nodes=[node("n", "1")], pods=[member("a"), member("b")])
    harness.cluster.delete(NATIVE_POD_GROUP, "default", "g")
    harness.advance(20.0)
    assert [place(harness, name) for name in "ab"] == ["gated", "gated"]
    harness.create(NATIVE_POD_GROUP, make_native_pod_group("g", 1))
    harness.advance(20.0)
    assert harness.node_of("a") == "n"


def test_a_pod_group_that_goes_while_its_pods_are_in_active_q_is_an_error() -> None:
    harness = gang_harness(nodes=[node("n", "9")], pods=[])
    harness.scheduler.pause()
    harness.create("Pod", member("a"), member("b"))
    harness.settle()
    harness.cluster.delete(NATIVE_POD_GROUP, "default", "g")
    harness.settle()
    harness.scheduler.resume()
    harness.settle()
    assert nodes_of(harness, "a", "b") == ["", ""]
    assert {last(harness, name).outcome for name in "ab"} == {Outcome.ERROR}
    assert 'podgroup.scheduling.k8s.io "g" not found' in last(harness, "a").message


def test_a_replay_that_does_not_retry_drops_the_whole_group() -> None:
    harness = gang_harness(
        nodes=[node("n", "1")],
        pods=[member("a"), member("b")],
        options=SchedulerOptions(retry=False, listing_interval=0.0),
        executor=InlineExecutor(),
    )
    assert {last(harness, name).outcome for name in "ab"} == {Outcome.UNSCHEDULABLE}
    assert len(harness.scheduler.queue) == 0
    tried = len(harness.observer.cycles)
    harness.advance(60.0)
    assert len(harness.observer.cycles) == tried


def test_full_passes_decide_as_reused_work_does() -> None:
    """Members are alike, so all but the first are decided by what is known of the first."""
    pods = [member(f"m{i}") for i in range(6)]
    nodes = [node(f"n{i}", "2") for i in range(4)]
    found = [
        gang_harness(
            nodes=nodes,
            pods=pods,
            min_count=6,
            options=SchedulerOptions(reuse=reuse, listing_interval=0.0),
        )
        for reuse in (True, False)
    ]
    names = [f"m{i}" for i in range(6)]
    assert nodes_of(found[0], *names) == nodes_of(found[1], *names)
    assert "" not in nodes_of(found[0], *names)


# -- with a person's word ------------------------------------------------------------------------


def asking_harness() -> Harness:
    """The gang and the configuration of the examples; the gang asks for approval."""
    config = yaml.safe_load((EXAMPLES / "native-gangs.yaml").read_text(encoding="utf-8"))
    harness = Harness(nodes=[node("n", "4")], profile=config["profiles"][0])
    manifests = load_manifest_file(EXAMPLES / "manifests" / "native-gang.yaml")
    harness.cluster.create_all([dict(manifest.raw) for manifest in manifests])
    harness.settle()
    return harness


def decide(harness: Harness, **verdicts: Verdict) -> None:
    """A person decides on members by the last part of their names."""
    uids = {w.pod.name: w.pod.uid for w in harness.scheduler.waiting_pods}
    harness.decide(
        *(
            PermitDecision(i, uids[f"example-training-{name[1:]}"], verdict, "alice", "later")
            for i, (name, verdict) in enumerate(verdicts.items(), 1)
        )
    )


NAMES = ("example-training-0", "example-training-1")


def test_manual_approval_does_not_block_the_group_and_asks_afterwards() -> None:
    harness = asking_harness()
    assert harness.waiting_names() == list(NAMES)
    for record in harness.observer.waiting:
        assert record.pod_group == "default/example-training-workers"
        assert record.group_min_member == 2
        assert [pending.plugin for pending in record.pending] == ["ManualApproval"]
        assert record.requested_by == "you@example.com"
    decide(harness, m0=Verdict.APPROVE)
    assert nodes_of(harness, *NAMES) == ["", ""]
    decide(harness, m1=Verdict.APPROVE)
    assert nodes_of(harness, *NAMES) == ["n", "n"]


def test_one_denial_ends_the_wait_of_a_native_gang() -> None:
    harness = asking_harness()
    decide(harness, m0=Verdict.APPROVE, m1=Verdict.DENY)
    assert nodes_of(harness, *NAMES) == ["", ""]
    assert harness.waiting_names() == []
    harness.advance(60.0)
    assert harness.waiting_names() == []  # nobody is asked again at once
