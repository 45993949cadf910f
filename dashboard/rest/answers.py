"""How long answers to requests with an ``Idempotency-Key`` are kept."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from django.utils import timezone

from dashboard.rest.models import IdempotentAnswer

KEPT: Final = timedelta(hours=24)


def prune() -> int:
    """Forget answers that are older than a day; how many went."""
    old = IdempotentAnswer.objects.filter(created_at__lt=timezone.now() - KEPT)
    return old.delete()[0]
