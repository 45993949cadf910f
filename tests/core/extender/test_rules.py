"""Each rule of kube-scheduler 1.36 about extenders, in a whole scheduler with a real extender."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from scheduler_core.algorithm import SeededRandom
from scheduler_core.cluster.sandbox import SandboxCluster
from scheduler_core.framework.runtime.framework import ProfileError
from scheduler_core.framework.status import Code
from scheduler_core.ports import ApiError
from scheduler_core.records import Outcome
from scheduler_core.scheduler import SchedulerOptions
from scheduler_core.testing.builders import make_node, make_pod, make_priority_class
from scheduler_core.testing.harness import Harness
from tests.core.extender.server import FakeExtender, keep, keep_all, names_of, scores, status

Start = Callable[..., FakeExtender]


def entry(fake: FakeExtender, *verbs: str, **more: Any) -> dict[str, Any]:
    """The configuration of an extender with these verbs; it caches nodes unless told otherwise."""
    asked = {f"{verb}Verb": verb for verb in verbs}
    weight = {"weight": 1} if "prioritize" in verbs else {}
    return {"urlPrefix": fake.url, "nodeCacheCapable": True, **asked, **weight, **more}


def scheduler(*extenders: dict[str, Any], nodes: int = 3, **more: Any) -> Harness:
    """Nodes n0, n1, ... of 4 cpu each and, if not told otherwise, a pod p that asks for one."""
    made = more.pop("made", None) or [node(f"n{i}") for i in range(nodes)]
    pods = more.pop("pods", None) or [make_pod("p").req(cpu="1")]
    config = {"extenders": list(extenders), **more.pop("config", {})}
    nominated, before = more.pop("nominated", ""), more.pop("before", lambda h: None)
    classes = [make_priority_class(f"class-{value}", value) for value in (1, 2, 100)]
    h = Harness(nodes=made, objects={"PriorityClass": classes}, pods=pods, config=config, **more)
    before(h)
    if nominated:
        uid = h.pod("p")["metadata"]["uid"]
        h.cluster.patch_pod_status("default", "p", uid, nominated_node_name=nominated)
    h.settle()
    return h


def node(name: str, cpu: str = "4") -> Any:
    return make_node(name).capacity(cpu=cpu, memory="8Gi", pods="10")


def busy(name: str, on: str, cpu: str = "1") -> Any:
    return make_pod(name).req(cpu=cpu).node(on)


def of_class(pod: Any, priority: int) -> dict[str, Any]:
    """A pod of this priority: 0, 1, 2 or 100."""
    raw: dict[str, Any] = pod.raw()
    if priority:
        raw["spec"]["priorityClassName"] = f"class-{priority}"
    return raw


def rejections(h: Harness, pod: str = "p") -> list[tuple[str, str, int, bool]]:
    return [(r.plugin, r.reason, r.nodes, r.resolvable) for r in h.cycle(pod).rejections]


# -- interest --------------------------------------------------------------------------------------

GPU = "example.com/gpu"
MANAGED = {"managedResources": [{"name": GPU}]}


@pytest.mark.parametrize(
    ("pod", "interested"),
    [
        pytest.param(make_pod("p").req(cpu="1"), False, id="asks for nothing of it"),
        pytest.param(make_pod("p").req({GPU: "1"}), True, id="a container requests it"),
        pytest.param(
            make_pod("p").container(limits={GPU: "1"}, requests={GPU: "1"}), True, id="limits"
        ),
        pytest.param(
            make_pod("p").init_container(requests={GPU: "1"}, limits={GPU: "1"}).req(cpu="1"),
            True,
            id="an init container requests it",
        ),
        pytest.param(make_pod("p").req({"example.com/tpu": "1"}), False, id="another resource"),
    ],
)
def test_interest_follows_managed_resources(extender: Start, pod: Any, interested: bool) -> None:
    fake = extender({"filter": keep_all, "prioritize": [], "bind": {}})
    made = [
        make_node(f"n{i}").capacity({GPU: "4", "example.com/tpu": "4"}, cpu="4") for i in range(2)
    ]
    h = scheduler(entry(fake, "filter", "prioritize", **MANAGED), made=made, pods=[pod])
    assert h.node_of("p") == "n0"
    assert {r.path for r in fake.requests} == ({"/filter", "/prioritize"} if interested else set())


def test_without_managed_resources_it_is_asked_about_every_pod(extender: Start) -> None:
    fake = extender({"filter": keep_all})
    scheduler(entry(fake, "filter"))
    assert len(fake.asked("filter")) == 1


# -- filter ----------------------------------------------------------------------------------------


def test_filter_runs_after_the_plugins_on_what_they_left(extender: Start) -> None:
    fake = extender({"filter": keep_all})
    scheduler(entry(fake, "filter"), pods=[make_pod("p").req(cpu="1"), busy("b", "n1", cpu="4")])
    assert fake.asked("filter")[0]["NodeNames"] == ["n0", "n2"]


def test_filters_run_in_order_on_the_shrinking_list(extender: Start) -> None:
    first, second = extender({"filter": keep("n1", "n2")}), extender({"filter": keep("n2")})
    h = scheduler(entry(first, "filter"), entry(second, "filter"))
    assert second.asked("filter")[0]["NodeNames"] == ["n1", "n2"]
    assert h.node_of("p") == "n2"


def test_those_that_must_answer_are_asked_before_ignorable_ones(extender: Start) -> None:
    order: list[str] = []

    def note(name: str) -> Callable[[Any], Any]:
        def answer(args: Any) -> Any:
            order.append(name)
            return keep_all(args)

        return answer

    fakes = [extender({"filter": note(name)}) for name in "abcd"]
    ignorable = [True, False, True, False]
    scheduler(*(entry(f, "filter", ignorable=i) for f, i in zip(fakes, ignorable, strict=True)))
    assert order == ["b", "d", "a", "c"]


def test_filtering_stops_when_no_node_is_left(extender: Start) -> None:
    first, second = extender({"filter": keep()}), extender({"filter": keep_all})
    scheduler(entry(first, "filter"), entry(second, "filter"))
    assert second.requests == []


def test_an_extender_that_caches_nodes_gets_names(extender: Start) -> None:
    fake = extender({"filter": keep_all})
    h = scheduler(entry(fake, "filter"))
    (asked,) = fake.asked("filter")
    assert (asked["Nodes"], asked["NodeNames"]) == (None, ["n0", "n1", "n2"])
    assert asked["Pod"]["metadata"]["uid"] == h.pod("p")["metadata"]["uid"]
    assert "kind" not in asked["Pod"] and "apiVersion" not in asked["Pod"]


def test_another_one_gets_whole_nodes(extender: Start) -> None:
    fake = extender({"filter": keep_all})
    scheduler(entry(fake, "filter", nodeCacheCapable=False))
    (asked,) = fake.asked("filter")
    assert asked["NodeNames"] is None
    assert [n["metadata"]["name"] for n in asked["Nodes"]["items"]] == ["n0", "n1", "n2"]
    assert asked["Nodes"]["items"][0]["status"]["allocatable"]["cpu"] == "4"


def test_one_that_caches_nodes_may_answer_with_nodes(extender: Start) -> None:
    fake = extender({"filter": {"Nodes": {"items": [{"metadata": {"name": "n1"}}]}}})
    assert scheduler(entry(fake, "filter")).node_of("p") == "n1"


def test_one_that_does_not_is_not_heard_by_names(extender: Start) -> None:
    fake = extender({"filter": {"NodeNames": ["n1"]}})
    h = scheduler(entry(fake, "filter", nodeCacheCapable=False))
    assert h.node_of("p") == ""


def test_neither_names_nor_nodes_is_no_node(extender: Start) -> None:
    fake = extender({"filter": {}})
    h = scheduler(entry(fake, "filter"))
    assert h.cycle("p").outcome is Outcome.UNSCHEDULABLE
    assert h.cycle("p").message == (
        "0/3 nodes are available: no new claims to deallocate, "
        "preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."
    )


@pytest.mark.parametrize("caches", [True, False], ids=["names", "nodes"])
@pytest.mark.parametrize(
    "claimed", ["n9", "full"], ids=["a node that is not there", "a node that was not asked about"]
)
def test_a_node_that_was_not_asked_about_is_an_error(
    extender: Start, caches: bool, claimed: str
) -> None:
    answer = (
        {"NodeNames": [claimed]}
        if caches
        else {"Nodes": {"items": [{"metadata": {"name": claimed}}]}}
    )
    fake = extender({"filter": answer})
    h = scheduler(
        entry(fake, "filter", nodeCacheCapable=caches),
        made=[node("n0"), node("n1"), node("full")],
        pods=[make_pod("p").req(cpu="1"), busy("b", "full", cpu="4")],
    )
    assert h.cycle("p").outcome is Outcome.ERROR
    assert h.cycle("p").message == (
        f'extender "{fake.url}" claims a filtered node "{claimed}" which is not found in the input '
        "node list"
    )


def test_reasons_are_told_like_a_plugins(extender: Start) -> None:
    fake = extender(
        {
            "filter": keep(
                FailedNodes={"n0": "too hot", "n1": "too hot"},
                FailedAndUnresolvableNodes={"n2": "no license"},
            )
        }
    )
    h = scheduler(entry(fake, "filter"))
    record = h.cycle("p")
    assert record.message.startswith("0/3 nodes are available: 1 no license, 2 too hot. ")
    assert rejections(h) == [
        ("Extender", "too hot", 2, True),
        ("Extender", "no license", 1, False),
    ]
    assert record.matrix is not None
    assert set(record.matrix.reasons) == {
        ("Extender", "too hot", Code.UNSCHEDULABLE.label),
        ("Extender", "no license", Code.UNSCHEDULABLE_AND_UNRESOLVABLE.label),
    }
    assert record.unschedulable_plugins == ("Extender",)


def test_unresolvable_wins_where_a_node_is_in_both(extender: Start) -> None:
    fake = extender(
        {"filter": keep(FailedNodes={"n0": "a"}, FailedAndUnresolvableNodes={"n0": "b"})}
    )
    h = scheduler(entry(fake, "filter"), nodes=1)
    assert rejections(h) == [("Extender", "b", 1, False)]


def test_a_node_that_is_left_has_passed_whatever_is_said_of_it(extender: Start) -> None:
    fake = extender({"filter": keep("n1", FailedNodes={"n1": "but", "n0": "no"})})
    h = scheduler(entry(fake, "filter"))
    assert h.node_of("p") == "n1"
    assert ("Extender", "but", 1, True) not in rejections(h)


def test_a_node_dropped_without_a_word_adds_nothing_to_the_message(extender: Start) -> None:
    fake = extender({"filter": keep(FailedNodes={"n0": "too hot"})})
    h = scheduler(entry(fake, "filter"))
    assert h.cycle("p").message.startswith("0/3 nodes are available: 1 too hot. ")
    assert ("Extender", "no reason given", 2, False) in rejections(h)


def test_the_last_word_on_a_node_counts(extender: Start) -> None:
    fake = extender({"filter": keep(FailedNodes={"n0": "no", "n1": "full up"})})
    h = scheduler(
        entry(fake, "filter"),
        nodes=2,
        pods=[make_pod("p").req(cpu="1"), busy("b", "n1", cpu="4")],
    )
    assert h.cycle("p").message.startswith("0/2 nodes are available: 1 full up, 1 no. ")
    assert h.cycle("p").unschedulable_plugins == ("Extender", "NodeResourcesFit")


def test_reasons_for_nodes_that_are_not_there_are_passed_over(extender: Start) -> None:
    fake = extender({"filter": keep(FailedNodes={"n0": "no", "ghost": "boo"})})
    h = scheduler(entry(fake, "filter"), nodes=1)
    assert h.cycle("p").message.startswith("0/1 nodes are available: 1 no. ")


def test_nothing_is_recorded_where_the_list_did_not_shrink(extender: Start) -> None:
    fake = extender({"filter": keep_all})
    h = scheduler(entry(fake, "filter"))
    assert h.cycle("p").unschedulable_plugins == ()
    assert h.cycle("p").nodes_feasible == 3


def test_one_node_left_is_not_scored(extender: Start) -> None:
    fake = extender({"filter": keep("n1"), "prioritize": scores(n1=10)})
    h = scheduler(entry(fake, "filter", "prioritize"))
    assert h.node_of("p") == "n1"
    assert fake.asked("prioritize") == []
    assert h.cycle("p").score is None


def test_a_nominated_node_is_tried_alone_by_extenders_too(extender: Start) -> None:
    fake = extender({"filter": keep_all})
    h = scheduler(entry(fake, "filter"), nominated="n2")
    assert [names_of(asked) for asked in fake.asked("filter")] == [["n2"]]
    assert h.node_of("p") == "n2"


@pytest.mark.parametrize(
    "first", [{"NodeNames": []}, status(500)], ids=["they reject it", "they fail"]
)
def test_a_nominated_node_that_extenders_do_not_leave_is_one_of_many(
    extender: Start, first: Any
) -> None:
    def answer(args: Any) -> Any:
        return first if args["NodeNames"] == ["n2"] else keep_all(args)

    fake = extender({"filter": answer})
    h = scheduler(entry(fake, "filter"), nominated="n2")
    assert len(fake.asked("filter")) == 2
    assert h.node_of("p") == "n0"


def test_sampling_goes_on_where_only_extenders_decide(extender: Start) -> None:
    """Without Score plugins one feasible node would do, unless extenders have a word."""
    fake = extender({"filter": keep("n2")})
    profile = {"plugins": {"score": {"disabled": [{"name": "*"}]}}}
    h = scheduler(entry(fake, "filter"), profile=profile)
    assert fake.asked("filter")[0]["NodeNames"] == ["n0", "n1", "n2"]
    assert h.node_of("p") == "n2"


# -- filter: errors --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        pytest.param({"Error": "out of order"}, "out of order", id="an error in the answer"),
        pytest.param(
            status(503), "failed filter with extender at URL {url}/filter, code 503", id="status"
        ),
    ],
)
def test_an_error_fails_the_cycle(extender: Start, answer: Any, text: str) -> None:
    fake = extender({"filter": answer})
    h = scheduler(entry(fake, "filter"))
    record = h.cycle("p")
    assert (record.outcome, record.plugin) == (Outcome.ERROR, "Extender")
    assert record.message == text.format(url=fake.url)
    assert record.unschedulable_plugins == ()
    condition = h.condition("p")
    assert (condition["reason"], condition["message"]) == ("SchedulerError", record.message)


def test_an_error_of_an_ignorable_extender_skips_it(extender: Start) -> None:
    bad, good = extender({"filter": status(500)}), extender({"filter": keep("n2")})
    h = scheduler(entry(bad, "filter", ignorable=True), entry(good, "filter", ignorable=True))
    assert good.asked("filter")[0]["NodeNames"] == ["n0", "n1", "n2"]
    assert h.node_of("p") == "n2"


def test_a_failed_pod_is_tried_again(extender: Start) -> None:
    fake = extender({"filter": status(500)})
    h = scheduler(entry(fake, "filter"))
    fake.answers["filter"] = keep_all
    h.advance(2)
    assert h.node_of("p") == "n0"


def test_any_event_may_help_a_pod_that_an_extender_rejected(extender: Start) -> None:
    """The pseudo plugin Extender hears of everything."""
    fake = extender({"filter": keep()})
    h = scheduler(entry(fake, "filter"))
    h.advance(30)
    asked = len(fake.asked("filter"))
    h.advance(20)
    assert len(fake.asked("filter")) == asked  # time alone brings nothing
    # Nothing of the pod's or of the plugins' concern.
    h.create("PriorityClass", make_priority_class("gold", 7))
    h.create("Pod", make_pod("other").scheduler_name("somebody-else").node("n0"))
    h.settle()
    h.advance(15)
    assert len(fake.asked("filter")) > asked


# -- scoring after a filter ------------------------------------------------------------------------


def crowded(fake: FakeExtender, caches: bool, **more: Any) -> Harness:
    """n0 has 3 of 4 cpus taken, n1 none."""
    return scheduler(
        entry(fake, "filter", nodeCacheCapable=caches),
        made=[node("n0"), node("n1")],
        pods=[make_pod("p").req(cpu="1"), busy("b", "n0", cpu="3")],
        **more,
    )


def fit_scores(h: Harness) -> dict[str, int]:
    return {best.node: best.plugins["NodeResourcesFit"][0] for best in h.cycle("p").best}


def test_names_leave_the_nodes_as_they_are(extender: Start) -> None:
    h = crowded(extender({"filter": keep_all}), caches=True)
    assert fit_scores(h)["n0"] < fit_scores(h)["n1"]
    assert h.node_of("p") == "n1"


def test_nodes_that_come_back_are_scored_without_their_pods(extender: Start) -> None:
    h = crowded(extender({"filter": keep_all}), caches=False)
    assert fit_scores(h)["n0"] == fit_scores(h)["n1"]
    balanced = [best.plugins["NodeResourcesBalancedAllocation"][0] for best in h.cycle("p").best]
    assert len(set(balanced)) == 1
    assert h.node_of("p") == "n0"  # as good as the other, and smaller by name


def test_filters_have_seen_the_pods_all_the_same(extender: Start) -> None:
    fake = extender({"filter": keep_all})
    h = scheduler(
        entry(fake, "filter", nodeCacheCapable=False),
        pods=[make_pod("p").req(cpu="2"), busy("b", "n0", cpu="3")],
    )
    assert h.node_of("p") == "n1"


def test_an_ignored_filter_leaves_the_nodes_as_they_are(extender: Start) -> None:
    fake = extender({"filter": status(500)})
    h = scheduler(
        entry(fake, "filter", nodeCacheCapable=False, ignorable=True),
        made=[node("n0"), node("n1")],
        pods=[make_pod("p").req(cpu="1"), busy("b", "n0", cpu="3")],
    )
    assert h.node_of("p") == "n1"


def test_nodes_that_come_back_have_no_images(extender: Start) -> None:
    image = {"image": "registry.example/big:1"}
    fake = extender({"filter": keep_all})
    made = [node("n0"), node("n1").image(image["image"], size=900_000_000)]
    pod = make_pod("p").container(**image)
    for caches, chosen in ((True, "n1"), (False, "n0")):
        h = scheduler(entry(fake, "filter", nodeCacheCapable=caches), made=made, pods=[pod])
        assert h.node_of("p") == chosen


def spread(key: str) -> Any:
    raw = make_pod("p").label(app="web").req(cpu="1m").raw()
    raw["spec"]["topologySpreadConstraints"] = [
        {
            "maxSkew": 1,
            "topologyKey": key,
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": {"app": "web"}},
        }
    ]
    return raw


@pytest.mark.parametrize(
    ("key", "counted"),
    [
        pytest.param("topology.kubernetes.io/zone", True, id="zones are counted over the snapshot"),
        pytest.param("kubernetes.io/hostname", False, id="hosts count for themselves: nothing"),
    ],
)
def test_spreading_over_nodes_that_came_back(extender: Start, key: str, counted: bool) -> None:
    fake = extender({"filter": keep_all})
    h = scheduler(
        entry(fake, "filter", nodeCacheCapable=False),
        made=[node("n0").zone("a"), node("n1").zone("b")],
        pods=[spread(key), busy("b", "n0", cpu="1m").label(app="web")],
    )
    raw = {best.node: best.plugins["PodTopologySpread"][0] for best in h.cycle("p").best}
    assert (raw["n0"] > raw["n1"]) == counted


# -- prioritize ------------------------------------------------------------------------------------


def totals(h: Harness, pod: str = "p") -> dict[str, int]:
    matrix = h.cycle(pod).matrix
    assert matrix is not None
    return {n: int(t) for n, t in zip(matrix.node_names, matrix.total, strict=True)}


def test_score_times_weight_times_ten_is_added(extender: Start) -> None:
    fake = extender({"prioritize": scores(n0=1, n1=7)})
    h = scheduler(entry(fake, "prioritize", weight=3))
    plain = totals(scheduler())
    assert totals(h) == {"n0": plain["n0"] + 30, "n1": plain["n1"] + 210, "n2": plain["n2"]}
    assert h.node_of("p") == "n1"
    assert h.cycle("p").score == plain["n1"] + 210


def test_scores_appear_in_the_decision_like_a_plugins(extender: Start) -> None:
    fake = extender({"prioritize": scores(n0=1, n1=7)})
    record = scheduler(entry(fake, "prioritize", weight=3)).cycle("p")
    name = f"Extender {fake.url}"
    assert record.best[0].plugins[name] == (7, 70, 210)
    assert record.matrix is not None
    row = record.matrix.plugins.index(name)
    assert record.matrix.weights[row] == 3
    assert record.matrix.raw[row].tolist() == [1, 7, 0]
    assert record.matrix.normalized[row].tolist() == [10, 70, 0]
    summed = record.matrix.weights @ record.matrix.normalized.astype(int)
    assert summed.tolist() == record.matrix.total.tolist()


def test_several_extenders_are_asked_at_once(extender: Start) -> None:
    together = threading.Barrier(3)

    def answer(_: Any) -> Any:
        together.wait(5)  # nobody answers before everybody was asked
        return scores(n2=1)

    fakes = [extender({"prioritize": answer}) for _ in range(3)]
    h = scheduler(*(entry(fake, "prioritize") for fake in fakes))
    plain = totals(scheduler())
    assert totals(h)["n2"] == plain["n2"] + 30
    assert [p for p in h.cycle("p").best[0].plugins if p.startswith("Extender")] == [
        f"Extender {fake.url}" for fake in fakes
    ]


@pytest.mark.parametrize("ignorable", [True, False])
def test_errors_of_prioritize_are_always_ignored(extender: Start, ignorable: bool) -> None:
    bad, good = extender({"prioritize": status(500)}), extender({"prioritize": scores(n1=5)})
    h = scheduler(entry(bad, "prioritize", ignorable=ignorable), entry(good, "prioritize"))
    assert h.node_of("p") == "n1"
    assert f"Extender {bad.url}" not in h.cycle("p").best[0].plugins
    assert len(bad.requests) == 1


def test_hosts_that_were_not_asked_about_are_passed_over(extender: Start) -> None:
    fake = extender({"prioritize": scores(ghost=10, n1=1)})
    assert scheduler(entry(fake, "prioritize")).node_of("p") == "n1"


def test_a_host_that_comes_twice_counts_twice(extender: Start) -> None:
    fake = extender({"prioritize": scores(n1=2) + scores(n1=3)})
    plain = totals(scheduler())
    assert totals(scheduler(entry(fake, "prioritize")))["n1"] == plain["n1"] + 50


@pytest.mark.parametrize(
    ("given", "points", "shown"),
    [
        pytest.param(11, 110, 100, id="above ten"),
        pytest.param(1_000_000, 10_000_000, 100, id="far above"),
        pytest.param(-1, -10, 0, id="below zero"),
        pytest.param(2**62, (2**62 * 10 + 2**63) % 2**64 - 2**63, 100, id="wraps at 64 bits"),
    ],
)
def test_there_is_no_range_check(extender: Start, given: int, points: int, shown: int) -> None:
    fake = extender({"prioritize": scores(n1=given)})
    h = scheduler(entry(fake, "prioritize"))
    plain = totals(scheduler())
    assert totals(h)["n1"] == plain["n1"] + points
    best = {b.node: b.plugins[f"Extender {fake.url}"] for b in h.cycle("p").best}
    assert best["n1"] == (given, shown, points)


def test_without_score_plugins_only_extenders_count(extender: Start) -> None:
    fake = extender({"prioritize": scores(n1=4)})
    profile = {"plugins": {"score": {"disabled": [{"name": "*"}]}}}
    h = scheduler(entry(fake, "prioritize"), profile=profile)
    assert totals(h) == {"n0": 0, "n1": 40, "n2": 0}


def test_ties_that_extenders_leave_are_broken_as_all_are(extender: Start) -> None:
    fake = extender({"prioritize": scores(n1=10, n2=10)})
    chosen = {
        scheduler(entry(fake, "prioritize"), tie_breaker=SeededRandom(seed)).node_of("p")
        for seed in range(6)
    }
    assert chosen == {"n1", "n2"}
    assert scheduler(entry(fake, "prioritize")).cycle("p").ties == 2


def test_prioritize_is_asked_about_what_filters_left(extender: Start) -> None:
    fake = extender({"filter": keep("n1", "n2"), "prioritize": scores(n2=1)})
    h = scheduler(entry(fake, "filter", "prioritize"))
    assert fake.asked("prioritize")[0]["NodeNames"] == ["n1", "n2"]
    assert h.node_of("p") == "n2"


def test_prioritize_with_whole_nodes(extender: Start) -> None:
    fake = extender({"prioritize": scores(n2=1)})
    scheduler(entry(fake, "prioritize", nodeCacheCapable=False))
    (asked,) = fake.asked("prioritize")
    assert (names_of(asked), asked["NodeNames"]) == (["n0", "n1", "n2"], None)


def test_a_single_node_is_scored_where_that_is_wanted(extender: Start) -> None:
    fake = extender({"prioritize": scores(n0=2)})
    options = SchedulerOptions(score_single_node=True, listing_interval=0.0)
    h = scheduler(entry(fake, "prioritize"), nodes=1, options=options)
    assert h.cycle("p").best[0].plugins[f"Extender {fake.url}"] == (2, 20, 20)


def test_two_extenders_at_one_url_are_told_apart(extender: Start) -> None:
    fake = extender({"a": scores(n0=1), "b": scores(n1=3)})
    h = scheduler(
        entry(fake, prioritizeVerb="a", weight=1), entry(fake, prioritizeVerb="b", weight=1)
    )
    names = [p for p in h.cycle("p").best[0].plugins if p.startswith("Extender")]
    assert names == [f"Extender {fake.url}", f"Extender {fake.url} (2)"]


# -- time ------------------------------------------------------------------------------------------


def test_a_decision_tells_how_long_extenders_took(extender: Start) -> None:
    fake = extender({"filter": keep_all, "prioritize": scores(n1=1)})
    record = scheduler(entry(fake, "filter", "prioritize")).cycle("p")
    for point in ("ExtenderFilter", "ExtenderPrioritize"):
        assert record.point_seconds[point] > 0
        assert record.plugin_seconds[point, f"Extender {fake.url}"] > 0


def test_without_extenders_there_is_no_trace_of_them() -> None:
    record = scheduler().cycle("p")
    assert not [point for point in record.point_seconds if "Extender" in point]


# -- preempt ---------------------------------------------------------------------------------------


def full_cluster(*extenders: dict[str, Any], **more: Any) -> Harness:
    """Three full nodes with two pods of lower priority each; preemption would take n0's "v0a"."""
    victims = [of_class(busy(f"v{i}{x}", f"n{i}", cpu="2"), i) for i in range(3) for x in "ab"]
    preemptor = of_class(make_pod("p").req(cpu="2"), 100)
    return scheduler(*extenders, pods=[*victims, preemptor], **more)


