"""InterPodAffinity, rule by rule."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from scheduler_core.api import Node, Pod
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.events import NODE_ADD, ActionType, ClusterEvent
from scheduler_core.framework.events import EventResource as Resource
from scheduler_core.framework.nodes import NodeInfos
from scheduler_core.framework.status import SKIP, SUCCESS, Code, Status, unresolvable, unschedulable
from scheduler_core.plugins.inter_pod_affinity import InterPodAffinity
from scheduler_core.testing.builders import PodBuilder, make_namespace, make_node, make_pod
from tests.plugins.support import FakeHandle, filter_both, hint, score_both

ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
NOT_NEAR = unresolvable("node(s) didn't match pod affinity rules")
TOO_NEAR = unschedulable("node(s) didn't match pod anti-affinity rules")
UNWANTED = unschedulable("node(s) didn't satisfy existing pods anti-affinity rules")
WEB, DB = {"app": "web"}, {"app": "db"}


def own() -> PodBuilder:
    return make_pod("own").label(WEB)


def on(node: str, labels: dict[str, str], name: str = "") -> PodBuilder:
    return make_pod(name or f"{labels.get('app', 'p')}-{node}").label(labels).node(node)


def term(labels: dict[str, str], key: str = ZONE, **more: Any) -> dict[str, Any]:
    return {"topologyKey": key, "labelSelector": {"matchLabels": labels}, **more}


def near(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"podAffinity": {REQUIRED: list(terms)}}


def far(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"podAntiAffinity": {REQUIRED: list(terms)}}


def zoned(*zones: str) -> list[Node]:
    return [make_node(f"n{i}").zone(zone).obj() for i, zone in enumerate(zones)]


def cluster(*pods: PodBuilder) -> FakeHandle:
    """Zone a with n0 and n1, zone b with n2, and n3 without a zone."""
    nodes = [*zoned("a", "a", "b"), make_node("n3").obj()]
    return FakeHandle(nodes, [pod.obj() for pod in pods])


def by_name(handle: FakeHandle) -> NodeInfos:
    """All nodes by name; in the snapshot zones take turns."""
    return handle.nodes.subset(np.argsort(handle.nodes.names))


def filtered(pod: Pod, handle: FakeHandle) -> list[Status] | Status:
    """Statuses of all nodes, or that of PreFilter if it is not Success."""
    plugin = InterPodAffinity({}, handle)
    state = CycleState()
    _, status = plugin.pre_filter(state, pod, handle.nodes)
    return filter_both(plugin, pod, by_name(handle), state) if status.is_success else status


def scored(pod: Pod, handle: FakeHandle, args: Any = None) -> Any:
    """(raw, normalized) of all nodes, or the status of PreScore if it is not Success."""
    plugin = InterPodAffinity(args or {}, handle)
    nodes, state = by_name(handle), CycleState()
    status = plugin.pre_score(state, pod, nodes)
    if not status.is_success:
        return status
    raw = score_both(plugin, pod, nodes, state)
    scaled = plugin.normalize_score(state, pod, nodes, np.array(raw, dtype=np.int64))
    return raw, scaled.tolist()


# -- Filter: affinity ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "affinity, pods, expected",
    [
        pytest.param(
            near(term(DB)),
            [on("n0", DB)],
            [SUCCESS, SUCCESS, NOT_NEAR, NOT_NEAR],
            id="same-zone-as-a-db",
        ),
        pytest.param(near(term(DB)), [], [NOT_NEAR] * 4, id="there-is-no-db"),
        pytest.param(
            near(term(WEB)),
            [],
            [SUCCESS, SUCCESS, SUCCESS, NOT_NEAR],
            id="first-of-its-kind-needs-only-the-key",
        ),
        pytest.param(
            near(term(WEB)),
            [on("n2", WEB)],
            [NOT_NEAR, NOT_NEAR, SUCCESS, NOT_NEAR],
            id="not-the-first-of-its-kind",
        ),
        pytest.param(
            near(term(WEB)),
            [on("n3", WEB)],
            [SUCCESS, SUCCESS, SUCCESS, NOT_NEAR],
            id="pods-on-nodes-without-the-key-do-not-count",
        ),
        pytest.param(
            near(term(DB), term({"tier": "x"})),
            [on("n0", DB), on("n0", {"tier": "x"}, "x")],
            [NOT_NEAR] * 4,
            id="one-pod-has-to-match-all-terms",
        ),
        pytest.param(
            near(term(DB), term({"tier": "x"}, HOSTNAME)),
            [on("n0", {**DB, "tier": "x"})],
            [SUCCESS, NOT_NEAR, NOT_NEAR, NOT_NEAR],
            id="every-key-has-to-be-near",
        ),
        pytest.param(
            near(term(DB)),
            [on("n0", DB).terminating()],
            [SUCCESS, SUCCESS, NOT_NEAR, NOT_NEAR],
            id="terminating-pods-count",
        ),
        pytest.param(near({"topologyKey": ZONE}), [on("n0", DB)], [NOT_NEAR] * 4, id="no-selector"),
        pytest.param(
            near({"topologyKey": ZONE, "labelSelector": {}}),
            [on("n0", DB)],
            [SUCCESS, SUCCESS, NOT_NEAR, NOT_NEAR],
            id="empty-selector-is-everything",
        ),
    ],
)
def test_affinity(affinity: Any, pods: list[PodBuilder], expected: list[Status]) -> None:
    assert filtered(own().affinity(affinity).obj(), cluster(*pods)) == expected


# -- Filter: anti-affinity -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "affinity, pods, expected",
    [
        pytest.param(
            far(term(DB)),
            [on("n0", DB)],
            [TOO_NEAR, TOO_NEAR, SUCCESS, SUCCESS],
            id="no-key-is-far-away",
        ),
        pytest.param(far(term(DB)), [on("n3", DB)], [SUCCESS] * 4, id="pod-without-a-domain"),
        pytest.param(
            far(term(DB, HOSTNAME), term({"tier": "x"})),
            [on("n0", DB), on("n2", {"tier": "x"})],
            [TOO_NEAR, SUCCESS, TOO_NEAR, SUCCESS],
            id="each-term-by-itself",
        ),
        pytest.param(
            {},
            [on("n0", DB).affinity(far(term(WEB)))],
            [UNWANTED, UNWANTED, SUCCESS, SUCCESS],
            id="existing-pods-do-not-want-it",
        ),
        pytest.param({}, [on("n3", DB).affinity(far(term(WEB)))], SKIP, id="in-no-domain"),
        pytest.param({}, [on("n0", DB).affinity(far(term(DB)))], SKIP, id="they-mean-others"),
        pytest.param({}, [on("n0", WEB)], SKIP, id="nobody-minds"),
        pytest.param(
            {**near(term(DB)), **far(term(DB, HOSTNAME))},
            [on("n0", DB), on("n2", DB).affinity(far(term(WEB)))],
            [TOO_NEAR, SUCCESS, TOO_NEAR, NOT_NEAR],
            id="order-of-reasons",
        ),
    ],
)
def test_anti_affinity(
    affinity: Any, pods: list[PodBuilder], expected: list[Status] | Status
) -> None:
    assert filtered(own().affinity(affinity).obj(), cluster(*pods)) == expected


# -- namespaces ------------------------------------------------------------------------------------

RED = make_namespace("red").label(team="red").obj()
BLUE = make_namespace("blue").label(team="blue").obj()


def team(operator: str, *values: str) -> dict[str, Any]:
    entry = {"key": "team", "operator": operator}
    return {"matchExpressions": [{**entry, "values": list(values)} if values else entry]}


@pytest.mark.parametrize(
    "where, there, own_namespace, matches",
    [
        pytest.param({}, "red", "red", True, id="own-namespace"),
        pytest.param({}, "blue", "red", False, id="other-namespace"),
        pytest.param({"namespaces": ["blue"]}, "blue", "red", True, id="listed"),
        pytest.param({"namespaces": ["blue"]}, "red", "red", False, id="own-is-not-listed"),
        pytest.param({"namespaceSelector": {}}, "gone", "red", True, id="empty-selector-is-all"),
        pytest.param({"namespaceSelector": team("In", "blue")}, "blue", "red", True, id="selected"),
        pytest.param(
            {"namespaceSelector": team("In", "blue")}, "red", "red", False, id="own-not-selected"
        ),
        pytest.param(
            {"namespaceSelector": team("In", "blue"), "namespaces": ["red"]},
            "red",
            "red",
            True,
            id="listed-or-selected",
        ),
        pytest.param(
            {"namespaceSelector": team("In", "gone")}, "gone", "red", False, id="no-such-object"
        ),
    ],
)
def test_namespaces_of_own_terms(
    where: dict[str, Any], there: str, own_namespace: str, matches: bool
) -> None:
    handle = cluster(on("n0", DB).namespace(there))
    handle.watch(RED, BLUE)
    pod = own().namespace(own_namespace).affinity(far(term(DB, HOSTNAME, **where))).obj()
    assert filtered(pod, handle) == [TOO_NEAR if matches else SUCCESS, SUCCESS, SUCCESS, SUCCESS]


@pytest.mark.parametrize(
    "selector, expected",
    [
        pytest.param(team("NotIn", "red"), TOO_NEAR, id="not-in"),
        pytest.param(team("DoesNotExist"), TOO_NEAR, id="does-not-exist"),
        pytest.param(team("Exists"), TOO_NEAR, id="exists-selects-red-anyway"),
        pytest.param(team("In", "blue"), SUCCESS, id="in"),
    ],
)
def test_own_selector_is_evaluated_once_more_without_labels(
    selector: dict[str, Any], expected: Status
) -> None:
    """Trap 6: a selector of NotIn and DoesNotExist means every namespace, even team red's."""
    handle = cluster(on("n0", DB).namespace("red"))
    handle.watch(RED, BLUE)
    affinity = far(term(DB, HOSTNAME, namespaceSelector=selector))
    found = filtered(own().namespace("blue").affinity(affinity).obj(), handle)
    assert found == [expected, SUCCESS, SUCCESS, SUCCESS]


