"""A limit on failed attempts to use an API token, for all web processes together.

Counted in the database, which they share. The secret's 256 bits are the defence; this keeps a
guesser, or a bot with a stale token, from loading the server and the logs. Where the limit is
reached nothing more is written, so a flood costs one indexed query per request.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from hashlib import sha256
from typing import Final

from django.db.models import F, QuerySet
from django.utils import timezone

from dashboard.rest.models import TokenFailures

#: Failures that one key may have in one window.
MOST_FAILURES: Final = 20
WINDOW_SECONDS: Final = 60


def is_blocked(key: str, now: datetime | None = None) -> bool:
    """Too many failures in this window."""
    running = _running(key, now or timezone.now())
    return running.filter(failures__gte=MOST_FAILURES).exists()


def failed(key: str, now: datetime | None = None) -> None:
    """Count one more failure. A window begins with its first failure."""
    now = now or timezone.now()
    if _running(key, now).update(failures=F("failures") + 1):
        return
    until = now + timedelta(seconds=WINDOW_SECONDS)
    _, begun = TokenFailures.objects.get_or_create(
        key=_name(key), defaults={"failures": 1, "until": until}
    )
    if begun:
        return
    # The window of before has ended: one of those who fail at this moment begins the next one.
    old = TokenFailures.objects.filter(key=_name(key), until__lte=now)
    if not old.update(failures=1, until=until):
        _running(key, now).update(failures=F("failures") + 1)


def prune(now: datetime | None = None, limit: int = 500) -> int:
    """Forget at most ``limit`` windows that have ended."""
    over = TokenFailures.objects.filter(until__lte=now or timezone.now()).order_by("until")
    keys = list(over.values_list("key", flat=True)[:limit])
    TokenFailures.objects.filter(key__in=keys).delete()
    return len(keys)


def _running(key: str, now: datetime) -> QuerySet[TokenFailures]:
    return TokenFailures.objects.filter(key=_name(key), until__gt=now)


def _name(key: str) -> str:
    return sha256(key.encode()).hexdigest()
