"""API tokens: made, looked up, revoked.

A token reads ``kst_PREFIX_SECRET``. The prefix finds the row and is shown in lists and in the
audit; the secret is shown once, and its SHA-256 is kept.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from hmac import compare_digest
from typing import Any, Final

from django.db import transaction
from django.utils import timezone

from dashboard import audit
from dashboard.models import AuditEntry
from dashboard.rest import throttle
from dashboard.rest.models import ApiToken

LIFETIMES_DAYS: Final = (7, 30, 90, 365)
MOST_TOKENS: Final = 50
#: Needed by whoever asks runs as their extender, at every call.
MAY_EXTEND: Final = "dashboard.extend_run"
_FORM = re.compile(r"kst_([a-z0-9]{12})_([A-Za-z0-9_-]{43})")
_ALPHABET: Final = "abcdefghijklmnopqrstuvwxyz0123456789"
_NOBODYS: Final = sha256(b"").hexdigest()
#: ``last_used_at`` is not written more often: a read must not cost a write.
_USED_EVERY: Final = timedelta(minutes=1)


class Refused(Exception):
    """This is no token that may be used; the message says why. ``retry_after``: seconds."""

    def __init__(self, message: str, retry_after: int = 0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class NotPermitted(Exception):
    """A scope needs a permission that the token's user does not have."""


class TooManyTokens(Exception):
    """The user has as many usable tokens as there may be."""


@dataclass(frozen=True, slots=True)
class Issued:
    """A new token. ``text`` is known at this moment only."""

    token: ApiToken
    text: str


def missing_permission(user: Any, scopes: Iterable[str]) -> str:
    """What ``user`` lacks for ``scopes``, in a sentence; "" where nothing is missing.

    Reading needs a login only, deciding is checked with each decision. A call as an extender has no
    page that would check it.
    """
    if ApiToken.Scope.EXTEND not in scopes or user.has_perm(MAY_EXTEND):
        return ""
    return (
        f'The scope "{ApiToken.Scope.EXTEND.value}" needs the permission {MAY_EXTEND},'
        f" which {user.get_username()} does not have."
    )


def issue(user: Any, *, name: str, scopes: Sequence[str], days: int, by: Any) -> Issued:
    """Make a token for ``user``, with its audit row.

    Raises:
        NotPermitted: a scope needs a permission that ``user`` does not have.
        TooManyTokens: the user has ``MOST_TOKENS`` usable ones.
    """
    missing = missing_permission(user, scopes)
    if missing:
        raise NotPermitted(missing)
    now = timezone.now()
    usable = ApiToken.objects.filter(user=user, revoked_at=None, expires_at__gt=now)
    if usable.count() >= MOST_TOKENS:
        raise TooManyTokens(f"There may be {MOST_TOKENS} tokens; revoke one that is not used.")
    prefix = "".join(secrets.choice(_ALPHABET) for _ in range(12))
    secret = secrets.token_urlsafe(32)
    with transaction.atomic():
        token = ApiToken.objects.create(
            user=user,
            name=name,
            prefix=prefix,
            digest=_digest(secret),
            scopes=[scope for scope in ApiToken.Scope.values if scope in scopes],
            created_at=now,
            created_by=by,
            expires_at=now + timedelta(days=days),
        )
        audit.write(
            by,
            AuditEntry.Verb.CREATE_TOKEN,
            f"{prefix} of {user.get_username()}",
            detail={"scopes": token.scopes, "expires": token.expires_at.isoformat()},
        )
    return Issued(token, f"kst_{prefix}_{secret}")


def authenticate(text: str, address: str, now: datetime | None = None) -> ApiToken:
    """The usable token that ``text`` is.

    Failures are counted by address, and for a prefix that exists by address and prefix, so that a
    stranger at the same address does not lock out a bot that has the right token.

    Raises:
        Refused: it is not one, it has expired or was revoked, its user may not log in any more, or
            there were too many failures (then with ``retry_after``).
    """
    now = timezone.now() if now is None else now
    match = _FORM.fullmatch(text)
    prefix, secret = match.groups() if match else ("", "")
    token = ApiToken.objects.filter(prefix=prefix).select_related("user").first()
    key = f"{address} {token.prefix}" if token is not None else address
    if throttle.is_blocked(key):
        raise Refused(
            "Too many failed attempts; wait a minute and check the token.", throttle.WINDOW_SECONDS
        )
    known = token.digest if token is not None else _NOBODYS
    if not compare_digest(known, _digest(secret)) or token is None or not match:
        throttle.failed(key)
        raise Refused("This is not a valid API token.")
    _check_usable(token, key, now)
    _note_use(token, now)
    return token


def revoke(token: ApiToken, by: Any) -> bool:
    """End a token, with its audit row. False: it was revoked before."""
    with transaction.atomic():
        revoked = ApiToken.objects.filter(pk=token.pk, revoked_at=None).update(
            revoked_at=timezone.now(), revoked_by=by
        )
        if revoked:
            audit.write(
                by, AuditEntry.Verb.REVOKE_TOKEN, f"{token.prefix} of {token.user.get_username()}"
            )
    return bool(revoked)


def _check_usable(token: ApiToken, key: str, now: datetime) -> None:
    message = ""
    if token.revoked_at is not None:
        message = f"This API token was revoked at {token.revoked_at:%Y-%m-%d %H:%M:%S} UTC."
    elif now >= token.expires_at:
        message = f"This API token expired at {token.expires_at:%Y-%m-%d %H:%M:%S} UTC."
    elif not token.user.is_active:
        message = f"The account {token.user.get_username()} of this API token is not active."
    if message:
        throttle.failed(key)
        raise Refused(message)


def _note_use(token: ApiToken, now: datetime) -> None:
    if token.last_used_at is not None and now - token.last_used_at < _USED_EVERY:
        return
    ApiToken.objects.filter(pk=token.pk).update(last_used_at=now)
    token.last_used_at = now


def _digest(secret: str) -> str:
    return sha256(secret.encode()).hexdigest()