def meta(args: Any, *keep_nodes: str) -> Any:
    """The reply that leaves these nodes of a request."""
    victims = args["NodeNameToMetaVictims"]
    if victims is None:
        victims = {
            name: {
                "Pods": [{"UID": pod["metadata"]["uid"]} for pod in entry["Pods"]],
                "NumPDBViolations": entry["NumPDBViolations"],
            }
            for name, entry in args["NodeNameToVictims"].items()
        }
    return {"NodeNameToMetaVictims": {n: v for n, v in victims.items() if n in keep_nodes}}


@pytest.mark.parametrize("caches", [True, False], ids=["by uid", "with whole pods"])
def test_preempt_leaves_some_candidates(extender: Start, caches: bool) -> None:
    fake = extender({"preempt": lambda args: meta(args, "n2")})
    h = full_cluster(entry(fake, "preempt", nodeCacheCapable=caches))
    (asked,) = fake.asked("preempt")
    sent = asked["NodeNameToMetaVictims" if caches else "NodeNameToVictims"]
    assert sorted(sent) == ["n0", "n1", "n2"]
    assert asked["NodeNameToVictims" if caches else "NodeNameToMetaVictims"] is None
    assert h.cycles("p")[0].nominated_node == "n2"
    assert h.pod(h.cycles("p")[0].victims[0].partition("/")[2])["metadata"]["deletionTimestamp"]


