"""Who may ask a worker, or the pages, for metrics, configurations and decisions.

A token of the environment (``KUBESCHED_METRICS_TOKEN``) for scrapers that need no account, an API
token of a person with the right scope, or the trust that comes with the connection. kube-scheduler
sends what stands before the ``@`` of an extender's URL as user and password: the password is taken
for a token, whatever the user.
"""

from __future__ import annotations

import base64
import binascii
import threading
import time
from collections.abc import Mapping
from hashlib import sha256
from hmac import compare_digest
from typing import Any, Final

from django.conf import settings
from django.db import Error as DatabaseError
from django.db import connection

from dashboard import audit
from dashboard.rest import tokens
from dashboard.rest.models import ApiToken

__all__ = ["Denied", "forget", "token_of", "who_asks"]

#: Seconds for which a token that was right is not looked up again.
REMEMBERED_SECONDS: Final = 10.0
MOST_REMEMBERED: Final = 256

_lock = threading.Lock()
#: SHA-256 of a token -> until when, its user, its scopes, what the user lacks for them
_remembered: dict[str, tuple[float, Any, frozenset[str], str]] = {}


class Denied(Exception):
    """The answer's status is 401, 403, 429 or 503; the text says why."""

    def __init__(self, status: int, text: str, retry_after: int = 0) -> None:
        super().__init__(text)
        self.status = status
        self.headers = {"WWW-Authenticate": 'Bearer realm="KubeSched"'} if status == 401 else {}
        if retry_after:
            self.headers["Retry-After"] = str(retry_after)


def token_of(headers: Mapping[str, str]) -> str:
    """The token in ``Authorization`` (names of headers in lower case), or ""."""
    scheme, _, value = headers.get("authorization", "").strip().partition(" ")
    if scheme.lower() == "bearer":
        return value.strip()
    if scheme.lower() != "basic":
        return ""
    try:
        pair = base64.b64decode(value.strip(), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return ""
    return pair.partition(":")[2]


def who_asks(token: str, address: str, scope: ApiToken.Scope, *, fresh: bool = False) -> Any:
    """The Django user whose token it is; None for the environment's, which only reads.

    Args:
        fresh: look token, account and permission up now, whatever was found a moment ago: for
            calls that change something.

    Raises:
        Denied: it is none that may.
    """
    if not token:
        raise Denied(401, "Send a token in the header Authorization: Bearer.")
    shared = settings.KUBESCHED_METRICS_TOKEN
    if shared and scope == ApiToken.Scope.READ and compare_digest(token.encode(), shared.encode()):
        return None
    user, scopes, missing = _known(token, address, fresh)
    if scope not in scopes:
        raise Denied(403, f'This API token does not have the scope "{scope.value}".')
    if scope == ApiToken.Scope.EXTEND and missing:
        raise Denied(403, missing)
    return user


def _known(token: str, address: str, fresh: bool) -> tuple[Any, frozenset[str], str]:
    digest = sha256(token.encode()).hexdigest()
    now = time.monotonic()
    with _lock:
        found = _remembered.get(digest)
    if found is not None and now < found[0] and not fresh:
        return found[1:]
    with _lock:
        _remembered.pop(digest, None)
    known = _look_up(token, address)
    with _lock:
        if len(_remembered) >= MOST_REMEMBERED:
            _remembered.clear()
        _remembered[digest] = (now + REMEMBERED_SECONDS, *known)
    return known


def _look_up(token: str, address: str) -> tuple[Any, frozenset[str], str]:
    try:
        row = tokens.authenticate(token, address)
        missing = tokens.missing_permission(row.user, row.scopes)
        audit.acts_by_token(row.user, row.prefix)
        return row.user, frozenset(row.scopes), missing
    except tokens.Refused as error:
        status = 429 if error.retry_after else 401
        raise Denied(status, str(error), error.retry_after) from None
    except DatabaseError:
        raise Denied(503, "The token cannot be checked: the database does not answer.") from None
    finally:
        if not connection.in_atomic_block:
            connection.close()


def forget() -> None:
    """Look every token up again."""
    with _lock:
        _remembered.clear()
