"""What lives in a sandbox besides its store: the kubelet and the controllers."""

from __future__ import annotations

from collections.abc import Callable

from scheduler_core.clock import RealClock
from scheduler_core.cluster.controllers import CONTROLLERS, ControllerManager
from scheduler_core.cluster.driver import Driver
from scheduler_core.cluster.ephemeral_claims import EphemeralClaimController
from scheduler_core.cluster.kubelet import SandboxKubelet
from scheduler_core.cluster.pod_group_status import PodGroupController
from scheduler_core.cluster.sandbox import SandboxCluster
from scheduler_core.cluster.sandbox_clock import ScaledClock
from scheduler_core.cluster.volume_controller import VolumeController

__all__ = ["start_controllers"]

#: each is made with (cluster, wake=...) and has tick, next_deadline and stop
_PARTS = (SandboxKubelet, PodGroupController, EphemeralClaimController, VolumeController)


def start_controllers(cluster: SandboxCluster) -> Callable[[], None]:
    """Start them in real time; returns what stops them."""
    driver = Driver(ScaledClock(RealClock(), 1.0, None), may_jump=lambda: False)
    parts = [
        ControllerManager(cluster, CONTROLLERS, wake=driver.wake),
        *(make(cluster, wake=driver.wake) for make in _PARTS),
    ]
    driver.start(parts)

    def stop() -> None:
        driver.stop()
        for part in parts:
            part.stop()

    return stop
