"""The plugins that come with the scheduler.

The default plugins of kube-scheduler 1.36, in the order of its default profile, and three that a
configuration has to name (in the reference GangScheduling is behind a gate that is off).
DynamicResources turns pods with resource claims down.
"""

from __future__ import annotations

from typing import Final

from scheduler_core.framework.interface import Plugin
from scheduler_core.framework.runtime.registry import Registry
from scheduler_core.plugins.coscheduling import Coscheduling
from scheduler_core.plugins.default_binder import DefaultBinder
from scheduler_core.plugins.default_preemption import DefaultPreemption
from scheduler_core.plugins.dynamic_resources import DynamicResources
from scheduler_core.plugins.gang_scheduling import GangScheduling
from scheduler_core.plugins.image_locality import ImageLocality
from scheduler_core.plugins.inter_pod_affinity import InterPodAffinity
from scheduler_core.plugins.manual_approval import ManualApproval
from scheduler_core.plugins.node_affinity import NodeAffinity
from scheduler_core.plugins.node_declared_features import NodeDeclaredFeatures
from scheduler_core.plugins.node_name import NodeName
from scheduler_core.plugins.node_ports import NodePorts
from scheduler_core.plugins.node_unschedulable import NodeUnschedulable
from scheduler_core.plugins.node_volume_limits import NodeVolumeLimits
from scheduler_core.plugins.noderesources.balanced_allocation import (
    NodeResourcesBalancedAllocation,
)
from scheduler_core.plugins.noderesources.fit import NodeResourcesFit
from scheduler_core.plugins.pod_topology_spread import PodTopologySpread
from scheduler_core.plugins.priority_sort import PrioritySort
from scheduler_core.plugins.scheduling_gates import SchedulingGates
from scheduler_core.plugins.taint_toleration import TaintToleration
from scheduler_core.plugins.volume_binding import VolumeBinding
from scheduler_core.plugins.volume_restrictions import VolumeRestrictions
from scheduler_core.plugins.volume_zone import VolumeZone

__all__ = ["IN_TREE", "in_tree_registry"]

IN_TREE: Final[tuple[type[Plugin], ...]] = (
    SchedulingGates,
    PrioritySort,
    NodeUnschedulable,
    NodeName,
    TaintToleration,
    NodeAffinity,
    NodePorts,
    NodeResourcesFit,
    VolumeRestrictions,
    NodeVolumeLimits,
    VolumeBinding,
    VolumeZone,
    PodTopologySpread,
    InterPodAffinity,
    DynamicResources,
    DefaultPreemption,
    NodeResourcesBalancedAllocation,
    ImageLocality,
    DefaultBinder,
    NodeDeclaredFeatures,
    Coscheduling,
    GangScheduling,
    ManualApproval,
)


def in_tree_registry() -> Registry:
    """A new registry of all in-tree plugins; callers may add their own."""
    return Registry(*IN_TREE)
