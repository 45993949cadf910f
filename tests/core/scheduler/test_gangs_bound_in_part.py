"""After a restart the rest of a gang that is bound in part comes before everybody else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from scheduler_core.api import NATIVE_POD_GROUP
from scheduler_core.testing.builders import (
    PodBuilder,
    make_native_pod_group,
    make_node,
    make_pod,
    make_pod_group,
    make_priority_class,
)
from scheduler_core.testing.harness import Harness

COSCHEDULING = {
    "plugins": {
        "queueSort": {"enabled": [{"name": "Coscheduling"}], "disabled": [{"name": "*"}]},
        "multiPoint": {"enabled": [{"name": "Coscheduling"}]},
    },
}
NATIVE = {"plugins": {"multiPoint": {"enabled": [{"name": "GangScheduling"}]}}}

Member = Callable[[str], PodBuilder]


def coscheduled(name: str) -> PodBuilder:
    return make_pod(name).req(cpu="1").pod_group("g")


def native(name: str) -> PodBuilder:
    return make_pod(name).req(cpu="1").scheduling_group("g")


def other_pod() -> dict[str, Any]:
    """It would be the first of the queue."""
    pod = make_pod("other").req(cpu="1").raw()
    pod["spec"]["priorityClassName"] = "high"
    return pod


def after_a_restart(kind: str, min_member: int, pods: list[Any], cpu: int = 3) -> Harness:
    """A node with room for ``cpu`` pods, and a scheduler that finds all this as it is."""
    groups: dict[str, list[Any]] = {
        "Coscheduling": {"PodGroup": [make_pod_group("g").min_member(min_member)]},
        "native": {NATIVE_POD_GROUP: [make_native_pod_group("g").gang(min_member)]},
    }[kind]
    h = Harness(
        nodes=[make_node("n1").capacity(cpu=str(cpu), memory="64Gi", pods="99")],
        objects={"PriorityClass": [make_priority_class("high", 1_000)], **groups},
        pods=pods,
        profile=COSCHEDULING if kind == "Coscheduling" else NATIVE,
    )
    h.settle()
    return h


@pytest.mark.parametrize(
    ("kind", "member"),
    [pytest.param("Coscheduling", coscheduled), pytest.param("native", native)],
)
class TestWhoGetsTheRoom:
    def test_the_rest_of_the_gang_before_a_pod_of_higher_priority(
        self, kind: str, member: Member
    ) -> None:
        other = other_pod()
        h = after_a_restart(kind, 3, [other, member("a").node("n1"), member("b"), member("c")])
        assert (h.node_of("b"), h.node_of("c"), h.node_of("other")) == ("n1", "n1", "")

    def test_each_in_its_turn_where_the_gang_has_all_that_it_needs(
        self, kind: str, member: Member
    ) -> None:
        other = other_pod()
        h = after_a_restart(kind, 1, [other, member("a").node("n1"), member("b")], cpu=2)
        assert (h.node_of("b"), h.node_of("other")) == ("", "n1")

    def test_each_in_its_turn_where_nobody_of_the_gang_is_bound(
        self, kind: str, member: Member
    ) -> None:
        other = other_pod()
        h = after_a_restart(kind, 2, [other, member("a"), member("b")], cpu=2)
        assert (h.node_of("a"), h.node_of("b"), h.node_of("other")) == ("", "", "n1")

    def test_it_waits_like_any_other_once_it_did_not_fit(self, kind: str, member: Member) -> None:
        pods = [other_pod(), member("a").node("n1"), member("b").req(cpu="9")]
        h = after_a_restart(kind, 2, pods, cpu=2)
        assert [c.pod.name for c in h.observer.cycles][:2] == ["b", "other"]
        assert (h.node_of("b"), h.node_of("other")) == ("", "n1")
