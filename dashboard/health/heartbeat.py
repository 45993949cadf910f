"""When this process last did something that beat had sent."""

from __future__ import annotations

import time

__all__ = ["heard", "seconds_since"]

_heard_at = time.monotonic()


def heard() -> None:
    """A task of beat's has come."""
    global _heard_at
    _heard_at = time.monotonic()


def seconds_since() -> float:
    """Since then, or since the process began."""
    return time.monotonic() - _heard_at
