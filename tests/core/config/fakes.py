"""Plugins that do nothing but have the extension points of the real ones, so that what is tested
is the configuration, whatever plugins exist."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scheduler_core.framework.interface import (
    BindPlugin,
    FilterPlugin,
    PermitPlugin,
    Plugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreScorePlugin,
    QueueSortPlugin,
    ScorePlugin,
)
from scheduler_core.framework.runtime.registry import Registry
from scheduler_core.framework.status import SUCCESS


class _PreEnqueue(PreEnqueuePlugin):
    def pre_enqueue(self, pod):
        return SUCCESS


class _QueueSort(QueueSortPlugin):
    def less(self, a, b):
        return a.timestamp < b.timestamp


class _PreFilter(PreFilterPlugin):
    def pre_filter(self, state, pod, nodes):
        return None, SUCCESS


class _Filter(FilterPlugin):
    def filter(self, state, pod, node_info):
        return SUCCESS


class _PreScore(PreScorePlugin):
    def pre_score(self, state, pod, nodes):
        return SUCCESS


class _Score(ScorePlugin):
    def score(self, state, pod, node_info):
        return 0


class _Permit(PermitPlugin):
    def permit(self, state, pod, node_name):
        return SUCCESS, 0.0


class _Bind(BindPlugin):
    def bind(self, state, pod, node_name):
        return SUCCESS


_POINTS = {
    "SchedulingGates": (_PreEnqueue,),
    "PrioritySort": (_QueueSort,),
    "NodeUnschedulable": (_Filter,),
    "NodeName": (_Filter,),
    "TaintToleration": (_Filter, _PreScore, _Score),
    "NodeAffinity": (_PreFilter, _Filter, _PreScore, _Score),
    "NodePorts": (_PreFilter, _Filter),
    "NodeResourcesFit": (_PreFilter, _Filter, _PreScore, _Score),
    "NodeResourcesBalancedAllocation": (_PreScore, _Score),
    "ImageLocality": (_Score,),
    "DefaultBinder": (_Bind,),
    "Coscheduling": (_QueueSort, _PreFilter, _Permit),
    "ManualApproval": (_Permit,),
}


def fake_registry(*without: str) -> Registry:
    """A registry of fakes: the plugins of the first release, less ``without``."""
    classes: Mapping[str, type[Plugin]] = {
        name: type(name, bases, {"name": name}) for name, bases in _POINTS.items()
    }
    return Registry(*(cls for name, cls in classes.items() if name not in without))


class Blink(_Score):
    """A third party's plugin, named by its dotted path."""

    name = "Blink"

    def __init__(self, args: Mapping[str, Any], handle: object) -> None:
        self.args = args


class Installed(_Filter):
    """A third party's plugin, named by its entry point."""

    name = "Installed"


class Nameless(_Filter):
    """A plugin whose author forgot the name."""


class Pointless(Plugin):
    name = "Pointless"


class PretendsToBeNodeName(_Filter):
    name = "NodeName"


NOT_A_PLUGIN = object()
