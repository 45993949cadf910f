"""Errors as problem details (RFC 9457), ``application/problem+json``.

``type`` is ``about:blank``: the HTTP status says what kind of problem it is, ``code`` says it more
exactly for a program, ``detail`` for a person.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from django.http import HttpRequest, HttpResponse, JsonResponse

MEDIA_TYPE: Final = "application/problem+json"
#: Paths below which every error is one.
PREFIXES: Final = ("/api/v1/", "/api/schema/")


class Problem(Exception):
    """An answer that is not a success."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        headers: Mapping[str, str] | None = None,
        **more: Any,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.headers = dict(headers or {})
        self.body = {
            "type": "about:blank",
            "title": HTTPStatus(status).phrase,
            "status": status,
            "code": code,
            "detail": detail,
            **more,
        }


def respond(problem: Problem) -> HttpResponse:
    """The problem as an answer."""
    return JsonResponse(
        problem.body, status=problem.status, content_type=MEDIA_TYPE, headers=problem.headers
    )


def wanted(request: HttpRequest) -> bool:
    """Errors of this path are problem details."""
    return request.path.startswith(PREFIXES)
