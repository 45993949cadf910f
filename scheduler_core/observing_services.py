"""What plugins get of a scheduler that only observes: everything to look at, and nothing to do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, TypeVar

from scheduler_core.api import Pod
from scheduler_core.backend.informers import Informers
from scheduler_core.backend.snapshot import Snapshot
from scheduler_core.framework.interface import PreemptionExtender
from scheduler_core.framework.runtime.framework import Services
from scheduler_core.framework.runtime.waiting_pods import WaitingPodsMap
from scheduler_core.ports import Clock
from scheduler_core.read_only import ReadOnlyCluster

__all__ = ["services_that_write_nothing"]

R = TypeVar("R")


def services_that_write_nothing(
    snapshot: Snapshot,
    informers: Informers,
    cluster: ReadOnlyCluster,
    clock: Clock,
    preemption_extenders: Sequence[PreemptionExtender],
) -> Services:
    """No binding, no eviction, no event; evictions and other writes stay thoughts."""
    return Services(
        snapshot=snapshot,
        informers=informers,
        waiting_pods=WaitingPodsMap(),
        cluster=cluster,
        clock=clock,
        activate=_activate_nobody,
        emit_event=_tell_nobody,
        background=_leave_undone,
        preemption_extenders=preemption_extenders,
        random=Random(0),  # noqa: S311 - not for secrets
    )


def _leave_undone(key: str, work: Callable[[], R], then: Callable[[R], None]) -> None:
    """Nothing is carried out."""


def _activate_nobody(pods: Mapping[str, Pod]) -> None:
    """There is no queue."""


def _tell_nobody(*args: Any, **kwargs: Any) -> None:
    """There is nobody to read events."""
