"""What the port leaves open and a sandbox does: a repeated event tells its latest note."""

from __future__ import annotations

from scheduler_core.clock import VirtualClock
from scheduler_core.cluster.sandbox import SandboxCluster
from tests.contract.support import pod


def test_the_latest_note_is_the_one_that_holds() -> None:
    with SandboxCluster(VirtualClock(1_800_000_000.0)) as cluster:
        cluster.create("Pod", pod())
        for nodes in (3, 4):
            cluster.emit_event(
                cluster.get("Pod", "default", "web"),
                type="Warning",
                reason="FailedScheduling",
                action="Scheduling",
                note=f"0/{nodes} nodes are available",
                reporting_controller="default-scheduler",
            )
        (event,) = cluster.list("Event").items
    assert (event["note"], event["series"]["count"]) == ("0/4 nodes are available", 2)
