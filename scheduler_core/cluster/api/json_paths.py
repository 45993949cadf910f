"""The simple part of JSONPath that definitions use for columns: `.spec.a.b[0]`, `[?(@.x=="y")]`."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

__all__ = ["find_path"]

_STEP: Final = re.compile(
    r"\.(?P<name>(?:[\w-]|\\\.)+)"
    r"|\[(?P<index>-?\d+)\]"
    r"|\[['\"](?P<quoted>[^'\"]+)['\"]\]"
    r"|\[\?\(@\.(?P<key>[\w.-]+)\s*==\s*['\"](?P<value>[^'\"]*)['\"]\)\]"
)


@lru_cache(maxsize=512)
def _steps(path: str) -> tuple[re.Match[str], ...] | None:
    """None for a path that is not understood."""
    found, at = [], 0
    while at < len(path):
        match = _STEP.match(path, at)
        if match is None:
            return None
        found.append(match)
        at = match.end()
    return tuple(found)


def find_path(obj: Any, path: str) -> Any:
    """What is there; None where nothing is, and for a path that is not understood."""
    for step in _steps(path) or ():
        obj = _take(obj, step)
        if obj is None:
            return None
    return obj if _steps(path) else None


def _take(obj: Any, step: re.Match[str]) -> Any:
    name = step["name"] or step["quoted"]
    if name is not None:
        return obj.get(name.replace("\\.", ".")) if isinstance(obj, dict) else None
    if not isinstance(obj, list):
        return None
    if step["index"] is not None:
        index = int(step["index"])
        return obj[index] if -len(obj) <= index < len(obj) else None
    wanted = (i for i in obj if isinstance(i, dict) and str(i.get(step["key"])) == step["value"])
    return next(wanted, None)
