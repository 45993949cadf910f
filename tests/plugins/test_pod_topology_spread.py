"""PodTopologySpread, rule by rule."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from scheduler_core.api import Node, Pod, parse_object
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.events import NODE_ADD, NODE_DELETE, ActionType, ClusterEvent
from scheduler_core.framework.events import EventResource as Resource
from scheduler_core.framework.nodes import NodeInfos
from scheduler_core.framework.status import SKIP, SUCCESS, Code, Status, unresolvable, unschedulable
from scheduler_core.plugins.pod_topology_spread import PodTopologySpread
from scheduler_core.testing.builders import PodBuilder, make_node, make_pod
from tests.plugins.support import FakeHandle, filter_both, hint, score_both

ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"
UNEVEN = unschedulable("node(s) didn't match pod topology spread constraints")
NO_LABEL = unresolvable(
    "node(s) didn't match pod topology spread constraints (missing required label)"
)
WEB = {"app": "web"}
NO_DEFAULTS = {"defaultingType": "List"}


def web(name: str, node: str = "") -> PodBuilder:
    builder = make_pod(name).label(WEB)
    return builder.node(node) if node else builder


def spread(name: str = "own", **fields: Any) -> PodBuilder:
    """A web pod that is spread over zones."""
    return web(name).spread(ZONE, WEB, **fields)


def zoned(*zones: str) -> list[Node]:
    return [make_node(f"n{i}").zone(zone).obj() for i, zone in enumerate(zones)]


def by_name(handle: FakeHandle) -> NodeInfos:
    """All nodes by name; in the snapshot zones take turns."""
    return handle.nodes.subset(np.argsort(handle.nodes.names))


def filtered(pod: Pod, handle: FakeHandle, args: Any = NO_DEFAULTS) -> list[Status] | Status:
    """Statuses of all nodes, or that of PreFilter if it is not Success."""
    plugin = PodTopologySpread(args, handle)
    state = CycleState()
    _, status = plugin.pre_filter(state, pod, handle.nodes)
    if not status.is_success:
        return status
    return filter_both(plugin, pod, by_name(handle), state)


def scored(pod: Pod, handle: FakeHandle, args: Any = NO_DEFAULTS) -> Any:
    """(raw, normalized) of all nodes, or the status of PreScore if it is not Success."""
    plugin = PodTopologySpread(args, handle)
    nodes, state = by_name(handle), CycleState()
    status = plugin.pre_score(state, pod, nodes)
    if not status.is_success:
        return status
    raw = score_both(plugin, pod, nodes, state)
    scaled = plugin.normalize_score(state, pod, nodes, np.array(raw, dtype=np.int64))
    return raw, scaled.tolist()


# -- Filter ----------------------------------------------------------------------------------------


def two_and_none() -> FakeHandle:
    """Two web pods in zone a, none in zone b."""
    return FakeHandle(zoned("a", "b"), [web("p0", "n0").obj(), web("p1", "n0").obj()])


@pytest.mark.parametrize(
    "pod, expected",
    [
        pytest.param(spread().obj(), [UNEVEN, SUCCESS], id="more-than-max-skew"),
        pytest.param(spread(max_skew=3).obj(), [SUCCESS, SUCCESS], id="max-skew-is-allowed"),
        pytest.param(spread(max_skew=2).obj(), [UNEVEN, SUCCESS], id="the-pod-itself-counts"),
        pytest.param(
            make_pod("own").spread(ZONE, WEB, max_skew=2).obj(),
            [SUCCESS, SUCCESS],
            id="a-pod-that-does-not-match-does-not-count-itself",
        ),
        pytest.param(
            spread().namespace("other").obj(), [SUCCESS, SUCCESS], id="own-namespace-only"
        ),
        pytest.param(
            spread(max_skew=1, labelSelector={}).obj(),
            [SUCCESS, SUCCESS],
            id="empty-selector-counts-no-pod",
        ),
        pytest.param(
            spread(max_skew=1, labelSelector=None).obj(),
            [SUCCESS, SUCCESS],
            id="no-selector-selects-no-pod",
        ),
        pytest.param(
            web("own").spread("rack", WEB).obj(), [NO_LABEL, NO_LABEL], id="label-is-missing"
        ),
        pytest.param(
            spread(when_unsatisfiable="ScheduleAnyway").obj(), SKIP, id="soft-ones-do-not-filter"
        ),
        pytest.param(
            spread(max_skew=2, minDomains=2).obj(), [UNEVEN, SUCCESS], id="enough-domains"
        ),
    ],
)
def test_filter(pod: Pod, expected: list[Status] | Status) -> None:
    assert filtered(pod, two_and_none()) == expected


@pytest.mark.parametrize(
    "min_domains, expected",
    [
        pytest.param(2, [SUCCESS, SUCCESS], id="enough-domains"),
        pytest.param(3, [UNEVEN, UNEVEN], id="too-few-domains-count-as-an-empty-one"),
    ],
)
def test_min_domains(min_domains: int, expected: list[Status]) -> None:
    handle = FakeHandle(zoned("a", "b"), [web("p0", "n0").obj(), web("p1", "n1").obj()])
    assert filtered(spread(minDomains=min_domains).obj(), handle) == expected


def test_terminating_pods_do_not_count() -> None:
    handle = FakeHandle(zoned("a", "b"), [web("p0", "n0").terminating().obj()])
    assert filtered(spread().obj(), handle) == [SUCCESS, SUCCESS]


def test_constraints_are_checked_in_order() -> None:
    pod = web("own").spread(ZONE, WEB).spread("rack", WEB).obj()
    handle = FakeHandle(
        [make_node("n0").zone("a").label(rack="r").obj(), make_node("n1").zone("b").obj()],
        [web("p0", "n0").obj(), web("p1", "n0").obj()],
    )
    # n1 lacks a key, so zone b is no domain: the fewest are the 2 of zone a itself.
    assert filtered(pod, handle) == [SUCCESS, NO_LABEL]


def test_a_domain_counts_without_pods() -> None:
    handle = FakeHandle(zoned("a", "b", "c"), [web("p0", "n0").obj(), web("p1", "n1").obj()])
    assert filtered(spread().obj(), handle) == [UNEVEN, UNEVEN, SUCCESS]


# -- matchLabelKeys --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "labels, keys, selector, expected",
    [
        pytest.param({"v": "2"}, ["v"], {"matchLabels": WEB}, [SUCCESS, SUCCESS], id="other-value"),
        pytest.param({"v": "1"}, ["v"], {"matchLabels": WEB}, [UNEVEN, SUCCESS], id="same-value"),
        pytest.param({}, ["v"], {"matchLabels": WEB}, [UNEVEN, SUCCESS], id="key-not-on-the-pod"),
        pytest.param({"v": "1"}, ["v"], {}, [UNEVEN, SUCCESS], id="alone-they-select"),
        pytest.param({"v": "1"}, ["v"], None, [SUCCESS, SUCCESS], id="not-without-a-selector"),
    ],
)
def test_match_label_keys(
    labels: dict[str, str], keys: list[str], selector: Any, expected: list[Status]
) -> None:
    handle = FakeHandle(zoned("a", "b"), [web("p0", "n0").label(v="1").obj()])
    pod = spread(labelSelector=selector, matchLabelKeys=keys).label(labels).obj()
    assert filtered(pod, handle) == expected


# -- node inclusion policies -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "policies, expected",
    [
        pytest.param({}, [UNEVEN, SUCCESS, SUCCESS], id="defaults-honor-affinity-only"),
        pytest.param(
            {"nodeAffinityPolicy": "Ignore"}, [UNEVEN, UNEVEN, SUCCESS], id="ignore-affinity"
        ),
        pytest.param({"nodeTaintsPolicy": "Honor"}, [SUCCESS] * 3, id="honor-taints"),
    ],
)
def test_node_inclusion_policies(policies: dict[str, str], expected: list[Status]) -> None:
    """Zone a: one pod, wanted. Zone b: one pod, not selected by the node selector. Zone c: no pod,
    tainted. A zone that takes no part does not lower the minimum, and counts 0 for itself."""
    ssd = {"disk": "ssd"}
    handle = FakeHandle(
        [
            make_node("n0").zone("a").label(ssd).obj(),
            make_node("n1").zone("b").obj(),
            make_node("n2").zone("c").label(ssd).taint("gpu").obj(),
        ],
        [web("p0", "n0").obj(), web("p1", "n1").obj()],
    )
    assert filtered(spread(**policies).node_selector(ssd).obj(), handle) == expected


# -- default constraints ---------------------------------------------------------------------------

HARD_ZONE = {
    "defaultingType": "List",
    "defaultConstraints": [
        {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
    ],
}


def obj(kind: str, name: str, selector: Any, api_version: str = "v1", namespace: str = "default"):  # type: ignore[no-untyped-def]
    return parse_object(
        {
            "apiVersion": api_version,
            "kind": kind,
            "metadata": {"name": name, "namespace": namespace},
            "spec": {} if selector is None else {"selector": selector},
        }
    )


@pytest.mark.parametrize(
    "pod, objects, constrained",
    [
        pytest.param(web("own"), [obj("Service", "s", WEB)], True, id="service"),
        pytest.param(web("own"), [], False, id="nothing-selects-the-pod"),
        pytest.param(web("own"), [obj("Service", "s", {"app": "db"})], False, id="other-service"),
        pytest.param(web("own"), [obj("Service", "s", None)], False, id="service-without-selector"),
        pytest.param(web("own"), [obj("Service", "s", {})], False, id="service-selecting-all"),
        pytest.param(
            web("own"),
            [obj("Service", "s", WEB, namespace="other")],
            False,
            id="service-elsewhere",
        ),
        pytest.param(
            web("own").owner("ReplicaSet", "rs"),
            [obj("ReplicaSet", "rs", {"matchLabels": WEB}, "apps/v1")],
            True,
            id="replica-set",
        ),
        pytest.param(
            web("own").owner("StatefulSet", "ss"),
            [obj("StatefulSet", "ss", {"matchLabels": WEB}, "apps/v1")],
            True,
            id="stateful-set",
        ),
        pytest.param(
            web("own").owner("ReplicationController", "rc", "v1"),
            [obj("ReplicationController", "rc", WEB)],
            True,
            id="replication-controller",
        ),
        pytest.param(
            web("own").owner("ReplicaSet", "rs", "apps/v2"),
            [obj("ReplicaSet", "rs", {"matchLabels": WEB}, "apps/v1")],
            False,
            id="exact-group-and-version",
        ),
        pytest.param(web("own").owner("ReplicaSet", "rs"), [], False, id="owner-is-gone"),
        pytest.param(
            web("own").label(v="2").owner("ReplicaSet", "rs"),
            [
                obj("Service", "s", WEB),
                obj("ReplicaSet", "rs", {"matchLabels": {"v": "2"}}, "apps/v1"),
            ],
            False,
            id="service-and-owner-both-have-to-match",
        ),
        pytest.param(
            web("own").spread(HOSTNAME, WEB, when_unsatisfiable="ScheduleAnyway"),
            [obj("Service", "s", WEB)],
            False,
            id="own-constraints-replace-defaults-of-both-kinds",
        ),
    ],
)
def test_default_constraints(pod: PodBuilder, objects: list[Any], constrained: bool) -> None:
    """One web pod is in zone a: a second one has to go to zone b."""
    handle = FakeHandle(zoned("a", "b"), [web("p0", "n0").obj()])
    handle.watch(*objects)
    found = filtered(pod.obj(), handle, HARD_ZONE)
    if constrained:
        assert found == [UNEVEN, SUCCESS]
    else:
        assert found in (SKIP, [SUCCESS, SUCCESS])


def test_system_defaults_are_soft() -> None:
    handle = FakeHandle(zoned("a", "b"), [web("p0", "n0").obj(), web("p1", "n0").obj()])
    handle.watch(obj("Service", "s", WEB))
    assert filtered(web("own").obj(), handle, {"defaultingType": "System"}) == SKIP
    # Hosts and zones both: 2 x ln(2 + 2) + maxSkew - 1, of 3 and 5.
    raw, scaled = scored(web("own").obj(), handle, {"defaultingType": "System"})
    assert raw == [12, 6]
    assert scaled == [50, 100]


def test_system_defaults_count_nodes_without_a_zone() -> None:
    handle = FakeHandle(
        [make_node("n0").zone("a").obj(), make_node("n1").obj(), make_node("n2").obj()],
        [web("p0", "n1").obj(), web("p1", "n0").obj()],
    )
    handle.watch(obj("Service", "s", WEB))
    # Three hosts and two zones, "a" and "": ln 5 + 2 on each host, and ln 4 + 4 in zone a.
    raw, _ = scored(web("own").obj(), handle, {"defaultingType": "System"})
    assert raw == [9, 4, 2]


def test_listed_defaults_leave_nodes_without_a_key_out() -> None:
    args = {
        "defaultingType": "List",
        "defaultConstraints": [
            {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "ScheduleAnyway"}
        ],
    }
    handle = FakeHandle(
        [make_node("n0").zone("a").obj(), make_node("n1").obj()], [web("p0", "n0").obj()]
    )
    handle.watch(obj("Service", "s", WEB))
    assert scored(web("own").obj(), handle, args) == ([1, 0], [100, 0])


def test_without_default_constraints_nothing_else_is_watched() -> None:
    handle = FakeHandle()
    PodTopologySpread(NO_DEFAULTS, handle)
    assert handle.informers.kinds() == ()
    PodTopologySpread({"defaultingType": "System"}, handle)
    assert set(handle.informers.kinds()) == {
        "Service",
        "ReplicationController",
        "ReplicaSet",
        "StatefulSet",
    }


# -- Score -----------------------------------------------------------------------------------------


def soft(*keys: str, **fields: Any) -> PodBuilder:
    pod = web("own")
    for key in keys:
        pod.spread(key, WEB, when_unsatisfiable="ScheduleAnyway", **fields)
    return pod


def three_hosts() -> FakeHandle:
    """Zone a: n0 with 2 pods, n1 with 1. Zone b: n2 with 1."""
    pods = [web("p0", "n0"), web("p1", "n0"), web("p2", "n1"), web("p3", "n2")]
    return FakeHandle(zoned("a", "a", "b"), [p.obj() for p in pods])


@pytest.mark.parametrize(
    "pod, expected",
    [
        pytest.param(spread().obj(), SKIP, id="hard-ones-do-not-score"),
        # 3 x ln 4 = 4.16, 1 x ln 4 = 1.39
        pytest.param(soft(ZONE).obj(), ([4, 4, 1], [25, 25, 100]), id="zone"),
        # 2 x ln 5 = 3.22, 1 x ln 5 = 1.61
        pytest.param(soft(HOSTNAME).obj(), ([3, 2, 2], [66, 100, 100]), id="hostname"),
        pytest.param(soft(ZONE, HOSTNAME).obj(), ([7, 6, 3], [42, 57, 100]), id="both"),
        pytest.param(soft(ZONE, max_skew=4).obj(), ([7, 7, 4], [57, 57, 100]), id="max-skew"),
        pytest.param(
            soft("rack").obj(), ([0, 0, 0], [0, 0, 0]), id="nodes-without-the-key-are-ignored"
        ),
        pytest.param(
            soft(ZONE).namespace("empty").obj(), ([0, 0, 0], [100] * 3), id="no-pods-at-all"
        ),
    ],
)
def test_score(pod: Pod, expected: Any) -> None:
    assert scored(pod, three_hosts()) == expected


def test_policies_do_not_apply_to_a_host_itself() -> None:
    pod = soft(HOSTNAME).node_selector({"disk": "ssd"}).obj()
    assert scored(pod, three_hosts())[0] == [3, 2, 2]
    zone = soft(ZONE).node_selector({"disk": "ssd"}).obj()
    assert scored(zone, three_hosts())[0] == [0, 0, 0]


def test_only_feasible_nodes_have_domains_but_all_nodes_count() -> None:
    handle = three_hosts()
    plugin = PodTopologySpread(NO_DEFAULTS, handle)
    pod, state = soft(ZONE).obj(), CycleState()
    feasible = by_name(handle).subset(np.array([1], dtype=np.intp))
    assert plugin.pre_score(state, pod, feasible).is_success
    # One zone is left: 3 x ln 3 = 3.30; n0's pods are in it.
    assert score_both(plugin, pod, feasible, state) == [3]


# -- AddPod, RemovePod -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "other, expected",
    [
        pytest.param(web("other"), [UNEVEN, SUCCESS], id="matching"),
        pytest.param(web("other").terminating(), [UNEVEN, SUCCESS], id="terminating-counts-here"),
        pytest.param(make_pod("other"), [SUCCESS, SUCCESS], id="not-matching"),
        pytest.param(web("other").namespace("b"), [SUCCESS, SUCCESS], id="other-namespace"),
    ],
)
def test_add_and_remove_pod(other: PodBuilder, expected: list[Status]) -> None:
    handle = FakeHandle(zoned("a", "b"))
    plugin, pod, state = PodTopologySpread(NO_DEFAULTS, handle), spread().obj(), CycleState()
    plugin.pre_filter(state, pod, handle.nodes)
    twin = state.clone()
    extensions = plugin.pre_filter_extensions()
    extensions.add_pod(twin, pod, other.obj(), handle.nodes[0])
    assert filter_both(plugin, pod, handle.nodes, twin) == expected
    assert filter_both(plugin, pod, handle.nodes, state) == [SUCCESS, SUCCESS]
    extensions.remove_pod(twin, pod, other.obj(), handle.nodes[0])
    assert filter_both(plugin, pod, handle.nodes, twin) == [SUCCESS, SUCCESS]


def test_add_pod_ignores_nodes_that_take_no_part() -> None:
    handle = FakeHandle([*zoned("a", "b"), make_node("bare").obj()])
    plugin, state = PodTopologySpread(NO_DEFAULTS, handle), CycleState()
    pod = spread().node_selector({"disk": "ssd"}).obj()
    plugin.pre_filter(state, pod, handle.nodes)
    for info in handle.nodes:
        plugin.pre_filter_extensions().add_pod(state, pod, web("other").obj(), info)
    assert filter_both(plugin, pod, handle.nodes, state) == [SUCCESS, SUCCESS, NO_LABEL]


# -- what goes wrong -------------------------------------------------------------------------------

BAD = {"matchExpressions": [{"key": "app", "operator": "Near"}]}


def test_a_selector_that_does_not_parse_is_an_error() -> None:
    handle = FakeHandle(zoned("a"))
    problem = '"Near" is not a valid label selector operator'
    status = filtered(spread(labelSelector=BAD).obj(), handle)
    assert isinstance(status, Status)
    assert status.code is Code.ERROR
    assert status.message == (
        f"get constraints from pod: obtaining pod's hard topology spread constraints: {problem}"
    )
    status = scored(soft(ZONE, labelSelector=BAD).obj(), handle)
    assert status.code is Code.ERROR
    assert status.message == (
        "calculating preScoreState: obtaining pod's soft topology spread constraints: " + problem
    )


def test_without_the_earlier_point_there_is_no_state() -> None:
    handle = FakeHandle(zoned("a"))
    plugin = PodTopologySpread(NO_DEFAULTS, handle)
    text = 'reading "PreFilterPodTopologySpread" from cycleState: not found'
    with pytest.raises(LookupError, match=text):
        plugin.filter(CycleState(), spread().obj(), handle.nodes[0])
    text = 'error reading "PreScorePodTopologySpread" from cycleState: not found'
    with pytest.raises(LookupError, match=text):
        plugin.score_nodes(CycleState(), spread().obj(), handle.nodes)


# -- queueing hints --------------------------------------------------------------------------------

POD_ADD = ClusterEvent(Resource.ASSIGNED_POD, ActionType.ADD)
POD_DELETE = ClusterEvent(Resource.ASSIGNED_POD, ActionType.DELETE)
POD_LABEL = ClusterEvent(Resource.ASSIGNED_POD, ActionType.UPDATE_POD_LABEL)
OWN_LABEL = ClusterEvent(Resource.UNSCHEDULABLE_POD, ActionType.UPDATE_POD_LABEL)
OWN_TOLERATION = ClusterEvent(Resource.UNSCHEDULABLE_POD, ActionType.UPDATE_POD_TOLERATION)
NODE_LABEL = ClusterEvent(Resource.NODE, ActionType.UPDATE_NODE_LABEL)
NODE_TAINT = ClusterEvent(Resource.NODE, ActionType.UPDATE_NODE_TAINT)
DB = make_pod("p").label(app="db").node("n0")


@pytest.mark.parametrize(
    "event, old, new, expected",
    [
        pytest.param(POD_ADD, None, web("p", "n0"), "Queue", id="add-matching"),
        pytest.param(POD_ADD, None, DB, "Skip", id="add-not-matching"),
        pytest.param(
            POD_ADD, None, web("p", "n0").namespace("b"), "Skip", id="add-other-namespace"
        ),
        pytest.param(POD_ADD, None, web("p"), "Skip", id="add-without-a-node"),
        pytest.param(POD_ADD, None, web("p").nominated("n0"), "Queue", id="add-nominated"),
        pytest.param(POD_DELETE, web("p", "n0"), None, "Queue", id="delete-matching"),
        pytest.param(POD_DELETE, DB, None, "Skip", id="delete-not-matching"),
        pytest.param(POD_LABEL, DB, web("p", "n0"), "Queue", id="label-starts-to-match"),
        pytest.param(POD_LABEL, web("p", "n0"), DB, "Queue", id="label-ceases-to-match"),
        pytest.param(
            POD_LABEL, web("p", "n0"), web("p", "n0").label(v="2"), "Skip", id="label-of-no-matter"
        ),
        pytest.param(OWN_LABEL, spread(), spread().label(app="db"), "Queue", id="own-label"),
        pytest.param(OWN_LABEL, spread(), spread().label(v="2"), "Skip", id="own-other-label"),
        pytest.param(
            OWN_TOLERATION, spread(), spread().toleration("gpu"), "Skip", id="taints-are-ignored"
        ),
    ],
)
def test_hint_after_pod_change(
    event: ClusterEvent, old: PodBuilder | None, new: PodBuilder | None, expected: str
) -> None:
    plugin = PodTopologySpread(NO_DEFAULTS, FakeHandle())
    before, after = (pod.obj() if pod is not None else None for pod in (old, new))
    assert hint(plugin, event, spread().obj(), before, after) == expected


def test_hint_after_own_toleration_with_honored_taints() -> None:
    plugin = PodTopologySpread(NO_DEFAULTS, FakeHandle())
    old = spread(nodeTaintsPolicy="Honor")
    new = spread(nodeTaintsPolicy="Honor").toleration("gpu")
    assert hint(plugin, OWN_TOLERATION, old.obj(), old.obj(), new.obj()) == "Queue"


BARE, A, B = make_node("n").obj(), make_node("n").zone("a").obj(), make_node("n").zone("b").obj()
TAINTED = make_node("n").zone("a").taint("gpu").obj()


@pytest.mark.parametrize(
    "event, old, new, expected",
    [
        pytest.param(NODE_ADD, None, A, "Queue", id="add-with-all-keys"),
        pytest.param(NODE_ADD, None, BARE, "Skip", id="add-without-a-key"),
        pytest.param(NODE_DELETE, A, None, "Queue", id="delete-with-all-keys"),
        pytest.param(NODE_DELETE, BARE, None, "Skip", id="delete-without-a-key"),
        pytest.param(NODE_LABEL, BARE, A, "Queue", id="gets-the-key"),
        pytest.param(NODE_LABEL, A, BARE, "Queue", id="loses-the-key"),
        pytest.param(NODE_LABEL, A, B, "Queue", id="goes-to-another-domain"),
        pytest.param(
            NODE_LABEL,
            A,
            make_node("n").zone("a").label(disk="ssd").obj(),
            "Skip",
            id="label-of-no-matter",
        ),
        pytest.param(NODE_TAINT, TAINTED, A, "Queue", id="other-taints"),
        pytest.param(
            NODE_TAINT, make_node("n").taint("gpu").obj(), BARE, "Skip", id="taints-without-a-key"
        ),
    ],
)
def test_hint_after_node_change(
    event: ClusterEvent, old: Node | None, new: Node | None, expected: str
) -> None:
    plugin = PodTopologySpread(NO_DEFAULTS, FakeHandle())
    assert hint(plugin, event, spread().obj(), old, new) == expected
