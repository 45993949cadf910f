"""Traps 15, 16 and 18 to 20 (see ``traps``): Skip, node names, configuration, extenders."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from scheduler_core.config import InvalidConfiguration
from scheduler_core.records import Outcome
from scheduler_core.testing.builders import make_node, make_pod
from scheduler_core.testing.harness import Harness
from tests.core.extender.conftest import extender
from tests.core.extender.server import FakeExtender, keep_all
from tests.core.scheduler.traps import (
    ZONE,
    args,
    by_name,
    configuration,
    disabled,
    enabled,
    evaluate,
    standalone,
)

__all__ = ["extender"]  # a fixture

# -- 15 and 16: Skip -------------------------------------------------------------------------------


class TestTrap15:
    """A nominated pod with anti-affinity, and plugins that took themselves out of the cycle."""

    node = make_node("n").zone("a").capacity(cpu="4")
    nominated = (
        make_pod("first")
        .req(cpu="1")
        .priority(10)
        .nominated("n")
        .pod_anti_affinity(ZONE, {"app": "web"})
    )

    def test_a_plugin_that_skipped_does_not_see_it(self) -> None:
        cluster = standalone([self.node], [self.nominated])
        assert cluster.fits(make_pod("p").label(app="web").obj(), "n").is_success

    def test_one_that_did_not_skip_does(self) -> None:
        cluster = standalone([self.node], [self.nominated])
        pod = make_pod("p").label(app="web").pod_anti_affinity(ZONE, {"app": "other"}).obj()
        text = "node(s) didn't satisfy existing pods anti-affinity rules"
        assert cluster.fits(pod, "n").message == text

    def test_its_room_is_taken(self) -> None:
        cluster = standalone([self.node], [self.nominated])
        assert cluster.fits(make_pod("p").req(cpu="4").obj(), "n").message == "Insufficient cpu"

    def test_it_is_never_scored(self) -> None:
        pod = make_pod("p").req(cpu="1")
        assert evaluate(pod, self.node, self.nominated)["raw"] == evaluate(pod, self.node)["raw"]


def test_trap_16_a_score_plugin_that_skipped_is_not_in_the_sum() -> None:
    nodes = [make_node("a"), make_node("b")]
    found = evaluate(make_pod("p"), *nodes, profile=disabled("PodTopologySpread"))
    present = ["TaintToleration", "NodeResourcesFit", "DynamicResources", "ImageLocality"]
    assert sorted(found["raw"]) == sorted(present), "NodeAffinity and others have skipped"
    assert found["normalized"]["TaintToleration"] == {"a": 100, "b": 100}
    assert found["total"] == {
        name: sum(found["normalized"][p][name] * found["weights"][p] for p in present)
        for name in ("a", "b")
    }


# -- 18 and 19: node names and configuration -------------------------------------------------------


class TestTrap18:
    nodes = [make_node("n1"), make_node("n2"), make_node("n3")]

    def test_two_names_in_one_list_match_nothing(self) -> None:
        found = evaluate(make_pod("p").affinity(by_name("n1", "n2")), *self.nodes)
        reason = "node(s) didn't match Pod's node affinity/selector"
        assert {name: s["reasons"] for name, s in found["filtered"].items()} == {
            "n1": [reason],
            "n2": [reason],
        }
        assert "preFilter" not in found, "PreFilter has let them pass"

    def test_a_plugin_that_names_nodes_counts_as_one_that_rejected(self) -> None:
        found = evaluate(make_pod("p").affinity(by_name("n1")), *self.nodes)
        assert found["status"] == "Feasible"
        assert found["unschedulablePlugins"] == ["NodeAffinity"]


class TestTrap19:
    nodes = [make_node("n").capacity(cpu="1").taint("x")]

    def test_a_default_plugin_that_is_enabled_at_a_point_goes_to_its_front(self) -> None:
        pod = make_pod("p").req(cpu="2")
        usual = evaluate(pod, *self.nodes)["filtered"]["n"]
        assert usual["plugin"] == "TaintToleration"
        moved = evaluate(pod, *self.nodes, profile=enabled("filter", "NodeResourcesFit"))
        assert moved["filtered"]["n"]["plugin"] == "NodeResourcesFit"

    def test_enabled_again_without_a_weight_it_weighs_1(self) -> None:
        pod, node = make_pod("p"), make_node("n")
        usual = evaluate(pod, node)["weights"]["TaintToleration"]
        again = evaluate(pod, node, profile=enabled("score", "TaintToleration"))
        assert (usual, again["weights"]["TaintToleration"]) == (3, 1)

    def test_score_alone_lacks_what_pre_score_would_have_kept(self) -> None:
        profile = {"plugins": {"preScore": {"disabled": [{"name": "TaintToleration"}]}}}
        found = evaluate(make_pod("p"), make_node("n"), profile=profile)
        assert found["status"] == "Error"
        assert found["message"].endswith(
            'plugin "TaintToleration" failed with: '
            'failed to read "PreScoreTaintToleration" from cycleState: not found'
        )

    def test_a_strategy_without_a_type_is_refused(self) -> None:
        strategy = {"resources": [{"name": "cpu", "weight": 1}]}
        with pytest.raises(InvalidConfiguration, match=r"scoringStrategy\.type: Unsupported value"):
            configuration(args("NodeResourcesFit", scoringStrategy=strategy))


# -- 20: extenders ---------------------------------------------------------------------------------


class TestTrap20:
    nodes = [make_node("idle").capacity(cpu="4"), make_node("busy").capacity(cpu="4")]
    old = make_pod("old").req(cpu="3").node("busy")

    def cycle(self, fake: FakeExtender, **entry: Any) -> tuple[Harness, Any]:
        entry = {"urlPrefix": fake.url, "filterVerb": "filter", **entry}
        h = Harness(nodes=self.nodes, pods=[self.old], config={"extenders": [entry]})
        return h, h.schedule(make_pod("p").req(cpu="1"))

    def least_allocated(self, cycle: Any) -> list[int]:
        row = cycle.matrix.plugins.index("NodeResourcesFit")
        names = list(cycle.matrix.node_names)
        return [int(cycle.matrix.raw[row][names.index(name)]) for name in ("idle", "busy")]

    def test_nodes_that_come_back_whole_are_scored_without_their_pods(
        self, extender: Callable[..., FakeExtender]
    ) -> None:
        _, cycle = self.cycle(extender({"filter": keep_all}))
        idle, busy = self.least_allocated(cycle)
        assert busy == idle

    def test_names_are_scored_as_they_are(self, extender: Callable[..., FakeExtender]) -> None:
        _, cycle = self.cycle(extender({"filter": keep_all}), nodeCacheCapable=True)
        idle, busy = self.least_allocated(cycle)
        assert busy < idle

    def test_requests_are_capitalised_with_explicit_nulls(
        self, extender: Callable[..., FakeExtender]
    ) -> None:
        fake = extender({"filter": keep_all})
        self.cycle(fake, nodeCacheCapable=True)
        (asked,) = fake.asked("filter")
        assert list(asked) == ["Pod", "Nodes", "NodeNames"]
        assert asked["Nodes"] is None

    def test_replies_are_read_in_any_case_and_scores_count_times_weight_times_ten(
        self, extender: Callable[..., FakeExtender]
    ) -> None:
        scores = [{"host": "busy", "SCORE": 7}]
        fake = extender({"prioritize": lambda asked: scores})
        verbs = {"filterVerb": "", "prioritizeVerb": "prioritize", "weight": 3}
        _, with_it = self.cycle(fake, **verbs)
        without = Harness(nodes=self.nodes, pods=[self.old]).schedule(make_pod("p").req(cpu="1"))
        names = list(with_it.matrix.node_names)
        gained = with_it.matrix.total - without.matrix.total
        assert dict(zip(names, gained.tolist(), strict=True)) == {"idle": 0, "busy": 7 * 3 * 10}

    def test_errors_of_prioritize_are_ignored(self, extender: Callable[..., FakeExtender]) -> None:
        fake = extender({})  # 404
        _, cycle = self.cycle(fake, filterVerb="", prioritizeVerb="prioritize", weight=1)
        assert cycle.outcome is Outcome.SCHEDULED
        assert fake.asked("prioritize")
