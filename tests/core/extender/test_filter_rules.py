"""Each rule of kube-scheduler 1.36 about filters of extenders, and whom they are asked about."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from scheduler_core.framework.status import Code
from scheduler_core.records import Outcome
from scheduler_core.testing.builders import make_node, make_pod, make_priority_class
from tests.core.extender.server import keep, keep_all, names_of, scores, status
from tests.core.extender.world import (
    GPU,
    MANAGED,
    Start,
    busy,
    entry,
    node,
    rejections,
    scheduler,
)

# -- interest --------------------------------------------------------------------------------------


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
