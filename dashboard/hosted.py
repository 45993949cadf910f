"""The sandboxes that this process owns.

A run on a sandbox is placed in the process that owns it and finds the cluster here; all other
processes go through the owner's unix socket (``sandbox_client``).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

from scheduler_core.cluster.remote import RemoteSandbox
from scheduler_core.cluster.sandbox import SandboxCluster


@dataclass(slots=True)
class HostedSandbox:
    """A sandbox and, while a scheduler runs on it, whether that one has anything to do."""

    cluster: SandboxCluster
    is_busy: Callable[[], bool] | None = None

    def is_quiet(self) -> bool:
        """A scheduler is at work and has nothing left to do: time may jump ahead."""
        return self.is_busy is not None and not self.is_busy()


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


def socket_path(cluster_id: int) -> Path:
    """Where the owner of a sandbox listens. Short, as unix sockets must be."""
    return Path(settings.KUBESCHED_RUNTIME_DIR) / f"sandbox-{cluster_id}.sock"


def sandbox_client(cluster_id: int) -> RemoteSandbox:
    """The sandbox from any process of this machine; calls fail with 503 while nobody owns it."""
    return RemoteSandbox(socket_path(cluster_id))
