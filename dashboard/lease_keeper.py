"""Keeps a lease alive from a thread of its own, so that a long turn of a loop does not lose it."""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable
from typing import Self

from django.conf import settings
from django.db import Error as DatabaseError
from django.db import connection

from dashboard import leases

logger = logging.getLogger(__name__)

#: Renewals in the life of a lease.
RENEWALS = 4

_guard = threading.Lock()
#: The leases that this process has and has not given back yet, be they fresh or not.
_held: set[str] = set()


def holder_name() -> str:
    """Names this attempt: host, process and a random part."""
    return f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"


class LeaseKeeper:
    """A held lease. ``lost`` is set when it has another holder, or could not be renewed in time.

    Use ``acquire``; as a context manager it gives the lease back at the end.

    Args:
        also: called after each renewal, on the keeper's thread (reads the desired state).
    """

    def __init__(self, fence: leases.Fence, ttl: float, also: Callable[[], None]) -> None:
        self.fence = fence
        self.lost = threading.Event()
        self._ttl = ttl
        self._also = also
        self._stop = threading.Event()
        self._renewed = time.monotonic()
        self._thread = threading.Thread(target=self._run, name=f"lease {fence.name}", daemon=True)

    @classmethod
    def acquire(
        cls, name: str, worker: str, also: Callable[[], None] = lambda: None
    ) -> LeaseKeeper | None:
        """Take the lease and keep it; None while somebody else holds it.

        Nor is it taken while this very process has it: on a machine that is too busy to renew in
        time a process would fence itself, and a late renewal makes the lease good again.

        ``worker`` is the celery node name, by which loops of the same process are found.
        """
        ttl, holder = float(settings.KUBESCHED_LEASE_SECONDS), holder_name()
        with _guard:
            if name in _held:
                return None
            _held.add(name)
        try:
            epoch = leases.acquire(name, holder, worker, ttl, time.time())
        except BaseException:
            _forget(name)
            raise
        if epoch is None:
            _forget(name)
            return None
        return cls(leases.Fence(name, holder, epoch), ttl, also)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        fence = self.fence
        try:
            leases.release(fence.name, fence.holder, fence.epoch)
        except DatabaseError as error:
            logger.warning("lease %s is left to expire: %s", fence.name, error)
        finally:
            _forget(fence.name)

    def _run(self) -> None:
        try:
            while not self._stop.wait(self._ttl / RENEWALS):
                self._renew()
                if self.lost.is_set():
                    return
        finally:
            connection.close()

    def _renew(self) -> None:
        fence = self.fence
        try:
            if not leases.renew(fence.name, fence.holder, fence.epoch, time.time()):
                logger.warning("lease %s is lost", fence.name)
                self.lost.set()
                return
            self._renewed = time.monotonic()
            self._also()
        except DatabaseError as error:
            connection.close()
            logger.warning("lease %s could not be renewed: %s", fence.name, error)
            if time.monotonic() - self._renewed > self._ttl:
                self.lost.set()


def _forget(name: str) -> None:
    with _guard:
        _held.discard(name)