def test_without_extenders_the_lowest_priority_goes() -> None:
    assert full_cluster().cycles("p")[0].nominated_node == "n0"


def test_the_victims_may_be_others(extender: Start) -> None:
    def other(args: Any) -> Any:
        (sent,) = args["NodeNameToMetaVictims"]["n1"]["Pods"]
        (uid,) = uids - {sent["UID"]}
        return {"NodeNameToMetaVictims": {"n1": {"Pods": [{"UID": uid}], "NumPDBViolations": 0}}}

    plain = full_cluster()
    uids: set[str] = set()
    first = extender({"preempt": other, "filter": keep_all})
    h = full_cluster(
        entry(first, "preempt"),
        before=lambda h: uids.update(h.pod(f"v1{x}")["metadata"]["uid"] for x in "ab"),
    )
    assert h.cycles("p")[0].victims != plain.cycles("p")[0].victims
    assert len(h.cycles("p")[0].victims) == 1
    assert h.cycles("p")[0].nominated_node == "n1"


def test_each_interested_extender_gets_what_the_last_one_left(extender: Start) -> None:
    first = extender({"preempt": lambda args: meta(args, "n1", "n2")})
    bored = extender({"preempt": lambda args: meta(args)})
    second = extender({"preempt": lambda args: meta(args, "n2")})
    full_cluster(
        entry(first, "preempt"), entry(bored, "preempt", **MANAGED), entry(second, "preempt")
    )
    assert sorted(second.asked("preempt")[0]["NodeNameToMetaVictims"]) == ["n1", "n2"]
    assert bored.requests == []


