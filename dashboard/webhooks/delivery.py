"""Messages on their way: who is due, one attempt, and what comes of it.

At least once: a message is done only when a 2xx has been read, so one whose answer was lost is sent
again. In order per gang and endpoint: a message waits until the earlier one is delivered or given
up. An endpoint is served by one worker at a time (``claimed_until``).
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from django.conf import settings
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.utils import timezone

from dashboard.webhooks import secrets, signing
from dashboard.webhooks.models import WebhookDelivery, WebhookEndpoint
from dashboard.webhooks.sender import Result, send

logger = logging.getLogger(__name__)

#: Endpoints that are served at a time, so that slow ones leave worker threads for other tasks.
MOST_AT_ONCE: Final = 4
#: A worker gives an endpoint back after this many seconds, for the others to have their turn.
TURN_SECONDS: Final = 20.0
#: How much longer than one attempt a claim holds; a worker that died is replaced after that.
CLAIM_SPARE_SECONDS: Final = 20.0
FIRST_BACKOFF: Final = 2.0
MOST_BACKOFF: Final = 3600.0
#: So many failures in a row, and the endpoint as a whole rests.
FAILURES_BEFORE_REST: Final = 3
MOST_REST: Final = 60.0
GONE: Final = 410

_Delivery = WebhookDelivery
Send = Callable[..., Result]


@dataclass(slots=True)
class Deliverer:
    """The parts that tests replace.

    Attributes:
        send: as ``sender.send``.
        clock: the time of day.
        uniform: as ``random.uniform``.
        timeout: seconds of one attempt.
    """

    send: Send = send
    clock: Callable[[], datetime] = timezone.now
    uniform: Callable[[float, float], float] = random.uniform
    timeout: float = field(default_factory=lambda: settings.KUBESCHED_WEBHOOK_TIMEOUT_SECONDS)

    def claim(self) -> list[int]:
        """Give up what is too old, and take endpoints that have something due and that nobody
        serves; they are this caller's until ``serve`` gives them back."""
        now = self.clock()
        self._give_up(now)
        free = MOST_AT_ONCE - WebhookEndpoint.objects.filter(claimed_until__gt=now).count()
        if free <= 0:
            return []
        unclaimed = Q(claimed_until=None) | Q(claimed_until__lte=now)
        due = self._due(now).filter(endpoint=OuterRef("pk"))
        found = WebhookEndpoint.objects.filter(
            unclaimed, Q(retry_at=None) | Q(retry_at__lte=now), Exists(due), active=True
        ).order_by("claimed_until", "pk")
        until = now + self._claim_time()
        return [
            pk
            for pk in found.values_list("pk", flat=True)[:free]
            if WebhookEndpoint.objects.filter(unclaimed, pk=pk).update(claimed_until=until)
        ]

    def serve(self, endpoint_id: int, turn: float = TURN_SECONDS) -> int:
        """Send what is due to one claimed endpoint for at most ``turn`` seconds; how many messages
        were tried."""
        tried = 0
        until = time.monotonic() + turn
        try:
            while time.monotonic() < until and self._serve_one(endpoint_id):
                tried += 1
        finally:
            WebhookEndpoint.objects.filter(pk=endpoint_id).update(claimed_until=None)
        return tried

    def _serve_one(self, endpoint_id: int) -> bool:
        """One attempt; False where nothing is due or the endpoint is to rest."""
        now = self.clock()
        held = WebhookEndpoint.objects.filter(pk=endpoint_id).update(
            claimed_until=now + self._claim_time()
        )
        endpoint = WebhookEndpoint.objects.filter(pk=endpoint_id).first()
        if not held or endpoint is None or not endpoint.active:
            return False
        if endpoint.retry_at is not None and endpoint.retry_at > now:
            return False
        delivery = (
            self._due(now)
            .filter(endpoint=endpoint)
            .select_related("message")
            .order_by("next_attempt_at", "pk")
            .first()
        )
        if delivery is None:
            return False
        self._note(endpoint, delivery, self._attempt(endpoint, delivery, now))
        return True

    def _due(self, now: datetime) -> QuerySet[WebhookDelivery]:
        earlier = _Delivery.objects.filter(
            endpoint=OuterRef("endpoint"),
            order_key=OuterRef("order_key"),
            state=_Delivery.State.PENDING,
            pk__lt=OuterRef("pk"),
        )
        return _Delivery.objects.filter(
            ~Exists(earlier), state=_Delivery.State.PENDING, next_attempt_at__lte=now
        )

    def _attempt(
        self, endpoint: WebhookEndpoint, delivery: WebhookDelivery, now: datetime
    ) -> Result:
        try:
            keys = _keys(endpoint, now)
        except secrets.Unreadable as error:
            return Result(error=str(error))
        body = delivery.message.body.encode()
        uid = delivery.message.uid
        headers = signing.headers(keys, uid, int(now.timestamp()), body)
        return self.send(endpoint.url, body, headers, timeout=self.timeout)

    def _note(self, endpoint: WebhookEndpoint, delivery: WebhookDelivery, result: Result) -> None:
        """Write down what came of an attempt."""
        now = self.clock()
        changes: dict[str, object] = {
            "attempts": F("attempts") + 1,
            "last_attempt_at": now,
            "last_status": result.status,
            "last_error": result.error,
        }
        row = _Delivery.objects.filter(pk=delivery.pk)
        if result.ok:
            row.update(**changes, state=_Delivery.State.DELIVERED, delivered_at=now)
            WebhookEndpoint.objects.filter(pk=endpoint.pk).update(failures=0, retry_at=None)
            return
        logger.warning(
            "webhook %s: message %s, attempt %s: %s",
            endpoint.pk,
            delivery.message.uid,
            delivery.attempts + 1,
            result.error,
        )
        wait = max(self._backoff(delivery.attempts + 1, MOST_BACKOFF), result.retry_after)
        next_at = now + timedelta(seconds=wait)
        dead = next_at >= delivery.give_up_at or result.status == GONE
        state = _Delivery.State.DEAD if dead else _Delivery.State.PENDING
        row.update(**changes, state=state, next_attempt_at=next_at)
        self._note_failure(endpoint, result, now)

    def _note_failure(self, endpoint: WebhookEndpoint, result: Result, now: datetime) -> None:
        row = WebhookEndpoint.objects.filter(pk=endpoint.pk)
        if result.status == GONE:
            words = f"The receiver answered 410 (gone) at {now:%Y-%m-%d %H:%M:%S} UTC."
            row.update(active=False, stopped_because=words)
            return
        if result.status is not None and result.status < 500 and result.status != 429:
            return  # the server is well, it does not like this message
        failures = endpoint.failures + 1
        rest = result.retry_after
        if failures >= FAILURES_BEFORE_REST:
            rest = max(rest, self._backoff(failures - FAILURES_BEFORE_REST + 1, MOST_REST))
        retry_at = now + timedelta(seconds=rest) if rest else None
        row.update(failures=failures, retry_at=retry_at)

    def _give_up(self, now: datetime) -> None:
        """What is too old, wherever it stands: also at endpoints that are switched off."""
        old = _Delivery.objects.filter(state=_Delivery.State.PENDING, give_up_at__lte=now)
        old.filter(attempts=0).update(
            state=_Delivery.State.DEAD, last_error="Given up: it was never this message's turn."
        )
        old.update(state=_Delivery.State.DEAD)

    def _backoff(self, failures: int, most: float) -> float:
        """Seconds after that many failures: doubling, with up to half of it taken off at random."""
        return min(most, FIRST_BACKOFF * 2.0 ** min(failures - 1, 30)) * self.uniform(0.5, 1.0)

    def _claim_time(self) -> timedelta:
        return timedelta(seconds=self.timeout + CLAIM_SPARE_SECONDS)


def _keys(endpoint: WebhookEndpoint, now: datetime) -> list[str]:
    """The secrets that sign: the newest first, the one before it as long as it counts."""
    keys = [secrets.unseal(endpoint.secret)]
    if endpoint.old_secret and endpoint.old_secret_until and now < endpoint.old_secret_until:
        keys.append(secrets.unseal(endpoint.old_secret))
    return keys
