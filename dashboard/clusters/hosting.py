"""A real cluster in the process that carries a run on it."""

from __future__ import annotations

import logging
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from dashboard.clusters import services
from dashboard.clusters.credentials import access_of
from dashboard.clusters.models import ClusterConnection
from scheduler_core.config import SchedulerConfiguration
from scheduler_core.kube.access import AccessError
from scheduler_core.ports import ApiError

if TYPE_CHECKING:
    from scheduler_core.kube.cluster import KubeCluster
    from scheduler_core.kube.election import LeaderElector

logger = logging.getLogger(__name__)

#: Bindings under way at once: as many as there are connections.
_THREADS: Final = 48
_LOOK_SECONDS: Final = 0.1
#: A watch that is interrupted for less is nothing to be told.
_LASTING_SECONDS: Final = 5.0
#: Refusals that no patience mends.
_FINAL: Final = (401, 403)


class Unreachable(Exception):
    """The cluster cannot be used now; a person reads why.

    Attributes:
        final: it does not help to try again.
    """

    def __init__(self, message: str, *, final: bool) -> None:
        super().__init__(message)
        self.final = final


class HostedKube:
    """A `Host` (``dashboard.hosted``): a connection, and the election for the right to write."""

    threads = _THREADS

    cluster: KubeCluster

    def __init__(self, cluster_id: int) -> None:
        self.is_busy: Callable[[], bool] | None = None
        self._id = cluster_id
        self._opened = self._lost = False
        self._elector: LeaderElector | None = None
        self._trouble = ""
        self._looked_at = self._well_at = time.monotonic()

    def open(self) -> None:
        self.cluster = _open(self._id)
        self._opened = True

    def prepare(self, config: SchedulerConfiguration) -> None:
        """The rate limit of a configuration that is about to be used."""
        connection = config.client_connection
        self.cluster.limit(connection.qps, connection.burst)

    def lead(
        self,
        config: SchedulerConfiguration,
        ended: Callable[[], bool],
        tell: Callable[[str], None],
    ) -> bool:
        """Wait for the lease of ``leaderElection``, if there is one to be held; False where the
        run ended before. ``tell``: whom it is waited for."""
        from scheduler_core.kube.election import LeaseSettings

        wanted = config.leader_election
        if not wanted.leader_elect:
            return True
        settings = LeaseSettings(
            wanted.resource_name,
            wanted.resource_namespace,
            wanted.lease_duration,
            wanted.renew_deadline,
            wanted.retry_period,
        )
        self._elector = elector = self.cluster.elect(settings, identity())
        elector.start()
        waiting = threading.Event()
        while not elector.leads:
            if ended():
                return False
            tell(_waits_for(elector))
            waiting.wait(_LOOK_SECONDS)
        return True

    def is_gone(self, cluster_id: int) -> bool:
        """The lease is another's, or nobody knows: nothing may be written any more."""
        self._lost = self._elector is not None and not self._elector.leads
        return self._lost

    def trouble(self) -> str:
        """What has kept watches from hearing for some seconds; "" where all do. Asked often."""
        now = time.monotonic()
        if now - self._looked_at < _LOOK_SECONDS:
            return self._trouble
        self._looked_at = now
        found = self.cluster.troubles
        if not found:
            self._well_at, self._trouble = now, ""
        elif now - self._well_at > _LASTING_SECONDS:
            kind = min(found)
            more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
            self._trouble = f"The watch of {kind}{more} is interrupted: {found[kind]}"
        return self._trouble

    def farewell(self) -> str:
        """Why the run ended, where it is for the lease's sake."""
        return "The lease was lost; it is a candidate again." if self._lost else ""

    def hurry(self) -> None:
        self.cluster.hurry()

    def close(self) -> None:
        """Give the lease back, and end. Bindings must be over."""
        if self._elector is not None:
            self._elector.stop()
        if self._opened:
            self.cluster.close()


def identity() -> str:
    """Of this candidate, unlike any other's."""
    return f"{socket.gethostname()}_{os.getpid()}_{secrets.token_hex(4)}"


def _open(cluster_id: int) -> KubeCluster:
    from scheduler_core.kube.cluster import LIVE_PODS, KubeCluster
    from scheduler_core.kube.connect import connect

    row = ClusterConnection.objects.filter(pk=cluster_id).first()
    if row is None:
        raise Unreachable("Nobody has said how this cluster is reached.", final=True)
    try:
        connection = connect(access_of(row))
    except AccessError as error:
        raise Unreachable(f"The cluster cannot be used: {error}", final=True) from None
    cluster = KubeCluster(connection, fields=LIVE_PODS)
    try:
        services.probe(cluster)
    except ApiError as error:
        cluster.close()
        text = services.words(connection.server, error)
        raise Unreachable(text, final=error.code in _FINAL) from None
    return cluster


def _waits_for(elector: LeaderElector) -> str:
    name = f"{elector.settings.namespace}/{elector.settings.name}"
    if elector.trouble:
        return f"The lease {name} cannot be used: {elector.trouble}"
    if not elector.holder:
        return f"Waits for the lease {name}."
    return f"Waits for the lease {name}, which {elector.holder} holds."
