"""Secrets of webhooks, encrypted (``dashboard.sealing``): every message is signed with them."""

from __future__ import annotations

import base64
import os
from typing import Final

from dashboard import sealing

PREFIX: Final = "whsec_"
SECRET_BYTES: Final = 32
_PURPOSE: Final = b"kubesched.webhooks.secret"


class Unreadable(Exception):
    """It was encrypted with another SECRET_KEY."""


def new_secret() -> str:
    """A new secret as a receiver is given it: ``whsec_`` and base64 of 32 random bytes."""
    return PREFIX + base64.b64encode(os.urandom(SECRET_BYTES)).decode()


def seal(secret: str) -> str:
    """``secret`` as the database keeps it."""
    return sealing.seal(secret, _PURPOSE)


def unseal(sealed: str) -> str:
    """The secret again.

    Raises:
        Unreadable: neither SECRET_KEY nor one of SECRET_KEY_FALLBACKS opens it.
    """
    try:
        return sealing.unseal(sealed, _PURPOSE)
    except sealing.Unreadable:
        raise Unreadable(
            "The secret cannot be read, because SECRET_KEY has changed. Make a new secret."
        ) from None
