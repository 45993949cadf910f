"""Who calls: a token in the Authorization header, or the session of a logged-in browser."""

from __future__ import annotations

from typing import Any, Final

from django.conf import settings
from django.http import HttpRequest
from ninja.security import APIKeyCookie, HttpBearer
from ninja.utils import check_csrf

from dashboard import audit
from dashboard.rest import tokens
from dashboard.rest.models import ApiToken
from dashboard.rest.problems import Problem

_CHALLENGE: Final = {"WWW-Authenticate": 'Bearer realm="KubeSched"'}


class TokenAuth(HttpBearer):
    """``Authorization: Bearer kst_...``. Needs no CSRF token: no browser sends it by itself."""

    def __init__(self, scope: ApiToken.Scope) -> None:
        super().__init__()
        self._scope = scope

    def authenticate(self, request: HttpRequest, token: str) -> Any:
        try:
            found = tokens.authenticate(token.strip(), client_address(request))
        except tokens.Refused as error:
            raise _refused(error) from None
        if self._scope not in found.scopes:
            raise Problem(
                403,
                "missing_scope",
                f'This API token does not have the scope "{self._scope.value}".',
                scopes=found.scopes,
            )
        audit.acts_by_token(found.user, found.prefix)
        request.user = found.user
        return found


class SessionAuth(APIKeyCookie):
    """The cookie of a logged-in browser, with a CSRF token for everything that changes."""

    def __init__(self) -> None:
        self.param_name = settings.SESSION_COOKIE_NAME
        super().__init__()

    def __call__(self, request: HttpRequest) -> Any:
        if request.headers.get("Authorization") or not request.user.is_authenticated:
            return None
        if check_csrf(request):
            raise Problem(
                403,
                "csrf",
                "The CSRF token is missing or stale. Send it in the header X-CSRFToken,"
                " or use an API token.",
            )
        return request.user

    def authenticate(self, request: HttpRequest, key: str | None) -> Any:
        return request.user if request.user.is_authenticated else None


def not_authenticated() -> Problem:
    """401 for a call without a token and without a session."""
    text = "Send an API token in the header Authorization: Bearer, or log in."
    return Problem(401, "not_authenticated", text, headers=_CHALLENGE)


def client_address(request: HttpRequest) -> str:
    """Who is at the other end: behind a trusted proxy, whom that proxy saw."""
    forwarded = request.headers.get("X-Forwarded-For", "")
    if getattr(settings, "SECURE_PROXY_SSL_HEADER", None) and forwarded:
        return forwarded.rpartition(",")[2].strip()
    return str(request.META.get("REMOTE_ADDR") or "")


def _refused(error: tokens.Refused) -> Problem:
    if error.retry_after:
        headers = {"Retry-After": str(error.retry_after)}
        return Problem(429, "too_many_failures", str(error), headers=headers)
    return Problem(401, "invalid_token", str(error), headers=_CHALLENGE)
