"""Leases: at most one process owns a sandbox or carries a run.

A lease is taken, renewed and given back by one conditional UPDATE each. Its epoch rises with every
new holder; whoever writes for the lease checks the epoch inside the writing transaction
(``Fence.check``), so that a holder that slept through its own expiry can no longer write.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.db import transaction
from django.db.models import F, Q

from dashboard.models import Lease


class FencedError(Exception):
    """The lease has another holder or epoch by now: this process must stop writing."""

    def __init__(self, name: str, epoch: int) -> None:
        super().__init__(f'lease "{name}" is no longer held with epoch {epoch}')
        self.name = name
        self.epoch = epoch


@dataclass(frozen=True, slots=True)
class Fence:
    """A held lease, as something to check before writing."""

    name: str
    holder: str
    epoch: int

    def check(self) -> None:
        """Lock the lease row until the end of the surrounding transaction.

        Raises:
            FencedError: it is held with another epoch, or by nobody.
        """
        rows = Lease.objects.select_for_update().filter(
            name=self.name, holder=self.holder, epoch=self.epoch
        )
        if not list(rows.values_list("pk")):
            raise FencedError(self.name, self.epoch)


@dataclass(frozen=True, slots=True)
class LeaseView:
    """What pages show of a lease."""

    fresh: bool
    holder: str


def run_lease(run_id: int) -> str:
    """The name of a run's lease."""
    return f"run:{run_id}"


def sandbox_lease(cluster_id: int) -> str:
    """The name of a sandbox's lease."""
    return f"sandbox:{cluster_id}"


def acquire(name: str, holder: str, queue: str, ttl: float, now: float) -> int | None:
    """Take the lease if nobody holds it or its holder has not renewed it for ``ttl`` seconds.

    ``holder`` must name this attempt (host, process and a random part), not just this host: a
    holder that finds its own name on a fresh lease is refused like any other.

    Returns:
        The new epoch, or None while somebody else holds the lease.
    """
    Lease.objects.get_or_create(name=name)
    with transaction.atomic():
        taken = (
            Lease.objects.filter(name=name)
            .filter(Q(holder="") | Q(renewed_at__lte=now - ttl))
            .update(holder=holder, queue=queue, renewed_at=now, epoch=F("epoch") + 1)
        )
        if not taken:
            return None
        return Lease.objects.values_list("epoch", flat=True).get(name=name)


def renew(name: str, holder: str, epoch: int, now: float) -> bool:
    """Say that the holder is alive. False: the lease was lost, stop at once."""
    return bool(Lease.objects.filter(name=name, holder=holder, epoch=epoch).update(renewed_at=now))


def release(name: str, holder: str, epoch: int) -> bool:
    """Give the lease back, so that the next holder need not wait for its expiry."""
    return bool(
        Lease.objects.filter(name=name, holder=holder, epoch=epoch).update(
            holder="", renewed_at=0.0
        )
    )


def is_fresh(name: str, ttl: float, now: float) -> bool:
    """Somebody holds the lease and renewed it less than ``ttl`` seconds ago."""
    return view(name, ttl, now).fresh


def view(name: str, ttl: float, now: float) -> LeaseView:
    """The lease as pages show it; a lease never taken is simply not fresh."""
    row = Lease.objects.filter(name=name).only("holder", "renewed_at").first()
    if row is None or not row.holder:
        return LeaseView(False, "")
    return LeaseView(row.renewed_at > now - ttl, row.holder)
