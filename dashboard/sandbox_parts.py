"""What lives in a sandbox besides its store: the kubelet and the controllers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scheduler_core.clock import RealClock
from scheduler_core.cluster.controllers import CONTROLLERS, ControllerManager
from scheduler_core.cluster.driver import Driver
from scheduler_core.cluster.ephemeral_claims import EphemeralClaimController
from scheduler_core.cluster.kubelet import SandboxKubelet
from scheduler_core.cluster.pod_group_status import PodGroupController
from scheduler_core.cluster.sandbox import SandboxCluster
from scheduler_core.cluster.sandbox_clock import ScaledClock
from scheduler_core.cluster.volume_controller import VolumeController

__all__ = ["make_controllers", "start_controllers"]


def make_controllers(cluster: SandboxCluster, wake: Callable[[], None]) -> list[Any]:
    """All of them; each has tick, next_deadline and stop, and calls ``wake`` when there is work."""
    return [
        SandboxKubelet(cluster, wake=wake),
        PodGroupController(cluster, wake=wake),
        EphemeralClaimController(cluster, wake=wake),
        VolumeController(cluster, wake=wake),
        ControllerManager(cluster, CONTROLLERS, wake=wake),
    ]


def start_controllers(cluster: SandboxCluster) -> Callable[[], None]:
    """Start them in real time; returns what stops them."""
    driver = Driver(ScaledClock(RealClock(), 1.0, None), may_jump=lambda: False)
    parts = make_controllers(cluster, driver.wake)
    driver.start(parts)

    def stop() -> None:
        driver.stop()
        for part in parts:
            part.stop()

    return stop