def test_no_candidate_left(extender: Start) -> None:
    fake = extender({"preempt": {"NodeNameToMetaVictims": {}}})
    h = full_cluster(entry(fake, "preempt"))
    assert h.cycles("p")[0].message == (
        "0/3 nodes are available: 3 Insufficient cpu. "
        "no new claims to deallocate, preemption: no candidate node for preemption"
    )


@pytest.mark.parametrize("ignorable", [False, True], ids=["fails", "is dropped if ignorable"])
def test_a_node_without_victims(extender: Start, ignorable: bool) -> None:
    def answer(args: Any) -> Any:
        reply = meta(args, "n1", "n2")
        reply["NodeNameToMetaVictims"]["n1"]["Pods"] = []
        return reply

    h = full_cluster(entry(extender({"preempt": answer}), "preempt", ignorable=ignorable))
    if ignorable:
        assert h.cycles("p")[0].nominated_node == "n2"
    else:
        assert h.cycles("p")[0].message.endswith('expected at least one victim pod on node "n1"')


LIES = {
    "a node that is not there": (
        {"n9": {"Pods": [{"UID": "u"}]}},
        'nodeinfo not found for node name "n9"',
    ),
    "a victim that is not there": (
        {"n1": {"Pods": [{"UID": "u"}]}},
        "claims to preempt pod (UID: &{u}) on node: n1, but the pod is not found on that node",
    ),
}


