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

__all__ = ["probe"]

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
