"""A configuration without what must not be shown or logged: keys, passwords in URLs."""

from __future__ import annotations

import re
from typing import Any, Final

__all__ = ["without_secrets"]

HIDDEN: Final = "<hidden>"
_SECRETS: Final = frozenset({"keyData", "password", "token"})
_PASSWORD: Final = re.compile(r"(//[^/@:]*):[^/@]*@")


def without_secrets(value: Any) -> Any:
    """The same document, copied, with ``<hidden>`` in place of every secret."""
    if isinstance(value, dict):
        return {
            key: HIDDEN if key in _SECRETS and item else without_secrets(item)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [without_secrets(item) for item in value]
    if isinstance(value, str) and "//" in value:
        return _PASSWORD.sub(rf"\1:{HIDDEN}@", value)
    return value