@pytest.mark.parametrize(("victims", "text"), LIES.values(), ids=list(LIES))
@pytest.mark.parametrize("ignorable", [False, True], ids=["must answer", "ignorable"])
def test_preempt_with_what_cannot_be(
    extender: Start, victims: Any, text: str, ignorable: bool
) -> None:
    fake = extender({"preempt": {"NodeNameToMetaVictims": victims}})
    h = full_cluster(entry(fake, "preempt", ignorable=ignorable))
    first = h.cycles("p")[0]
    if ignorable:
        assert first.nominated_node == "n0"
    else:
        assert first.message.endswith(text)
        assert first.nominated_node == ""


def test_it_cannot_have_a_pod_of_equal_or_higher_priority_evicted(extender: Start) -> None:
    def boss(h: Harness) -> None:
        uid = h.pod("boss")["metadata"]["uid"]
        victims = {"n3": {"Pods": [{"UID": uid}]}}
        fake.answers["preempt"] = {"NodeNameToMetaVictims": victims}

    fake = extender({})
    h = scheduler(
        entry(fake, "preempt"),
        made=[node("n3")],
        pods=[
            of_class(busy("boss", "n3", cpu="2"), 100),
            busy("low", "n3", cpu="2"),
            of_class(make_pod("p").req(cpu="2"), 100),
        ],
        before=boss,
    )
    assert h.cycles("p")[0].message.endswith("on node: n3, but its priority is not lower")
    assert h.node_of("boss") == "n3"


