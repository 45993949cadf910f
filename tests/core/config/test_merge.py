"""Merging a profile with the defaults, and expanding multiPoint."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler_core.config import configuration_from
from scheduler_core.framework.interface import EXTENSION_POINTS

from .conftest import HEAD
from .fakes import fake_registry


def names(*given):
    return [{"name": name} for name in given]


def expanded(load, plugins, point):
    return [ref.name for ref in load(profiles=[{"plugins": plugins}]).profiles[0].plugins[point]]


FILTERS = [
    "NodeUnschedulable",
    "NodeName",
    "TaintToleration",
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesFit",
]


@pytest.mark.parametrize(
    ("plugins", "point", "expected"),
    [
        pytest.param({}, "filter", FILTERS, id="defaults alone"),
        pytest.param(
            {"filter": {"enabled": names("NodePorts")}},
            "filter",
            ["NodePorts", *(f for f in FILTERS if f != "NodePorts")],
            id="a default enabled at a point moves to its front",
        ),
        pytest.param(
            {"filter": {"enabled": names("NodePorts", "NodeName")}},
            "filter",
            ["NodePorts", "NodeName", *(f for f in FILTERS if f not in ("NodePorts", "NodeName"))],
            id="several keep the order of the profile",
        ),
        pytest.param(
            {"filter": {"disabled": names("TaintToleration")}},
            "filter",
            [f for f in FILTERS if f != "TaintToleration"],
            id="disabled at one point",
        ),
        pytest.param(
            {"filter": {"disabled": names("TaintToleration")}},
            "score",
            [
                "TaintToleration",
                "NodeAffinity",
                "NodeResourcesFit",
                "NodeResourcesBalancedAllocation",
                "ImageLocality",
            ],
            id="disabled at one point stays at the others",
        ),
        pytest.param(
            {"filter": {"disabled": names("*")}}, "filter", [], id="* leaves nothing at the point"
        ),
        pytest.param(
            {"filter": {"disabled": names("*"), "enabled": names("NodePorts", "NodeName")}},
            "filter",
            ["NodePorts", "NodeName"],
            id="* and enabled: only what is enabled, in that order",
        ),
        pytest.param(
            {"filter": {"disabled": names("NodeName"), "enabled": names("NodeName")}},
            "filter",
            [*(f for f in FILTERS if f != "NodeName"), "NodeName"],
            id="disabled and enabled in one set is enabled, behind the others",
        ),
        pytest.param(
            {"multiPoint": {"disabled": names("TaintToleration")}},
            "filter",
            [f for f in FILTERS if f != "TaintToleration"],
            id="multiPoint.disabled takes it from filter",
        ),
        pytest.param(
            {"multiPoint": {"disabled": names("TaintToleration")}},
            "preScore",
            ["NodeAffinity", "NodeResourcesFit", "NodeResourcesBalancedAllocation"],
            id="multiPoint.disabled takes it from preScore",
        ),
        pytest.param(
            {
                "multiPoint": {"disabled": names("TaintToleration")},
                "score": {"enabled": names("TaintToleration")},
            },
            "score",
            [
                "NodeAffinity",
                "NodeResourcesFit",
                "NodeResourcesBalancedAllocation",
                "ImageLocality",
                "TaintToleration",
            ],
            id="taken from multiPoint it can come back at one point, behind the others",
        ),
        pytest.param(
            {"multiPoint": {"enabled": names("NodeName", "ManualApproval")}},
            "filter",
            FILTERS,
            id="a default enabled in multiPoint again keeps its place",
        ),
        pytest.param(
            {"multiPoint": {"enabled": names("ManualApproval")}},
            "permit",
            ["ManualApproval"],
            id="another plugin in multiPoint reaches its points",
        ),
        pytest.param(
            {
                "multiPoint": {
                    "disabled": names("*"),
                    "enabled": names("NodeName", "PrioritySort", "DefaultBinder"),
                }
            },
            "filter",
            ["NodeName"],
            id="multiPoint * drops every default",
        ),
        pytest.param(
            {
                "queueSort": {"disabled": names("*"), "enabled": names("Coscheduling")},
                "multiPoint": {"enabled": names("Coscheduling")},
            },
            "queueSort",
            ["Coscheduling"],
            id="another queueSort replaces PrioritySort",
        ),
        pytest.param(
            {
                "queueSort": {"disabled": names("PrioritySort")},
                "multiPoint": {"enabled": names("Coscheduling")},
            },
            "queueSort",
            ["Coscheduling"],
            id="also with PrioritySort disabled by name",
        ),
        pytest.param(
            {
                "multiPoint": {
                    "disabled": names(
                        "DynamicResources", "PodTopologySpread", "InterPodAffinity", "NoSuchThing"
                    )
                }
            },
            "filter",
            FILTERS,
            id="plugins that do not exist may be disabled",
        ),
    ],
)
def test_plugins_of_a_point(load, plugins, point, expected):
    assert expanded(load, plugins, point) == expected


@pytest.mark.parametrize(
    ("plugins", "plugin", "weight"),
    [
        pytest.param({}, "TaintToleration", 3, id="default"),
        pytest.param(
            {"multiPoint": {"enabled": [{"name": "TaintToleration", "weight": 5}]}},
            "TaintToleration",
            5,
            id="multiPoint",
        ),
        pytest.param(
            {
                "multiPoint": {"enabled": [{"name": "TaintToleration", "weight": 5}]},
                "score": {"enabled": [{"name": "TaintToleration", "weight": 7}]},
            },
            "TaintToleration",
            7,
            id="score beats multiPoint",
        ),
        pytest.param(
            {"score": {"enabled": names("TaintToleration")}},
            "TaintToleration",
            1,
            id="enabled again without a weight it drops from 3 to 1",
        ),
        pytest.param(
            {"multiPoint": {"enabled": names("NodeAffinity")}},
            "NodeAffinity",
            1,
            id="also in multiPoint",
        ),
        pytest.param(
            {"score": {"enabled": [{"name": "NodeAffinity", "weight": 0}]}},
            "NodeAffinity",
            1,
            id="0 is 1",
        ),
    ],
)
def test_weights(load, plugins, plugin, weight):
    profile = load(profiles=[{"plugins": plugins}]).profiles[0]
    assert dict(profile.plugins["score"])[plugin] == weight


def test_only_score_has_weights(load):
    profile = load().profiles[0]
    assert {
        r.weight for point, refs in profile.plugins.items() if point != "score" for r in refs
    } == {0}


_PLUGINS = st.sampled_from([*sorted(fake_registry()), "DynamicResources"])


@given(
    disabled=st.lists(_PLUGINS, unique=True),
    point=st.sampled_from(["filter", "score", "preFilter", "preScore"]),
    point_disabled=st.lists(_PLUGINS, unique=True),
)
def test_disabling_only_ever_takes_away(disabled, point, point_disabled):
    registry = fake_registry()
    kept = [n for n in disabled if n not in ("PrioritySort", "DefaultBinder")]
    plugins = {
        "multiPoint": {"disabled": names(*kept)},
        point: {"disabled": names(*point_disabled)},
    }
    default = configuration_from(HEAD, registry).profiles[0].plugins
    found = configuration_from({**HEAD, "profiles": [{"plugins": plugins}]}, registry)
    for name in EXTENSION_POINTS:
        gone = set(kept) | (set(point_disabled) if name == point else set())
        expected = tuple(ref for ref in default[name] if ref.name not in gone)
        assert found.profiles[0].plugins[name] == expected
