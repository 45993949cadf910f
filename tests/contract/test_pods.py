"""Binding, conditions, grace periods and events of pods."""

from __future__ import annotations

import pytest

from scheduler_core.ports import ApiError, Cluster, Conflict, NotFound, PodCondition
from tests.contract.support import Moment, TestClock, eventually, pod

UNSCHEDULABLE = PodCondition("PodScheduled", "False", "Unschedulable", "0/3 nodes are available")


def test_bind_sets_the_node_and_the_condition(cluster: Cluster, clock: TestClock) -> None:
    made = cluster.create("Pod", pod())
    cluster.bind("default", "web", made["metadata"]["uid"], "n1")

    bound = cluster.get("Pod", "default", "web")
    assert bound["spec"]["nodeName"] == "n1"
    assert bound["metadata"]["generation"] == 1
    assert bound["status"]["conditions"] == [
        {
            "type": "PodScheduled",
            "status": "True",
            "lastProbeTime": None,
            "lastTransitionTime": Moment(clock),
        }
    ]


def test_bind_ends_the_nomination(cluster: Cluster) -> None:
    made = cluster.create("Pod", pod())
    uid = made["metadata"]["uid"]
    cluster.patch_pod_status("default", "web", uid, nominated_node_name="n2")
    cluster.bind("default", "web", uid, "n1")
    assert "nominatedNodeName" not in cluster.get("Pod", "default", "web")["status"]


def test_a_bound_pod_cannot_be_bound_again(cluster: Cluster) -> None:
    cluster.create("Pod", pod())
    cluster.bind("default", "web", "", "n1")
    with pytest.raises(Conflict) as caught:
        cluster.bind("default", "web", "", "n2")
    assert caught.value.message == (
        'Operation cannot be fulfilled on pods/binding "web": '
        'pod web is already assigned to node "n1"'
    )


def test_a_pod_that_is_being_deleted_cannot_be_bound(cluster: Cluster) -> None:
    held = pod()
    held["metadata"]["finalizers"] = ["example.com/hold"]
    cluster.create("Pod", held)
    cluster.delete("Pod", "default", "web")
    with pytest.raises(Conflict, match="pod web is being deleted, cannot be assigned to a host"):
        cluster.bind("default", "web", "", "n1")


def test_another_pod_of_the_same_name_cannot_be_bound(cluster: Cluster) -> None:
    cluster.create("Pod", pod())
    with pytest.raises(Conflict, match="Precondition failed: UID in precondition: other"):
        cluster.bind("default", "web", "other", "n1")
    assert "nodeName" not in cluster.get("Pod", "default", "web")["spec"]


def test_a_gated_pod_cannot_be_bound_until_the_gates_are_gone(cluster: Cluster) -> None:
    made = cluster.create("Pod", pod(schedulingGates=[{"name": "example.com/wait"}]))
    assert made["status"]["conditions"][0]["reason"] == "SchedulingGated"
    with pytest.raises(Conflict, match=r"pod web has non-empty \.spec\.schedulingGates"):
        cluster.bind("default", "web", "", "n1")

    opened = cluster.patch("Pod", "default", "web", {"spec": {"schedulingGates": []}})
    assert "schedulingGates" not in opened["spec"]
    assert opened["metadata"]["generation"] == 2
    cluster.bind("default", "web", "", "n1")


def test_no_gate_can_be_added(cluster: Cluster) -> None:
    cluster.create("Pod", pod())
    with pytest.raises(ApiError, match="only deletion is allowed, but found new scheduling gate"):
        cluster.patch("Pod", "default", "web", {"spec": {"schedulingGates": [{"name": "a/b"}]}})


def test_a_pod_stays_what_it_asked_for(cluster: Cluster) -> None:
    cluster.create("Pod", pod())
    with pytest.raises(ApiError, match="pod updates may not change fields other than"):
        cluster.patch("Pod", "default", "web", {"spec": {"nodeSelector": {"a": "b"}}})


def test_bind_needs_a_node(cluster: Cluster) -> None:
    cluster.create("Pod", pod())
    with pytest.raises(ApiError, match=r"target\.name: Required value") as caught:
        cluster.bind("default", "web", "", "")
    assert caught.value.code == 500


# -- conditions ----------------------------------------------------------------------------------


def test_a_condition_moves_in_time_only_with_its_status(cluster: Cluster, clock: TestClock) -> None:
    uid = cluster.create("Pod", pod())["metadata"]["uid"]
    cluster.patch_pod_status("default", "web", uid, condition=UNSCHEDULABLE)
    clock.advance(10)
    other = PodCondition("PodScheduled", "False", "Unschedulable", "0/4 nodes are available")
    cluster.patch_pod_status("default", "web", uid, condition=other)

    (condition,) = cluster.get("Pod", "default", "web")["status"]["conditions"]
    assert condition["message"] == "0/4 nodes are available"
    assert condition["lastTransitionTime"] == Moment(clock)

    cluster.bind("default", "web", uid, "n1")
    (condition,) = cluster.get("Pod", "default", "web")["status"]["conditions"]
    assert condition["lastTransitionTime"] == Moment(clock, 10)
    assert "message" not in condition


def test_the_same_status_again_is_no_write(cluster: Cluster) -> None:
    uid = cluster.create("Pod", pod())["metadata"]["uid"]
    cluster.patch_pod_status("default", "web", uid, condition=UNSCHEDULABLE)
    before = cluster.get("Pod", "default", "web")
    cluster.patch_pod_status("default", "web", uid, condition=UNSCHEDULABLE)
    assert cluster.get("Pod", "default", "web") == before


