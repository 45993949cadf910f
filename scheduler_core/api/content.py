"""The content of JSON as bytes: equal bytes, equal JSON.

What is made from equal JSON (a parsed spec, a signature) can be kept once and found again by
these bytes, whoever decoded the JSON and however often.
"""

from __future__ import annotations

import marshal
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, Final

__all__ = ["content_of", "digest"]

# Format 2 of marshal writes values alone. Later formats also write which objects are the same
# one, or interned, so that their bytes differ for equal JSON.
_FORMAT: Final = 2
#: bytes of a digest: two different contents do not meet by accident, nor by anyone's intent
_SIZE: Final = 16


def content_of(value: Any) -> bytes:
    """Bytes that two JSON values share exactly if they are equal, order of keys included.

    1, 1.0 and true are three values, and so are an absent key and null. The bytes mean nothing
    outside this process. About 1.5 us for a pod's spec, a third of what `json.dumps` takes.

    Raises:
        ValueError: something in it is not JSON, or it is nested too deeply.
    """
    try:
        return marshal.dumps(value, _FORMAT)
    except ValueError:
        return marshal.dumps(_plain(value), _FORMAT)


def digest(content: bytes) -> bytes:
    """16 bytes that stand for `content`."""
    return blake2b(content, digest_size=_SIZE).digest()


def _plain(value: Any) -> Any:
    """The same JSON in exact dicts, lists, texts and numbers; marshal knows no others."""
    if isinstance(value, Mapping):
        return {_plain(key): _plain(child) for key, child in value.items()}
    if isinstance(value, list):
        return [_plain(child) for child in value]
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return int.__int__(value)
    return float.__float__(value) if isinstance(value, float) else value