@pytest.mark.parametrize(
    "where, own_namespace, unwanted",
    [
        pytest.param({}, "red", True, id="owner-s-namespace"),
        pytest.param({}, "blue", False, id="not-the-owner-s-namespace"),
        pytest.param({"namespaces": ["blue"]}, "blue", True, id="listed"),
        pytest.param({"namespaceSelector": team("In", "blue")}, "blue", True, id="selected"),
        pytest.param({"namespaceSelector": team("NotIn", "blue")}, "blue", False, id="real-labels"),
        pytest.param({"namespaceSelector": team("DoesNotExist")}, "gone", True, id="no-labels"),
    ],
)
def test_namespaces_of_existing_pods_terms(
    where: dict[str, Any], own_namespace: str, unwanted: bool
) -> None:
    handle = cluster(on("n0", DB).namespace("red").affinity(far(term(WEB, HOSTNAME, **where))))
    handle.watch(RED, BLUE)
    found = filtered(own().namespace(own_namespace).obj(), handle)
    assert found == ([UNWANTED, SUCCESS, SUCCESS, SUCCESS] if unwanted else SKIP)


def test_namespaces_that_change_are_seen_at_the_next_cycle() -> None:
    handle = cluster(on("n0", DB).namespace("red"))
    plugin = InterPodAffinity({}, handle)
    affinity = near(term(DB, HOSTNAME, namespaceSelector=team("In", "red")))
    pod = own().affinity(affinity).obj()
    for namespace, expected in ((BLUE, NOT_NEAR), (RED, SUCCESS)):
        handle.watch(namespace)
        state = CycleState()
        plugin.pre_filter(state, pod, handle.nodes)
        assert filter_both(plugin, pod, by_name(handle), state)[0] == expected


