"""Probes of the web process: no login, and nothing in the answer that must not be known."""

from __future__ import annotations

from functools import cache
from typing import Final

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from dashboard.health.checks import web_probes
from dashboard.health.probes import Probes
from dashboard.health.slis import CATALOG
from dashboard.metrics.exposition import page
from dashboard.metrics.views import token_or_login

__all__ = ["probe", "slis"]

_TEXT: Final = "text/plain; charset=utf-8"


@cache
def _probes() -> Probes:
    return web_probes()


@login_not_required
@require_safe
@never_cache
def probe(request: HttpRequest, name: str, check: str = "") -> HttpResponse:
    """``/livez``, ``/readyz``, ``/healthz``, and one check of them (``/readyz/database``)."""
    path = f"{name}/{check}" if check else name
    excluded = {value for value in request.GET.getlist("exclude") if value}
    answer = _probes().answer(path, "verbose" in request.GET, excluded)
    return HttpResponse(answer.text, status=answer.status, content_type=_TEXT)


@token_or_login
def slis(request: HttpRequest) -> HttpResponse:
    """``/metrics/slis`` of this web process."""
    accept = request.headers.get("Accept", "")
    body, media_type = page(_probes().slis.samples(), accept, catalog=CATALOG)
    return HttpResponse(body, content_type=media_type)
