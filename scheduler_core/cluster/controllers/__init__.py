"""The few controllers of kube-controller-manager that a sandbox needs to be lifelike.

`manager.ControllerManager` runs them: it listens, keeps one index for all, and asks each
controller to bring what its keys name closer to what is wanted. Each controller is level-triggered:
it looks at what is, never at what happened, so a restart needs no memory.
"""

from __future__ import annotations

from typing import Final

from .deployment import DeploymentController
from .disruption import DisruptionController
from .garbage import GarbageCollector
from .job import JobController
from .manager import Controller, ControllerManager
from .node_taints import NodeTaintController, TaintEvictionController
from .replica_set import ReplicaSetController

__all__ = ["CONTROLLERS", "Controller", "ControllerManager"]

#: what a sandbox runs, in the order in which they act
CONTROLLERS: Final = (
    DeploymentController,
    ReplicaSetController,
    JobController,
    DisruptionController,
    NodeTaintController,
    TaintEvictionController,
    GarbageCollector,
)