# -- Score -----------------------------------------------------------------------------------------


def prefer(labels: dict[str, str], weight: int, key: str = ZONE) -> dict[str, Any]:
    return {PREFERRED: [{"weight": weight, "podAffinityTerm": term(labels, key)}]}


@pytest.mark.parametrize(
    "affinity, pods, expected",
    [
        pytest.param({}, [on("n0", DB)], SKIP, id="no-terms"),
        pytest.param({"podAffinity": prefer(DB, 5)}, [], SKIP, id="nothing-matches"),
        pytest.param({"podAffinity": prefer(DB, 5)}, [on("n3", DB)], SKIP, id="in-no-domain"),
        pytest.param(
            {"podAffinity": prefer(DB, 5)},
            [on("n0", DB), on("n1", DB)],
            ([10, 10, 0, 0], [100, 100, 0, 0]),
            id="own-preferred-affinity",
        ),
        pytest.param(
            {"podAntiAffinity": prefer(DB, 5)},
            [on("n0", DB)],
            ([-5, -5, 0, 0], [0, 0, 100, 100]),
            id="own-preferred-anti-affinity-is-negative",
        ),
        pytest.param(
            {},
            [on("n0", DB).affinity({"podAffinity": prefer(WEB, 7, HOSTNAME)})],
            ([7, 0, 0, 0], [100, 0, 0, 0]),
            id="theirs",
        ),
        pytest.param(
            {},
            [on("n0", DB).affinity({"podAntiAffinity": prefer(WEB, 7, HOSTNAME)})],
            ([-7, 0, 0, 0], [0, 100, 100, 100]),
            id="theirs-against",
        ),
        pytest.param(
            {},
            [on("n2", DB).affinity(near(term(WEB)))],
            ([0, 0, 1, 0], [0, 0, 100, 0]),
            id="their-required-affinity-counts-the-hard-weight",
        ),
        pytest.param(
            {}, [on("n2", DB).affinity(far(term(WEB)))], SKIP, id="required-anti-does-not"
        ),
        pytest.param(
            {"podAffinity": prefer(DB, 5), "podAntiAffinity": prefer(DB, 5)},
            [on("n0", DB)],
            ([0, 0, 0, 0], [0, 0, 0, 0]),
            id="what-cancels-out-is-no-skip",
        ),
        pytest.param(
            {"podAffinity": prefer(DB, 29, HOSTNAME)},
            [on("n0", DB), on("n1", WEB).affinity({"podAffinity": prefer(WEB, 100, HOSTNAME)})],
            ([29, 100, 0, 0], [28, 100, 0, 0]),
            id="29-of-100-is-28",
        ),
    ],
)
def test_score(affinity: Any, pods: list[PodBuilder], expected: Any) -> None:
    """29 of 100 is 28: the float is cut off (trap 13)."""
    assert scored(own().affinity(affinity).obj(), cluster(*pods)) == expected


