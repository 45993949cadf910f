"""``/metrics`` and ``/configz`` of the site: all loop workers of this machine together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from dashboard.metrics import exposition, resources
from dashboard.metrics.catalog import CATALOG
from dashboard.rest.auth import client_address
from dashboard.rest.models import ApiToken
from dashboard.worker_http.access import Denied, token_of, who_asks
from dashboard.worker_http.client import samples_of_workers
from scheduler_core.metrics import Metric, Samples, add_up

__all__ = ["configz", "metrics", "resource_metrics", "run_configz", "run_metrics"]

View = Callable[..., HttpResponse]


def token_or_login(view: View) -> View:
    """As the reference wants authorisation for its own; a scraper gets 401, not a login page."""

    @login_not_required
    @require_safe
    @never_cache
    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        headers = {"authorization": request.headers.get("Authorization", "")}
        token = token_of(headers)
        if token or not request.user.is_authenticated:
            try:
                who_asks(token, client_address(request), ApiToken.Scope.READ)
            except Denied as error:
                return HttpResponse(
                    f"{error}\n",
                    status=error.status,
                    content_type="text/plain; charset=utf-8",
                    headers=error.headers,
                )
        return view(request, *args, **kwargs)

    return guarded


@token_or_login
def metrics(request: HttpRequest) -> HttpResponse:
    """Every run of this machine, added up as one kube-scheduler with many profiles has them."""
    found = [
        exposition.from_json(samples)
        for worker in samples_of_workers()
        for samples in worker["runs"].values()
    ]
    return _page(request, add_up(found), process=True)


@token_or_login
def run_metrics(request: HttpRequest, pk: str) -> HttpResponse:
    """One run; 404 where no worker of this machine carries it."""
    for worker in samples_of_workers():
        samples = worker["runs"].get(str(int(pk)))
        if samples is not None:
            return _page(request, exposition.from_json(samples))
    raise Http404("No worker of this machine carries this run.")


@token_or_login
def resource_metrics(request: HttpRequest) -> HttpResponse:
    """What the pods ask for."""
    merged: Samples = {}
    for worker in samples_of_workers():
        for name, series in exposition.from_json(worker["resources"]).items():
            merged.setdefault(name, {}).update(series)
    return _page(request, merged, catalog=resources.CATALOG)


@token_or_login
def configz(request: HttpRequest) -> HttpResponse:
    """The configuration of every run of this machine, completed and without secrets."""
    return JsonResponse({"runs": _configurations()})


@token_or_login
def run_configz(request: HttpRequest, pk: str) -> HttpResponse:
    """As kube-scheduler answers ``/configz``."""
    for entry in _configurations():
        if entry["run"] == int(pk):
            return JsonResponse({"componentconfig": entry["componentconfig"]})
    raise Http404("No worker of this machine carries this run.")


def _configurations() -> list[dict[str, Any]]:
    return [entry for worker in samples_of_workers() for entry in worker["configz"]]


def _page(
    request: HttpRequest,
    samples: Samples,
    *,
    process: bool = False,
    catalog: Mapping[str, Metric] = CATALOG,
) -> HttpResponse:
    accept = request.headers.get("Accept", "")
    body, media_type = exposition.page(samples, accept, process=process, catalog=catalog)
    return HttpResponse(body, content_type=media_type)