# -- bind ------------------------------------------------------------------------------------------


def binder(h: list[Harness]) -> Callable[[Any], Any]:
    """Binds as an extender has to: by the API."""

    def answer(args: Any) -> Any:
        names = args["PodNamespace"], args["PodName"]
        h[0].cluster.bind(*names, args["PodUID"], args["Node"])
        return {"Error": ""}

    return answer


def bound_by(*extenders: dict[str, Any], holder: list[Harness], **more: Any) -> Harness:
    config = {"extenders": list(extenders)}
    pods = more.pop("pods", [make_pod("p").req(cpu="1")])
    h = Harness(nodes=[node("n0")], config=config, **more)
    holder.append(h)
    h.create("Pod", *pods)
    h.settle()
    return h


def test_bind_replaces_the_bind_plugins(extender: Start) -> None:
    holder: list[Harness] = []
    fake = extender({"bind": binder(holder)})
    h = bound_by(entry(fake, "bind"), holder=holder)
    uid = h.pod("p")["metadata"]["uid"]
    assert fake.asked("bind") == [
        {"PodName": "p", "PodNamespace": "default", "PodUID": uid, "Node": "n0"}
    ]
    assert h.node_of("p") == "n0"
    assert [e["note"] for e in h.events("Scheduled")] == ["Successfully assigned default/p to n0"]
    assert h.observer.bindings[0].bound
    assert "Bind" in h.observer.bindings[0].point_seconds


