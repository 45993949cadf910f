"""Clusters that runs are carried on, and the sandboxes that this process owns.

A run on a sandbox finds the cluster here where it is in the owner's process; all other processes
go through the owner's unix socket (``beside``, ``sandbox_client``).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

from django.conf import settings

from dashboard.models import Cluster, Sandbox
from scheduler_core.cluster.pipeline import SchedulersSandbox
from scheduler_core.cluster.remote import RemoteSandbox
from scheduler_core.config import SchedulerConfiguration
from scheduler_core.executor import DEFAULT_THREADS
from scheduler_core.ports import ApiError


class Host(Protocol):
    """A cluster in the process that carries a run on it.

    Attributes:
        cluster: with `as_actor` and what `Cluster` has.
        is_busy: while a scheduler runs on it, whether that one has anything to do.
        threads: bindings under way at once.
    """

    cluster: Any
    is_busy: Callable[[], bool] | None

    @property
    def threads(self) -> int: ...

    def open(self) -> None:
        """A run begins.

        Raises:
            Unreachable: the cluster cannot be used now.
        """

    def prepare(self, config: SchedulerConfiguration) -> None:
        """A scheduler of this configuration is about to be started."""

    def lead(
        self,
        config: SchedulerConfiguration,
        ended: Callable[[], bool],
        tell: Callable[[str], None],
    ) -> bool:
        """Wait until this process may write; False where ``ended`` before."""

    def is_gone(self, cluster_id: int) -> bool:
        """Nothing can be done with it any more."""

    def trouble(self) -> str:
        """What people should know of it, while it works; or ""."""

    def farewell(self) -> str:
        """Why a run on it ended, if it is the cluster's doing; or ""."""

    def hurry(self) -> None:
        """The run is about to end: what fails now is not tried again."""

    def close(self) -> None:
        """The run is over."""


@dataclass(slots=True)
class HostedSandbox:
    """A sandbox and, while a scheduler runs on it, whether that one has anything to do."""

    cluster: Any
    is_busy: Callable[[], bool] | None = None
    threads: ClassVar[int] = DEFAULT_THREADS

    def open(self) -> None:
        """It lives without runs, too."""

    def prepare(self, config: SchedulerConfiguration) -> None:
        """Its owner is in this process: there are no requests to limit."""

    def lead(
        self,
        config: SchedulerConfiguration,
        ended: Callable[[], bool],
        tell: Callable[[str], None],
    ) -> bool:
        """The lease of the sandbox is in the database."""
        return True

    def is_gone(self, cluster_id: int) -> bool:
        """Its owner has closed it, or made another one of it: this one is deaf."""
        return find(cluster_id) is not self

    def trouble(self) -> str:
        return ""

    def farewell(self) -> str:
        return ""

    def hurry(self) -> None:
        """Nothing in it is slow."""

    def close(self) -> None:
        """It lives on without a run."""

    def is_quiet(self) -> bool:
        """A scheduler is at work and has nothing left to do: time may jump ahead."""
        return self.is_busy is not None and not self.is_busy()


@dataclass(slots=True)
class SandboxBeside(HostedSandbox):
    """A sandbox of another process of this machine.

    One connection has all the run's writes; when it breaks the run ends, as it does where it shares
    the process of a sandbox that ends, and is carried on once the sandbox is back.
    """

    path: Path = Path()

    def open(self) -> None:
        self.cluster = SchedulersSandbox(self.path, actor="scheduler")

    def is_gone(self, cluster_id: int) -> bool:
        return bool(self.cluster.gone.is_set())

    def close(self) -> None:
        self.cluster.close()


_lock = threading.Lock()
_hosted: dict[int, HostedSandbox] = {}


def publish(cluster_id: int, sandbox: HostedSandbox) -> None:
    """This process owns the sandbox from now on."""
    with _lock:
        _hosted[cluster_id] = sandbox


def withdraw(cluster_id: int) -> None:
    """This process owns the sandbox no more. May be called twice."""
    with _lock:
        _hosted.pop(cluster_id, None)


def find(cluster_id: int) -> HostedSandbox | None:
    """The sandbox, if this process owns it."""
    with _lock:
        return _hosted.get(cluster_id)


def may_be_beside(cluster: Cluster) -> bool:
    """Whether a run on it need not be in the owner's process. Time that jumps ahead whenever
    the scheduler has nothing to do must know of that at once."""
    return cluster.sandbox.clock_mode != Sandbox.ClockMode.MAX


def beside(cluster: Cluster) -> Host | None:
    """The sandbox, if another process of this machine serves it and the run may be in this one."""
    if not may_be_beside(cluster) or not _answers(cluster.pk):
        return None
    return SandboxBeside(None, path=socket_path(cluster.pk))


def _answers(cluster_id: int) -> bool:
    """Whether anybody serves the sandbox; its socket outlives a process that was killed."""
    with closing(sandbox_client(cluster_id)) as client:
        try:
            client.get("Namespace", "", "default")
        except ApiError:
            return False
    return True


def socket_path(cluster_id: int) -> Path:
    """Where the owner of a sandbox listens. Short, as unix sockets must be."""
    return Path(settings.KUBESCHED_RUNTIME_DIR) / f"sandbox-{cluster_id}.sock"


def sandbox_client(cluster_id: int) -> RemoteSandbox:
    """The sandbox from any process of this machine; calls fail with 503 while nobody owns it."""
    return RemoteSandbox(socket_path(cluster_id))
