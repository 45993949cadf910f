"""JSON merge patch (RFC 7386)."""

from __future__ import annotations

from typing import Any

from scheduler_core.ports import Json

__all__ = ["merge_patch"]


def merge_patch(target: Any, patch: Json) -> Json:
    """`target` with `patch` merged in; neither is changed, what is untouched is shared."""
    result: Json = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            result[key] = merge_patch(result.get(key), value)
        else:
            result[key] = value
    return result
