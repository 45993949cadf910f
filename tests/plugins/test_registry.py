"""The in-tree registry, and the profile that it makes up."""

from __future__ import annotations

import pytest

from scheduler_core.config import DEFAULT_PLUGINS, default_configuration
from scheduler_core.framework.interface import EXTENSION_POINTS, EnqueueExtensions, Plugin
from scheduler_core.plugins.registry import IN_TREE, in_tree_registry

#: Plugins that reject pods at points from which events bring them back.
REJECTING = ("preEnqueue", "preFilter", "filter", "reserve", "permit")
DEFAULT_ORDER = [name for name, _ in DEFAULT_PLUGINS]


def test_default_plugins_come_in_the_order_of_the_default_profile() -> None:
    ours = [cls.name for cls in IN_TREE if cls.name in DEFAULT_ORDER]
    assert ours == [name for name in DEFAULT_ORDER if name in ours]


def test_the_default_profile_has_nothing_else() -> None:
    profile = default_configuration(in_tree_registry()).profiles[0]
    assert set(profile.plugin_names()) == {c.name for c in IN_TREE if c.name in DEFAULT_ORDER}
    weights = {ref.name: ref.weight for ref in profile.plugins["score"]}
    assert weights == {
        "TaintToleration": 3,
        "NodeAffinity": 2,
        "NodeResourcesFit": 1,
        "VolumeBinding": 1,
        "PodTopologySpread": 2,
        "InterPodAffinity": 2,
        "DynamicResources": 2,
        "NodeResourcesBalancedAllocation": 1,
        "ImageLocality": 1,
    }


@pytest.mark.parametrize(
    "name, points",
    [
        ("SchedulingGates", "preEnqueue"),
        ("PrioritySort", "queueSort"),
        ("NodeUnschedulable", "filter"),
        ("NodeName", "filter"),
        ("TaintToleration", "filter preScore score"),
        ("NodeAffinity", "preFilter filter preScore score"),
        ("NodePorts", "preFilter filter"),
        ("NodeResourcesFit", "preFilter filter preScore score"),
        ("VolumeRestrictions", "preFilter filter"),
        ("NodeVolumeLimits", "preFilter filter"),
        ("VolumeBinding", "preFilter filter preScore score reserve preBind"),
        ("VolumeZone", "preFilter filter"),
        ("PodTopologySpread", "preFilter filter preScore score"),
        ("InterPodAffinity", "preFilter filter preScore score"),
        (
            "DynamicResources",
            "preEnqueue preFilter filter postFilter score reserve preBind",
        ),
        ("NodeResourcesBalancedAllocation", "preScore score"),
        ("ImageLocality", "score"),
        ("DefaultPreemption", "preEnqueue postFilter"),
        ("DefaultBinder", "bind"),
        ("NodeDeclaredFeatures", "preFilter filter"),
        ("Coscheduling", "queueSort preFilter postFilter reserve permit"),
        ("GangScheduling", "preEnqueue reserve permit"),
        ("ManualApproval", "permit"),
    ],
)
def test_extension_points(name: str, points: str) -> None:
    assert in_tree_registry()[name].extension_points == frozenset(points.split())


def test_every_plugin_is_registered_under_its_name() -> None:
    assert set(in_tree_registry()) == {cls.name for cls in IN_TREE}
    assert len(in_tree_registry()) == len(IN_TREE)


@pytest.mark.parametrize("cls", IN_TREE, ids=lambda cls: cls.name)
def test_whoever_rejects_says_what_may_help(cls: type[Plugin]) -> None:
    if any(issubclass(cls, EXTENSION_POINTS[point]) for point in REJECTING):
        assert issubclass(cls, EnqueueExtensions)
