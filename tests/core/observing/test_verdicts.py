"""Each verdict on a pod that somebody else places, and the sentence that people read."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from scheduler_core.observations import AGREEMENTS, PLACED, Verdict
from scheduler_core.observing import OpenObservation
from scheduler_core.records import PodRef
from scheduler_core.testing.builders import make_node, make_pod
from tests.core.observing.watching import Watching, configuration


def three() -> list[object]:
    """Empty nodes: the pods' requests weigh most on the small one."""
    return [
        make_node("big").capacity(cpu="16", memory="64Gi"),
        make_node("twin").capacity(cpu="16", memory="64Gi"),
        make_node("small").capacity(cpu="4", memory="16Gi").label(disk="ssd"),
    ]


@pytest.mark.parametrize(
    ("pod", "node", "verdict", "ours", "plugin", "why"),
    [
        pytest.param(
            make_pod("p").req(cpu="1").node_selector(disk="ssd"),
            "small",
            Verdict.AGREE,
            "small",
            "",
            "small is the only node that fits.",
            id="agree, nothing else fits",
        ),
        pytest.param(
            make_pod("p").req(cpu="1", memory="4Gi"),
            "big",
            Verdict.AGREE,
            "big",
            "",
            "Both choose big, with the highest score of 468, which 2 nodes share.",
            id="agree, one of several best",
        ),
        pytest.param(
            make_pod("p").req(cpu="1", memory="4Gi"),
            "twin",
            Verdict.TIE,
            "big",
            "",
            "twin has the highest score of 468, as have big: which of them is taken is chance.",
            id="tie",
        ),
        pytest.param(
            make_pod("p").req(cpu="1", memory="4Gi"),
            "small",
            Verdict.DIFFERS,
            "big",
            "NodeResourcesFit",
            "NodeResourcesFit prefers big by 18: small scores 450, big 468.",
            id="differs",
        ),
        pytest.param(
            make_pod("p").req(cpu="8"),
            "small",
            Verdict.INFEASIBLE,
            "big",
            "NodeResourcesFit",
            "NodeResourcesFit turns small down: Insufficient cpu. We would choose big.",
            id="their node is full for us",
        ),
        pytest.param(
            make_pod("p").req(cpu="1").node_selector(disk="ssd"),
            "big",
            Verdict.INFEASIBLE,
            "small",
            "NodeAffinity",
            "NodeAffinity turns big down: node(s) didn't match Pod's node affinity/selector. "
            "We would choose small.",
            id="their node is not the one asked for",
        ),
        pytest.param(
            make_pod("p").req(cpu="32"),
            "big",
            Verdict.UNSCHEDULABLE,
            "",
            "NodeResourcesFit",
            "No node fits for us: 0/3 nodes are available: 3 Insufficient cpu. "
            "NodeResourcesFit turns big down: Insufficient cpu.",
            id="none fits for us",
        ),
    ],
)
def test_placed(pod: object, node: str, verdict: Verdict, ours: str, plugin: str, why: str) -> None:
    watching = Watching(nodes=three())
    watching.pod(pod, look=False)
    watching.place("p", node)
    word = watching.last("p")
    assert (word.verdict, word.ours, word.actual, word.plugin) == (verdict, ours, node, plugin)
    assert word.why == why
    assert verdict in PLACED
    assert word.nodes_total == 3


def test_a_difference_is_taken_apart_by_plugin() -> None:
    watching = Watching(nodes=three())
    watching.pod(make_pod("p").req(cpu="1", memory="4Gi"))
    watching.place("p", "small")
    word = watching.last("p")
    assert word.ours_total is not None
    assert word.actual_total is not None
    gap = word.ours_total - word.actual_total
    assert sum(row.advantage for row in word.comparison) == gap > 0
    assert [abs(row.advantage) for row in word.comparison] == sorted(
        (abs(row.advantage) for row in word.comparison), reverse=True
    )
    first = word.comparison[0]
    assert first.plugin == "NodeResourcesFit"
    assert first.ours[1] > first.theirs[1]  # normalised, of the roomier node