@pytest.mark.parametrize(
    "args, own_affinity, expected",
    [
        pytest.param({"hardPodAffinityWeight": 50}, {}, [50, 50, -9, 0], id="hard-weight"),
        pytest.param({"hardPodAffinityWeight": 0}, {}, [0, 0, -9, 0], id="hard-weight-0"),
        pytest.param({"ignorePreferredTermsOfExistingPods": True}, {}, SKIP, id="ignored"),
        pytest.param(
            {"ignorePreferredTermsOfExistingPods": True},
            {"podAffinity": prefer(DB, 3, HOSTNAME)},
            [4, 1, -6, 0],
            id="not-ignored-if-the-pod-itself-prefers",
        ),
    ],
)
def test_arguments(args: dict[str, Any], own_affinity: Any, expected: Any) -> None:
    pods = (
        on("n0", DB).affinity(near(term(WEB))),
        on("n2", DB).affinity({"podAntiAffinity": prefer(WEB, 9)}),
    )
    found = scored(own().affinity(own_affinity).obj(), cluster(*pods), args)
    assert (found if found is SKIP else found[0]) == expected


def test_scores_of_no_nodes() -> None:
    plugin = InterPodAffinity({}, cluster())
    nobody = np.array([], dtype=np.int64)
    assert plugin.normalize_score(CycleState(), own().obj(), cluster().nodes, nobody).tolist() == []


# -- AddPod, RemovePod -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "affinity, other, before, after",
    [
        pytest.param(near(term(DB)), make_pod("o").label(DB), NOT_NEAR, SUCCESS, id="affinity"),
        pytest.param(far(term(DB)), make_pod("o").label(DB), SUCCESS, TOO_NEAR, id="anti-affinity"),
        pytest.param(
            far(term(DB)),
            make_pod("o").affinity(far(term(WEB, "rack"), term(WEB, HOSTNAME))),
            SUCCESS,
            UNWANTED,
            id="its-own-anti-affinity",
        ),
    ],
)
def test_add_and_remove_pod(
    affinity: Any, other: PodBuilder, before: Status, after: Status
) -> None:
    handle = cluster()
    plugin, pod, state = InterPodAffinity({}, handle), own().affinity(affinity).obj(), CycleState()
    plugin.pre_filter(state, pod, handle.nodes)
    twin = state.clone()
    n0, extensions = by_name(handle)[0], plugin.pre_filter_extensions()
    for step, expected in ((extensions.add_pod, after), (extensions.remove_pod, before)):
        assert step(twin, pod, other.obj(), n0) == SUCCESS
        assert filter_both(plugin, pod, by_name(handle), twin)[0] == expected
        assert filter_both(plugin, pod, by_name(handle), state)[0] == before