def test_a_nomination_is_set_kept_and_cleared(cluster: Cluster) -> None:
    uid = cluster.create("Pod", pod())["metadata"]["uid"]

    def nominated() -> str | None:
        found = cluster.get("Pod", "default", "web")["status"].get("nominatedNodeName")
        return None if found is None else str(found)

    cluster.patch_pod_status("default", "web", uid, nominated_node_name="n1")
    assert nominated() == "n1"
    cluster.patch_pod_status("default", "web", uid, condition=UNSCHEDULABLE)
    assert nominated() == "n1"
    cluster.patch_pod_status("default", "web", uid, nominated_node_name="")
    assert nominated() is None


def test_the_status_of_another_pod_of_that_name_is_left_alone(cluster: Cluster) -> None:
    made = cluster.create("Pod", pod())
    with pytest.raises(Conflict):
        cluster.patch_pod_status("default", "web", "other", condition=UNSCHEDULABLE)
    assert cluster.get("Pod", "default", "web") == made


# -- deletion ------------------------------------------------------------------------------------


def test_a_pending_pod_goes_at_once(cluster: Cluster) -> None:
    cluster.create("Pod", pod())
    cluster.delete("Pod", "default", "web")
    with pytest.raises(NotFound):
        cluster.get("Pod", "default", "web")


def test_a_bound_pod_is_given_its_grace_period(cluster: Cluster, clock: TestClock) -> None:
    cluster.create("Pod", pod(terminationGracePeriodSeconds=45))
    cluster.bind("default", "web", "", "n1")
    cluster.delete("Pod", "default", "web")

    meta = cluster.get("Pod", "default", "web")["metadata"]
    assert meta["deletionTimestamp"] == Moment(clock, 45)
    assert meta["deletionGracePeriodSeconds"] == 45
    assert meta["generation"] == 2


def test_a_grace_period_can_be_shortened_and_not_made_longer(cluster: Cluster) -> None:
    cluster.create("Pod", pod())
    cluster.bind("default", "web", "", "n1")
    for asked, left in ((30, 30), (60, 30), (None, 30), (5, 5)):
        cluster.delete("Pod", "default", "web", grace_period_seconds=asked)
        meta = cluster.get("Pod", "default", "web")["metadata"]
        assert meta["deletionGracePeriodSeconds"] == left
    cluster.delete("Pod", "default", "web", grace_period_seconds=0)
    with pytest.raises(NotFound):
        cluster.get("Pod", "default", "web")


def test_a_pod_that_has_ended_goes_at_once(cluster: Cluster) -> None:
    cluster.create("Pod", pod())
    cluster.bind("default", "web", "", "n1")
    cluster.patch("Pod", "default", "web", {"status": {"phase": "Succeeded"}}, subresource="status")
    cluster.delete("Pod", "default", "web")
    with pytest.raises(NotFound):
        cluster.get("Pod", "default", "web")


# -- events --------------------------------------------------------------------------------------


def emit(cluster: Cluster, note: str, reason: str = "FailedScheduling") -> None:
    cluster.emit_event(
        cluster.get("Pod", "default", "web"),
        type="Warning",
        reason=reason,
        action="Scheduling",
        note=note,
        reporting_controller="default-scheduler",
    )


def test_an_event_says_what_it_is_about(cluster: Cluster, clock: TestClock) -> None:
    made = cluster.create("Pod", pod())
    emit(cluster, "0/3 nodes are available")
    eventually(lambda: len(cluster.list("Event").items) == 1)

    (event,) = cluster.list("Event").items
    assert event["regarding"] == {
        "apiVersion": "v1",
        "kind": "Pod",
        "namespace": "default",
        "name": "web",
        "uid": made["metadata"]["uid"],
        "resourceVersion": made["metadata"]["resourceVersion"],
    }
    assert (event["type"], event["reason"], event["note"]) == (
        "Warning",
        "FailedScheduling",
        "0/3 nodes are available",
    )
    assert event["metadata"]["namespace"] == "default"
    assert event["eventTime"] == Moment(clock, micro=True)


def test_a_repeated_event_is_counted(cluster: Cluster, clock: TestClock) -> None:
    cluster.create("Pod", pod())
    emit(cluster, "0/3 nodes are available")
    clock.advance(5)
    emit(cluster, "0/4 nodes are available")
    emit(cluster, "bound", reason="Scheduled")
    eventually(lambda: len(cluster.list("Event").items) == 2)

    (repeated,) = cluster.list("Event", field_selector="reason=FailedScheduling").items
    assert repeated["series"]["count"] == 2
    assert repeated["series"]["lastObservedTime"] == Moment(clock, 5, micro=True)
    # An API server lets nobody change a note; a sandbox shows the one that still holds.
    assert repeated["note"] in ("0/3 nodes are available", "0/4 nodes are available")


def test_an_event_of_nowhere_is_dropped(cluster: Cluster) -> None:
    about = {"kind": "Pod", "namespace": "absent", "name": "web"}
    cluster.emit_event(
        about, type="Normal", reason="a", action="b", note="c", reporting_controller="d"
    )
    cluster.create("Pod", pod())
    assert list(cluster.list("Event").items) == []