@pytest.mark.parametrize(
    ("pod", "ours", "why"),
    [
        pytest.param(
            make_pod("p").req(cpu="1", memory="4Gi"),
            "big",
            "Not placed yet; we would choose big, with a score of 468.",
            id="we would place it",
        ),
        pytest.param(
            make_pod("p").req(cpu="32"),
            "",
            "Not placed yet, and no node fits for us either: "
            "0/3 nodes are available: 3 Insufficient cpu.",
            id="neither of us",
        ),
        pytest.param(
            make_pod("p").gate("team/quota", "team/review"),
            "",
            "Nobody may place it yet: scheduling gates team/quota, team/review.",
            id="gated",
        ),
    ],
)
def test_not_placed(pod: object, ours: str, why: str) -> None:
    watching = Watching(nodes=three())
    watching.pod(pod)
    word = watching.last("p")
    assert (word.verdict, word.ours, word.actual) == (Verdict.PENDING, ours, "")
    assert word.why == why


def test_a_pod_that_goes_unplaced() -> None:
    watching = Watching(nodes=three())
    watching.pod(make_pod("p").req(cpu="1", memory="4Gi"))
    watching.delete("Pod", "p")
    word = watching.last("p")
    assert (word.verdict, word.ours) == (Verdict.GONE, "big")
    assert word.why == "It went before anybody placed it. We would have chosen big."


@pytest.mark.parametrize(
    ("make", "verdicts"),
    [
        pytest.param(
            lambda: make_pod("p").owner("DaemonSet", "logs"),
            [Verdict.DAEMON_SET],
            id="pod of a DaemonSet",
        ),
        pytest.param(lambda: make_pod("p").node("big"), [Verdict.PRESET], id="made with a node"),
    ],
)
def test_left_out(make: Callable[[], object], verdicts: list[Verdict]) -> None:
    watching = Watching(nodes=three())
    watching.pod(make())
    if not watching.cluster.get("Pod", "default", "p")["spec"].get("nodeName"):
        watching.place("p", "big")
    assert [word.verdict for word in watching.words("p")] == verdicts


def test_what_runs_already_is_not_judged() -> None:
    watching = Watching(nodes=three(), pods=[make_pod("old").node("small")])
    assert watching.notes.all == []


# -- the moment that counts ------------------------------------------------------------------------


def test_every_event_before_the_binding_counts_and_none_after_it() -> None:
    """Two pods are placed on the only two places, in this order: each is judged as if it came
    alone to what the one before has left."""
    watching = Watching(nodes=[make_node("a").capacity(cpu="2"), make_node("b").capacity(cpu="2")])
    for name in ("first", "second"):
        watching.pod(make_pod(name).req(cpu="2"), look=False)
    watching.place("first", "a")
    watching.place("second", "b")
    first, second = watching.last("first"), watching.last("second")
    assert (first.verdict, first.nodes_feasible) == (Verdict.AGREE, 2)
    assert (second.verdict, second.nodes_feasible) == (Verdict.AGREE, 1)


def test_the_pod_itself_holds_nothing_yet() -> None:
    watching = Watching(nodes=[make_node("a").capacity(cpu="2")])
    watching.pod(make_pod("p").req(cpu="2"))
    watching.place("p", "a")
    assert watching.last("p").verdict is Verdict.AGREE


def test_a_cluster_that_has_changed_since_the_pod_came_is_said_so() -> None:
    """Their decision lies somewhere between the pod's arrival and the sight of its node."""
    small = make_node("small").capacity(cpu="4", memory="16Gi")
    watching = Watching(nodes=[small])
    watching.pod(make_pod("p").req(cpu="1", memory="4Gi"))
    watching.create("Node", make_node("big").capacity(cpu="16", memory="64Gi"))
    watching.place("p", "small")
    word = watching.last("p")
    assert (word.verdict, word.ours, word.first) == (Verdict.DIFFERS, "big", "small")
    assert word.why.endswith(
        "When the pod came we chose small, too: the cluster has changed since."
    )


def test_a_node_that_we_do_not_know() -> None:
    """The watch of the pods may be ahead of that of the nodes."""
    watching = Watching(nodes=three())
    watching.pod(make_pod("p").req(cpu="1"))
    watching.place("p", "new")
    word = watching.last("p")
    assert (word.verdict, word.actual, word.plugin) == (Verdict.INFEASIBLE, "new", "")
    assert word.why == "We do not know new: it is new, or gone already. We would choose big."


def test_a_node_that_preemption_made_room_on_is_taken() -> None:
    watching = Watching(nodes=three())
    watching.pod(make_pod("p").req(cpu="1", memory="4Gi"))
    watching.nominate("p", "small")
    watching.place("p", "small")
    word = watching.last("p")
    assert word.verdict is Verdict.AGREE
    assert word.why == "Both take small, where preemption made room for this pod."


