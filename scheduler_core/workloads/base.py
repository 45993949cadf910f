"""What a workload is, and how one is run in a sandbox."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from scheduler_core.cluster.sandbox import SandboxCluster
from scheduler_core.ports import AlreadyExists, ApiError, Cluster, Json, NotFound

__all__ = [
    "Workload",
    "WorkloadCluster",
    "WorkloadRunner",
    "create_if_absent",
    "create_set",
    "delete_if_present",
]

_RETRY_SECONDS = 1.0


class WorkloadCluster(Cluster, Protocol):
    """A cluster on which several objects can be created at once."""

    def create_all(self, objects: Sequence[Json]) -> Sequence[Json]:
        """Create objects of any kinds, all or none."""


class Workload(Protocol):
    """A source of timed API requests: the same seed and the same times give the same requests.

    Times are times of day of the sandbox's clock. What it does can be done twice without harm
    (names follow from the state), so that after a crash it goes on from an older state.
    """

    #: what it is called on pages, and in the name of its actor
    name: str

    def next_deadline(self) -> float | None:
        """When it has something to do; None: never again. 0: at once, to begin or to go on."""

    def run_due(self, now: float, cluster: WorkloadCluster) -> None:
        """Do all that is due.

        Raises:
            ApiError: the cluster failed; load the state from before and try again.
        """

    def state(self) -> Json:
        """Where it is, as JSON."""

    def load(self, state: Json) -> None:
        """Go on from there. Time that has passed since is not made up for.

        Raises:
            ValueError: that is no state of this workload.
        """


class WorkloadRunner:
    """Runs a workload's due requests as one batch; a part of the sandbox for the `Driver`."""

    def __init__(
        self,
        workload: Workload,
        cluster: SandboxCluster,
        saved: Callable[[Json], None] = lambda state: None,
    ) -> None:
        """`saved` is given the state after each batch that was kept."""
        self.workload = workload
        self._cluster = cluster
        self._saved = saved
        self._not_before = float("-inf")

    def next_deadline(self) -> float | None:
        deadline = self.workload.next_deadline()
        return None if deadline is None else max(deadline, self._not_before)

    def tick(self, now: float) -> None:
        """Run what is due. Where the sandbox cannot keep it, the same is tried again later."""
        before = self.workload.state()
        try:
            with self._cluster.batch(f"workload:{self.workload.name}") as view:
                self.workload.run_due(now, view)
        except ApiError as error:
            if error.code != 503:
                raise
            self.workload.load(before)
            self._not_before = now + _RETRY_SECONDS
            return
        self._saved(self.workload.state())


def create_set(cluster: WorkloadCluster, objects: Sequence[Json]) -> None:
    """Create objects together; where some are there already (from before a crash), the others."""
    try:
        cluster.create_all(objects)
    except AlreadyExists:
        for obj in objects:
            create_if_absent(cluster, obj)


def create_if_absent(cluster: Cluster, obj: Json) -> None:
    """Create an object, unless there is one of that name (from before a crash)."""
    try:
        cluster.create(str(obj["kind"]), obj)
    except AlreadyExists:
        return


def delete_if_present(
    cluster: Cluster, kind: str, namespace: str, name: str, grace: int | None = None
) -> None:
    """Delete an object, if it is there still."""
    try:
        cluster.delete(kind, namespace, name, grace_period_seconds=grace)
    except NotFound:
        return