def test_the_last_pod_that_leaves_makes_the_next_one_the_first() -> None:
    handle = cluster(on("n0", WEB))
    pod, state = own().affinity(near(term(WEB))).obj(), CycleState()
    plugin = InterPodAffinity({}, handle)
    plugin.pre_filter(state, pod, handle.nodes)
    n0 = by_name(handle)[0]
    plugin.pre_filter_extensions().remove_pod(state, pod, n0.pods[0], n0)
    expected = [SUCCESS, SUCCESS, SUCCESS, NOT_NEAR]
    assert filter_both(plugin, pod, by_name(handle), state) == expected


# -- what goes wrong -------------------------------------------------------------------------------

BAD = {"matchExpressions": [{"key": "app", "operator": "Near"}]}
PROBLEM = '"Near" is not a valid label selector operator'


@pytest.mark.parametrize(
    "affinity, text",
    [
        pytest.param(
            near({"topologyKey": ZONE, "labelSelector": BAD}),
            f"parsing pod: requiredAffinityTerms: {PROBLEM}",
            id="one",
        ),
        pytest.param(
            {
                **far({"topologyKey": ZONE, "namespaceSelector": BAD}),
                "podAffinity": {
                    PREFERRED: [
                        {
                            "weight": 1,
                            "podAffinityTerm": {"topologyKey": ZONE, "labelSelector": BAD},
                        }
                    ]
                },
            },
            f"parsing pod: [requiredAntiAffinityTerms: {PROBLEM}, preferredAffinityTerms: "
            f"{PROBLEM}]",
            id="several",
        ),
    ],
)
def test_terms_that_do_not_parse(affinity: Any, text: str) -> None:
    pod = own().affinity(affinity).obj()
    assert filtered(pod, cluster()) == unresolvable(text)
    status = scored(pod, cluster())
    assert status.code is Code.ERROR
    assert status.message == text.replace("parsing pod", "failed to parse pod")


def test_without_the_earlier_point_there_is_no_state() -> None:
    handle = cluster()
    plugin = InterPodAffinity({}, handle)
    text = 'error reading "PreFilterInterPodAffinity" from cycleState: not found'
    with pytest.raises(LookupError, match=text):
        plugin.filter(CycleState(), own().obj(), handle.nodes[0])
    text = 'failed to read "PreScoreInterPodAffinity" from cycleState: not found'
    with pytest.raises(LookupError, match=text):
        plugin.score_nodes(CycleState(), own().obj(), handle.nodes)


# -- queueing hints --------------------------------------------------------------------------------

POD_ADD = ClusterEvent(Resource.ASSIGNED_POD, ActionType.ADD)
POD_DELETE = ClusterEvent(Resource.ASSIGNED_POD, ActionType.DELETE)
POD_LABEL = ClusterEvent(Resource.ASSIGNED_POD, ActionType.UPDATE_POD_LABEL)
OWN_LABEL = ClusterEvent(Resource.UNSCHEDULABLE_POD, ActionType.UPDATE_POD_LABEL)
NODE_LABEL = ClusterEvent(Resource.NODE, ActionType.UPDATE_NODE_LABEL)

WANTS_DB = own().affinity(near(term(DB), term({"tier": "x"}))).obj()
SHUNS_DB = own().affinity(far(term(DB), term({"tier": "x"}))).obj()
BOTH = {**DB, "tier": "x"}
THERE = "n0"


