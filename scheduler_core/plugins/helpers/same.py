"""Whether what was worked out before still holds, because it was worked out of the same objects."""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_

__all__ = ["same_objects"]


def same_objects(before: Sequence[object], now: Sequence[object]) -> bool:
    """Whether both hold the very same objects (not only equal ones). Nobody may change them."""
    return len(before) == len(now) and all(map(is_, before, now))
