"""Secrets of webhooks, encrypted with a key that comes from SECRET_KEY.

They must be readable, because every message is signed with them; so whoever has the database and
SECRET_KEY has them, whoever has the database alone has not.
"""

from __future__ import annotations

import base64
import os
from typing import Final

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

PREFIX: Final = "whsec_"
SECRET_BYTES: Final = 32


class Unreadable(Exception):
    """It was encrypted with another SECRET_KEY."""


def new_secret() -> str:
    """A new secret as a receiver is given it: ``whsec_`` and base64 of 32 random bytes."""
    return PREFIX + base64.b64encode(os.urandom(SECRET_BYTES)).decode()


def seal(secret: str) -> str:
    """``secret`` as the database keeps it."""
    return _box().encrypt(secret.encode()).decode()


def unseal(sealed: str) -> str:
    """The secret again.

    Raises:
        Unreadable: neither SECRET_KEY nor one of SECRET_KEY_FALLBACKS opens it.
    """
    try:
        return _box().decrypt(sealed.encode()).decode()
    except InvalidToken:
        raise Unreadable(
            "The secret cannot be read, because SECRET_KEY has changed. Make a new secret."
        ) from None


def _box() -> MultiFernet:
    keys = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
    return MultiFernet([Fernet(_derived(key)) for key in keys])


def _derived(key: str | bytes) -> bytes:
    made = HKDF(algorithm=SHA256(), length=32, salt=None, info=b"kubesched.webhooks.secret")
    return base64.urlsafe_b64encode(made.derive(key.encode() if isinstance(key, str) else key))
