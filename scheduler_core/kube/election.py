"""Leader election over a coordination.k8s.io/v1 Lease (client-go's rules, kube-scheduler 1.36).

Whether another one's lease is still valid is judged by how long, on our own monotonic clock, we
have seen it unchanged: the times in it are another machine's and may be wrong. Our own is valid
until ``renew_deadline`` after the moment at which the last successful renewal was *sent*; whoever
writes asks `check` first. Nothing has to happen for that right to end: a thread that hangs in a
request, or a process that was stopped and goes on, has lost it.
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

import orjson

from scheduler_core.ports import ApiError, Clock, Json

from .fence import LeaseLost
from .pod_status import micro_time
from .statuses import decode, error_of
from .timing import Random, Timing
from .transport import NoAnswer, Transport

__all__ = ["LeaderElector", "LeaseSettings"]

log = logging.getLogger(__name__)

#: a retry comes up to this much later (client-go's JitterFactor)
_JITTER: Final = 1.2
#: a request takes at most this part of the renew deadline, so that there is time for another one
_PART: Final = 0.5


@dataclass(frozen=True, slots=True)
class LeaseSettings:
    """`leaderElection`; durations in seconds.

    Raises:
        ValueError: durations that could leave two leaders, in the reference's words.
    """

    name: str
    namespace: str = "kube-system"
    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0

    def __post_init__(self) -> None:
        if self.lease_duration <= self.renew_deadline:
            raise ValueError("leaseDuration must be greater than renewDeadline")
        if self.renew_deadline <= _JITTER * self.retry_period:
            raise ValueError("renewDeadline must be greater than retryPeriod*JitterFactor")
        if self.retry_period <= 0:
            raise ValueError("retryPeriod must be greater than zero")


class LeaderElector:
    """One candidate. Also the `Fence` of its writes.

    Args:
        identity: differs between any two candidates.
        transport: of its own, so that nothing that hangs elsewhere keeps a renewal waiting.
        clock: time of day, for the times in the Lease, which nothing depends on.
        on_change: told True when it leads, False when it does not any more, on its own thread.
    """

    def __init__(
        self,
        settings: LeaseSettings,
        identity: str,
        transport: Transport,
        *,
        clock: Clock,
        timing: Timing,
        random: Random,
        on_change: Callable[[bool], None] = lambda leads: None,
    ) -> None:
        self.settings = settings
        self.identity = identity
        self._transport = transport
        self._clock = clock
        self._timing = timing
        self._random = random
        self._on_change = on_change
        self._collection = (
            f"/apis/coordination.k8s.io/v1/namespaces/{quote(settings.namespace, safe='')}/leases"
        )
        self._path = f"{self._collection}/{quote(settings.name, safe='')}"
        self._observed: tuple[Any, ...] = ()
        self._observed_at = 0.0
        self._valid_until = 0.0
        self._leads = False
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        #: Who holds the lease, as last seen; "": nobody, or not seen yet.
        self.holder = ""
        #: Why the lease can be neither read nor written; "" where it can.
        self.trouble = ""

    # -- what others ask -------------------------------------------------------------------------

    @property
    def leads(self) -> bool:
        """It holds the lease at this moment."""
        return self._leads and self._timing.monotonic() < self._valid_until

    def check(self) -> float:
        """As `Fence`."""
        left = self._valid_until - self._timing.monotonic()
        if self._leads and left > 0:
            return left
        name = f"{self.settings.namespace}/{self.settings.name}"
        raise LeaseLost(f"{self.identity} does not hold the lease {name}: nothing is written")

    # -- life ------------------------------------------------------------------------------------

    def start(self) -> None:
        """Be a candidate, on a thread of its own."""
        self._thread = threading.Thread(target=self.run, name="leader-election", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Give the lease back, so that the next one need not wait. Writes must have ended."""
        self._stopped.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(self.settings.renew_deadline)

    def run(self) -> None:
        """Be a candidate until `stop`; after a loss, again."""
        while not self._stopped.is_set():
            self.turn()
            self._timing.wait(self._pause(), self._stopped)
        self._release()

    def turn(self) -> None:
        """One try to get or to keep the lease."""
        try:
            held = self._try()
            self.trouble = ""
        except (ApiError, NoAnswer) as error:
            held = None
            self._note(str(error))
        except Exception as fault:
            # Whatever it is: without this thread nobody would ever be a candidate again.
            held = None
            log.exception("the election stumbled")
            self._note(type(fault).__name__)
        self._settle(held)

    def _pause(self) -> float:
        period = self.settings.retry_period
        if self._leads:
            return min(period, max(0.0, self._valid_until - self._timing.monotonic()))
        return period * (1.0 + (_JITTER - 1.0) * self._random())

    def _settle(self, held: bool | None) -> None:
        """``held`` None: not known; then the old right lasts until its time is over."""
        if held is None:
            held = self.leads
        if not held:
            self._valid_until = 0.0
        if held == self._leads:
            return
        self._leads = held
        log.info("%s %s", self.identity, "leads" if held else "does not lead any more")
        self._on_change(held)

    def _note(self, text: str) -> None:
        if text != self.trouble:
            log.warning("the lease %s cannot be used: %s", self.settings.name, text)
        self.trouble = text

    # -- the lease -------------------------------------------------------------------------------

    def _try(self) -> bool | None:
        """Whether the lease is ours now; None: another write came in between.

        Raises:
            ApiError, NoAnswer: it is not known.
        """
        lease = self._read()
        sent_at = self._timing.monotonic()
        if lease is None:
            return self._write("POST", self._collection, self._fresh(None), sent_at)
        spec = lease.get("spec") or {}
        self._observe(lease, spec)
        ours = self.holder == self.identity
        if not ours and self.holder and self._is_valid(spec):
            return False
        return self._write("PUT", self._path, self._fresh(lease), sent_at)

    def _observe(self, lease: Json, spec: Json) -> None:
        """Any change begins the wait anew, whatever times are in it."""
        version = (lease.get("metadata") or {}).get("resourceVersion")
        record = (version, spec.get("holderIdentity"), spec.get("renewTime"))
        if record != self._observed:
            self._observed, self._observed_at = record, self._timing.monotonic()
        self.holder = str(spec.get("holderIdentity") or "")

    def _is_valid(self, spec: Json) -> bool:
        seconds = spec.get("leaseDurationSeconds")
        if not isinstance(seconds, int) or seconds <= 0:
            seconds = self.settings.lease_duration
        return self._timing.monotonic() < self._observed_at + seconds

    def _fresh(self, lease: Json | None) -> Json:
        """The Lease as ours. The resourceVersion stays, so that one of two candidates wins."""
        settings, now = self.settings, micro_time(self._clock.now())
        if lease is None:
            metadata: Json = {"name": settings.name, "namespace": settings.namespace}
            lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata}
        old = lease.get("spec") or {}
        ours = old.get("holderIdentity") == self.identity
        transitions = int(old.get("leaseTransitions") or 0)
        spec = {
            **old,
            "holderIdentity": self.identity,
            # Upwards: others wait for this long, and we may write until the renew deadline.
            "leaseDurationSeconds": math.ceil(settings.lease_duration),
            "acquireTime": old.get("acquireTime") if ours else now,
            "renewTime": now,
            "leaseTransitions": transitions if ours or not old else transitions + 1,
        }
        return {**lease, "spec": spec}

    def _read(self) -> Json | None:
        answer = self._transport.request("GET", self._path, timeout=self._timeout())
        if answer.status == 404:
            return None
        if answer.status >= 300:
            raise error_of(answer)
        return decode(answer.body)

    def _write(self, method: str, path: str, lease: Json, sent_at: float) -> bool | None:
        answer = self._transport.request(
            method, path, body=orjson.dumps(lease), timeout=self._timeout()
        )
        if answer.status == 409:
            return None  # another candidate's, or one of ours whose answer was lost
        if answer.status >= 300:
            raise error_of(answer)
        written = decode(answer.body)
        self._observe(written, written.get("spec") or {})
        self._valid_until = sent_at + self.settings.renew_deadline
        return True

    def _timeout(self) -> float:
        limit = self.settings.renew_deadline * _PART
        if not self._leads:
            return limit
        return max(0.1, min(limit, self._valid_until - self._timing.monotonic()))

    def _release(self) -> None:
        if not self._leads:
            return
        self._leads = False
        self._valid_until = 0.0
        try:
            lease = self._read()
            if lease is None or (lease.get("spec") or {}).get("holderIdentity") != self.identity:
                return
            now = micro_time(self._clock.now())
            # As client-go does: nobody's, and over in a second.
            lease["spec"] = {
                **lease["spec"],
                "holderIdentity": "",
                "leaseDurationSeconds": 1,
                "acquireTime": now,
                "renewTime": now,
            }
            self._transport.request(
                "PUT", self._path, body=orjson.dumps(lease), timeout=self._timeout()
            )
        except (ApiError, NoAnswer) as error:
            log.info("the lease was not given back: %s", error)
        finally:
            self._on_change(False)