@pytest.mark.parametrize(
    "pod, event, old, new, expected",
    [
        pytest.param(
            WANTS_DB, POD_ADD, None, on(THERE, BOTH), "Queue", id="add-matches-all-affinity-terms"
        ),
        pytest.param(
            WANTS_DB, POD_ADD, None, on(THERE, DB), "Skip", id="add-matches-some-affinity-terms"
        ),
        pytest.param(
            WANTS_DB, POD_ADD, None, make_pod("p").label(BOTH), "Skip", id="add-without-a-node"
        ),
        pytest.param(
            WANTS_DB,
            POD_ADD,
            None,
            make_pod("p").label(BOTH).nominated(THERE),
            "Queue",
            id="add-nominated",
        ),
        pytest.param(SHUNS_DB, POD_ADD, None, on(THERE, BOTH), "Skip", id="add-without-affinity"),
        pytest.param(SHUNS_DB, OWN_LABEL, own(), own().label(v="2"), "Queue", id="own-label"),
        pytest.param(
            WANTS_DB, POD_LABEL, on(THERE, DB, "p"), on(THERE, BOTH, "p"), "Queue", id="starts"
        ),
        pytest.param(
            WANTS_DB, POD_LABEL, on(THERE, BOTH, "p"), on(THERE, DB, "p"), "Skip", id="ceases"
        ),
        pytest.param(
            SHUNS_DB,
            POD_LABEL,
            on(THERE, BOTH, "p"),
            on(THERE, DB, "p"),
            "Queue",
            id="anti-affinity-ceases-to-match-all",
        ),
        pytest.param(
            SHUNS_DB,
            POD_LABEL,
            on(THERE, DB, "p"),
            on(THERE, WEB, "p"),
            "Skip",
            id="anti-affinity-did-not-match-all",
        ),
        pytest.param(
            SHUNS_DB, POD_DELETE, on(THERE, BOTH), None, "Queue", id="delete-matches-all-anti-terms"
        ),
        pytest.param(
            SHUNS_DB, POD_DELETE, on(THERE, DB), None, "Skip", id="delete-matches-some-anti-terms"
        ),
        pytest.param(
            own().obj(),
            POD_DELETE,
            on(THERE, DB).affinity(far(term(WEB))),
            None,
            "Queue",
            id="delete-of-a-pod-that-did-not-want-it",
        ),
        pytest.param(
            own().obj(),
            POD_DELETE,
            on(THERE, DB).affinity(far(term(WEB), term(DB))),
            None,
            "Skip",
            id="delete-of-a-pod-whose-terms-did-not-all-match",
        ),
    ],
)
def test_hint_after_pod_change(
    pod: Pod, event: ClusterEvent, old: PodBuilder | None, new: PodBuilder | None, expected: str
) -> None:
    before, after = (p.obj() if p is not None else None for p in (old, new))
    assert hint(InterPodAffinity({}, FakeHandle()), event, pod, before, after) == expected


BARE, A, B = make_node("n").obj(), make_node("n").zone("a").obj(), make_node("n").zone("b").obj()
OTHER = make_node("n").zone("a").label(disk="ssd").obj()


@pytest.mark.parametrize(
    "pod, event, old, new, expected",
    [
        pytest.param(WANTS_DB, NODE_ADD, None, A, "Queue", id="add-with-an-affinity-key"),
        pytest.param(WANTS_DB, NODE_ADD, None, BARE, "Skip", id="add-without-an-affinity-key"),
        pytest.param(SHUNS_DB, NODE_ADD, None, BARE, "Queue", id="add-with-own-anti-affinity"),
        pytest.param(own().obj(), NODE_ADD, None, A, "Skip", id="add-without-own-terms"),
        pytest.param(WANTS_DB, NODE_LABEL, BARE, A, "Queue", id="affinity-key-appeared"),
        pytest.param(WANTS_DB, NODE_LABEL, A, B, "Queue", id="affinity-key-changed"),
        pytest.param(WANTS_DB, NODE_LABEL, A, BARE, "Skip", id="affinity-key-vanished"),
        pytest.param(WANTS_DB, NODE_LABEL, A, OTHER, "Skip", id="affinity-key-is-the-same"),
        pytest.param(SHUNS_DB, NODE_LABEL, A, BARE, "Queue", id="anti-affinity-key-vanished"),
        pytest.param(SHUNS_DB, NODE_LABEL, A, B, "Queue", id="anti-affinity-key-changed"),
        pytest.param(SHUNS_DB, NODE_LABEL, BARE, A, "Skip", id="anti-affinity-key-appeared"),
        pytest.param(SHUNS_DB, NODE_LABEL, A, OTHER, "Skip", id="anti-affinity-key-is-the-same"),
    ],
)
def test_hint_after_node_change(
    pod: Pod, event: ClusterEvent, old: Node | None, new: Node, expected: str
) -> None:
    assert hint(InterPodAffinity({}, FakeHandle()), event, pod, old, new) == expected


def test_hints_look_namespaces_up() -> None:
    handle = FakeHandle()
    handle.watch(RED)
    pod = own().affinity(near(term(DB, namespaceSelector=team("In", "red")))).obj()
    new = on("n0", DB).namespace("red").obj()
    assert hint(InterPodAffinity({}, handle), POD_ADD, pod, None, new) == "Queue"
