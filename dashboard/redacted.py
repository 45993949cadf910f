"""What must not be shown or logged of a configuration: keys, tokens, passwords, also in URLs.

The one rule for everything that shows one: the text, its completed form, differences, ``/configz``
and messages about faults.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

__all__ = [
    "HIDDEN",
    "in_text_without_userinfo",
    "is_secret_key",
    "without_secrets",
    "without_userinfo",
]

HIDDEN: Final = "(hidden)"
_SECRET_KEY: Final = re.compile(
    r"(?:keydata|password|passwd|token|secret|apikey|credentials?)\Z", re.IGNORECASE
)
#: In one value: a URL's authority up to its last "@" (a token may be the user as well as the
#: password), also where a password that nobody has escaped has a slash.
_USERINFO: Final = re.compile(r"(?<=//)(?:[^/?#]*|[^/?#@:]*:(?!\d+(?:[/?#]|\Z)).*)@", re.DOTALL)
#: The same in running text, which goes on after the URL.
_USERINFO_IN_TEXT: Final = re.compile(r"(?<=//)[^/?#\s\"']*@")


def is_secret_key(name: str) -> bool:
    """Whether what stands under this key is a secret: ``keyData``, ``password``, ``bearerToken``"""
    return _SECRET_KEY.search(name) is not None


def without_userinfo(text: str) -> str:
    """``http://(hidden)@host`` for a value ``http://user:password@host``."""
    return _USERINFO.sub(f"{HIDDEN}@", text) if "@" in text else text


def in_text_without_userinfo(text: str) -> str:
    """The same for URLs in a longer text."""
    return _USERINFO_IN_TEXT.sub(f"{HIDDEN}@", text)


def without_secrets(value: Any) -> Any:
    """The same document, copied, with ``HIDDEN`` in place of every secret."""
    if isinstance(value, Mapping):
        return {
            key: HIDDEN if is_secret_key(str(key)) and item else without_secrets(item)
            for key, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [without_secrets(item) for item in value]
    return without_userinfo(value) if isinstance(value, str) else value
