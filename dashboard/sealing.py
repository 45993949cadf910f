"""Secrets that have to be readable again, encrypted with a key that comes from SECRET_KEY.

Whoever has the database and SECRET_KEY has them, whoever has the database alone has not.
"""

from __future__ import annotations

import base64

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings


class Unreadable(Exception):
    """It was encrypted with another SECRET_KEY."""


def seal(secret: str, purpose: bytes) -> str:
    """``secret`` as the database keeps it. ``purpose``: nothing that is sealed for one purpose can
    be read for another."""
    return _box(purpose).encrypt(secret.encode()).decode()


def unseal(sealed: str, purpose: bytes) -> str:
    """The secret again.

    Raises:
        Unreadable: neither SECRET_KEY nor one of SECRET_KEY_FALLBACKS opens it.
    """
    try:
        return _box(purpose).decrypt(sealed.encode()).decode()
    except InvalidToken:
        raise Unreadable("SECRET_KEY has changed") from None


def _box(purpose: bytes) -> MultiFernet:
    keys = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
    return MultiFernet([Fernet(_derived(key, purpose)) for key in keys])


def _derived(key: str | bytes, purpose: bytes) -> bytes:
    made = HKDF(algorithm=SHA256(), length=32, salt=None, info=purpose)
    return base64.urlsafe_b64encode(made.derive(key.encode() if isinstance(key, str) else key))