def test_no_extender_is_asked_to_bind_where_nothing_may_be_written(
    extender: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has rights of its own, and knows nothing of our lease."""

    def lost(cluster: object) -> None:
        raise ApiError(503, "LeaseLost", "the lease is another's")

    monkeypatch.setattr(SandboxCluster, "check_writable", lost, raising=False)
    fake = extender({"bind": {"Error": ""}})
    h = bound_by(entry(fake, "bind"), holder=[])
    assert fake.requests == []
    (binding,) = h.observer.bindings
    assert (binding.bound, binding.message) == (False, "the lease is another's")


def test_bind_plugins_do_it_where_the_extender_is_not_interested(extender: Start) -> None:
    fake = extender({"bind": {}})
    h = bound_by(entry(fake, "bind", **MANAGED), holder=[])
    assert h.node_of("p") == "n0"
    assert fake.requests == []


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        pytest.param({"Error": "no ink"}, "no ink", id="an error in the answer"),
        pytest.param(
            status(500), "failed bind with extender at URL {url}/bind, code 500", id="status"
        ),
    ],
)
def test_an_error_of_bind_fails_the_binding(extender: Start, answer: Any, text: str) -> None:
    fake = extender({"bind": answer})
    h = bound_by(entry(fake, "bind"), holder=[])
    assert h.node_of("p") == ""
    (binding,) = h.observer.bindings
    assert (binding.bound, binding.message) == (False, text.format(url=fake.url))
    assert h.condition("p")["reason"] == "SchedulerError"


def test_an_error_of_an_ignorable_binder_leaves_it_to_the_plugins(extender: Start) -> None:
    fake = extender({"bind": status(500)})
    h = bound_by(entry(fake, "bind", ignorable=True), holder=[])
    assert len(fake.requests) == 1
    assert h.node_of("p") == "n0"


# -- configuration ---------------------------------------------------------------------------------


def test_resources_that_the_scheduler_shall_ignore(extender: Start) -> None:
    """``ignoredByScheduler`` takes a resource from NodeResourcesFit in every profile."""
    fake = extender({"filter": keep_all})
    managed = [{"name": GPU, "ignoredByScheduler": True}]
    profiles = [{"schedulerName": "default-scheduler"}, {"schedulerName": "second"}]
    h = scheduler(
        entry(fake, "filter", managedResources=managed),
        config={"profiles": profiles},
        pods=[
            make_pod("p").req({GPU: "1"}),
            make_pod("q").req({GPU: "1"}).scheduler_name("second"),
        ],
    )
    assert h.node_of("p") and h.node_of("q")
    assert len(fake.asked("filter")) == 2


def test_a_resource_that_it_only_manages_is_still_counted(extender: Start) -> None:
    fake = extender({"filter": keep_all})
    h = scheduler(entry(fake, "filter", **MANAGED), pods=[make_pod("p").req({GPU: "1"})])
    assert f"Insufficient {GPU}" in h.cycle("p").message
    assert fake.requests == []


def test_they_are_shared_by_all_profiles(extender: Start) -> None:
    fake = extender({"filter": keep("n1")})
    profiles = [{"schedulerName": "default-scheduler"}, {"schedulerName": "second"}]
    h = scheduler(
        entry(fake, "filter"),
        config={"profiles": profiles},
        pods=[make_pod("p"), make_pod("q").scheduler_name("second")],
    )
    assert (h.node_of("p"), h.node_of("q")) == ("n1", "n1")


def test_certificates_that_cannot_be_used_stop_the_scheduler_from_starting() -> None:
    config = {"urlPrefix": "https://h", "filterVerb": "f", "tlsConfig": {"caFile": "/no/such"}}
    with pytest.raises(ProfileError) as failure:
        scheduler(config)
    assert str(failure.value) == (
        "couldn't build extenders: open /no/such: no such file or directory"
    )
