"""A limit on failed attempts to use an API token.

Counted in Django's cache, for one web process: the secret's 256 bits are the defence, this keeps a
guesser, or a bot with a stale token, from loading the database and the logs.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Final

from django.core.cache import cache

#: Failures that one key may have in one window.
MOST_FAILURES: Final = 20
WINDOW_SECONDS: Final = 60


def is_blocked(key: str) -> bool:
    """Too many failures in this window."""
    return int(cache.get(_name(key), 0)) >= MOST_FAILURES


def failed(key: str) -> None:
    """Count one more failure. A window begins with its first failure."""
    name = _name(key)
    if cache.add(name, 1, WINDOW_SECONDS):
        return
    try:
        cache.incr(name)
    except ValueError:  # the window ended between the two calls
        cache.add(name, 1, WINDOW_SECONDS)


def _name(key: str) -> str:
    return f"kubesched.token-failures.{sha256(key.encode()).hexdigest()}"
