"""Signatures of the Standard Webhooks specification (symmetric, version ``v1``)."""

from __future__ import annotations

import base64
import hmac
from collections.abc import Sequence
from hashlib import sha256

from dashboard.webhooks.secrets import PREFIX


def signature(secret: str, message_id: str, timestamp: int, body: bytes) -> str:
    """``v1,`` and base64 of the HMAC-SHA256 over ``ID.TIMESTAMP.BODY``."""
    key = base64.b64decode(secret.removeprefix(PREFIX))
    signed = b".".join((message_id.encode(), str(timestamp).encode(), body))
    return "v1," + base64.b64encode(hmac.new(key, signed, sha256).digest()).decode()


def headers(secrets: Sequence[str], message_id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """The three headers of a message; one signature per secret, so that secrets can be changed
    without a gap."""
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(
            signature(secret, message_id, timestamp, body) for secret in secrets
        ),
    }