def test_room_that_is_promised_to_another_pod_is_taken() -> None:
    watching = Watching(nodes=[make_node("a").capacity(cpu="2"), make_node("b").capacity(cpu="2")])
    watching.pod(make_pod("vip").req(cpu="2"))
    watching.nominate("vip", "a")
    watching.pod(make_pod("p").req(cpu="2"))
    watching.place("p", "a")
    word = watching.last("p")
    assert (word.verdict, word.ours) == (Verdict.INFEASIBLE, "b")


def test_a_waiting_pod_is_looked_at_again() -> None:
    watching = Watching(nodes=three())
    watching.pod(make_pod("p").req(cpu="32"))
    assert watching.last("p").ours == ""
    watching.create("Node", make_node("huge").capacity(cpu="64", memory="64Gi"))
    watching.settle()
    assert len(watching.words("p")) == 1
    watching.clock.advance(31)
    assert watching.last("p").ours == "huge"
    watching.clock.advance(31)
    assert len(watching.words("p")) == 2  # nothing new to say


def test_a_pod_made_anew_under_its_name_is_another_one() -> None:
    watching = Watching(nodes=three())
    one = watching.pod(make_pod("p").req(cpu="1"))
    watching.delete("Pod", "p")
    other = watching.pod(make_pod("p").req(cpu="1"))
    watching.place("p", "big")
    words = [(word.pod.uid, word.verdict) for word in watching.words("p")]
    assert words == [
        (one, Verdict.PENDING),
        (one, Verdict.GONE),
        (other, Verdict.PENDING),
        (other, Verdict.AGREE),
    ]


# -- profiles --------------------------------------------------------------------------------------

PACKING = {
    "schedulerName": "packer",
    "pluginConfig": [
        {
            "name": "NodeResourcesFit",
            "args": {
                "scoringStrategy": {
                    "type": "MostAllocated",
                    "resources": [{"name": "cpu", "weight": 1}],
                }
            },
        }
    ],
}


@pytest.mark.parametrize(
    ("scheduler", "profile", "ours"),
    [
        pytest.param("default-scheduler", "default-scheduler", "big", id="profile of its name"),
        pytest.param("packer", "packer", "small", id="another profile"),
        pytest.param("somebody", "default-scheduler", "big", id="unknown: the first profile"),
    ],
)
def test_the_profile_that_decides(scheduler: str, profile: str, ours: str) -> None:
    config = configuration({"schedulerName": "default-scheduler"}, PACKING)
    watching = Watching(nodes=three(), config=config)
    watching.pod(make_pod("p").req(cpu="1", memory="4Gi").scheduler_name(scheduler))
    watching.place("p", "small")
    word = watching.last("p")
    assert (word.scheduler, word.profile, word.ours) == (scheduler, profile, ours)
    assert (word.verdict in AGREEMENTS) == (ours == "small")


# -- life ------------------------------------------------------------------------------------------


def test_what_became_of_pods_while_nobody_observed() -> None:
    watching = Watching(nodes=three())
    pods = {"placed": "1", "still": "32", "gone": "1"}
    uids = {name: watching.pod(make_pod(name).req(cpu=cpu)) for name, cpu in pods.items()}
    watching.observer.stop()
    watching.place("placed", "big")
    watching.delete("Pod", "gone")
    watching.again(
        OpenObservation(PodRef(uid, "default", name), "default-scheduler", 900_000.0)
        for name, uid in uids.items()
    )
    assert {name: watching.last(name).verdict for name in pods} == {
        "placed": Verdict.MISSED,
        "still": Verdict.PENDING,
        "gone": Verdict.GONE,
    }
    assert watching.last("still").seen_at == 900_000.0
    assert watching.last("placed").actual == "big"
    assert watching.last("placed").why == "It was placed on big while nobody observed."


def test_while_paused_nothing_is_decided_and_nothing_forgotten() -> None:
    watching = Watching(nodes=three())
    watching.observer.pause()
    watching.pod(make_pod("p").req(cpu="16"))
    watching.place("p", "big")
    word = watching.last("p")
    assert (word.verdict, word.why) == (
        Verdict.MISSED,
        "It was placed on big while the run was paused.",
    )
    watching.observer.resume()
    watching.pod(make_pod("q").req(cpu="16"))
    assert watching.last("q").ours == "twin"  # what p holds is known


def test_sequence_numbers_go_on() -> None:
    watching = Watching(nodes=three())
    watching.pod(make_pod("p"))
    watching.place("p", "big")
    watching.settle()
    assert [word.sequence for word in watching.notes.all] == [1, 2]
    assert watching.observer.next_sequence == 3
