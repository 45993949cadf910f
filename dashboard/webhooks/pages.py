"""The pages of webhooks, for people with the permission to manage them."""

from __future__ import annotations

from typing import Any, Final

from django.contrib import messages
from django.contrib.auth.decorators import login_required, permission_required
from django.core.paginator import Paginator
from django.db.models import Count, Max, Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from dashboard.webhooks import endpoints
from dashboard.webhooks.forms import EndpointForm, filled
from dashboard.webhooks.models import WebhookDelivery, WebhookEndpoint

PAGE_SIZE: Final = 25
_State = WebhookDelivery.State
_may_manage = permission_required(endpoints.PERMISSION, raise_exception=True)


@never_cache
@login_required
@_may_manage
@require_http_methods(["GET", "HEAD", "POST"])
def webhooks(request: HttpRequest) -> HttpResponse:
    """All endpoints, and the form of a new one. Its secret is in the answer to the form alone."""
    form = EndpointForm(request.POST or None)
    made: dict[str, Any] = {}
    if request.method == "POST" and form.is_valid():
        endpoint, secret = endpoints.create(request.user, form.cleaned_data)
        made = {"endpoint": endpoint, "secret": secret}
        form = EndpointForm()
    context = {
        "page": "webhooks",
        "form": form,
        "events": WebhookEndpoint.Event.choices,
        "chosen": form.chosen_events(),
        "checked": bool(form["only_approval"].value()),
        "made": made,
        "rows": _rows(),
    }
    return render(request, "webhooks/list.html", context, status=400 if form.errors else 200)


@never_cache
@login_required
@_may_manage
@require_http_methods(["GET", "HEAD", "POST"])
def webhook(request: HttpRequest, pk: int) -> HttpResponse:
    """One endpoint: its settings, and what was sent to it."""
    endpoint = get_object_or_404(WebhookEndpoint.objects.select_related("created_by"), pk=pk)
    form = EndpointForm(request.POST or None, initial=filled(endpoint))
    if request.method == "POST" and form.is_valid():
        endpoints.change(request.user, endpoint, form.cleaned_data)
        messages.success(request, "Changed; it holds for what happens from now on.")
        return redirect("webhook", pk)
    return _detail(request, endpoint, form)


@never_cache
@login_required
@_may_manage
@require_POST
def new_secret(request: HttpRequest, pk: int) -> HttpResponse:
    """A new secret, shown in this answer alone."""
    endpoint = get_object_or_404(WebhookEndpoint, pk=pk)
    secret = endpoints.renew_secret(request.user, endpoint)
    endpoint.refresh_from_db()
    return _detail(request, endpoint, EndpointForm(initial=filled(endpoint)), secret)


@login_required
@_may_manage
@require_POST
def act(request: HttpRequest, pk: int, action: str) -> HttpResponse:
    """Switch an endpoint on or off, try it out, delete it."""
    endpoint = get_object_or_404(WebhookEndpoint, pk=pk)
    if action == "delete":
        endpoints.delete(request.user, endpoint)
        messages.success(request, f"{endpoint.name} is deleted.")
        return redirect("webhooks")
    if action == "test":
        endpoints.test(request.user, endpoint)
        messages.success(request, "A test message is on its way; reload to see what came of it.")
    else:
        endpoints.switch(request.user, endpoint, action == "start")
        done = "switched on" if action == "start" else "switched off"
        messages.success(request, f"{endpoint.name} is {done}.")
    return redirect("webhook", pk)


@login_required
@_may_manage
@require_POST
def resend(request: HttpRequest, pk: int, delivery: int) -> HttpResponse:
    """Send one message again."""
    rows = WebhookDelivery.objects.select_related("message", "endpoint")
    found = get_object_or_404(rows, pk=delivery, endpoint=pk)
    if endpoints.resend(request.user, found):
        messages.success(request, f"{found.message.uid} is sent again.")
    else:
        messages.info(request, f"{found.message.uid} is on its way already.")
    return redirect("webhook", pk)


def _rows() -> list[dict[str, Any]]:
    now = timezone.now()
    counted = WebhookEndpoint.objects.annotate(
        pending=Count("deliveries", filter=Q(deliveries__state=_State.PENDING)),
        dead=Count("deliveries", filter=Q(deliveries__state=_State.DEAD)),
        last=Max("deliveries__delivered_at"),
    )
    return [
        {"endpoint": row, "host": endpoints.host(row), "rest": endpoints.rest_until(row, now)}
        for row in counted.order_by("name", "pk")
    ]


def _detail(
    request: HttpRequest, endpoint: WebhookEndpoint, form: EndpointForm, secret: str = ""
) -> HttpResponse:
    state = request.GET.get("state", "")
    rows = endpoint.deliveries.select_related("message").order_by("-pk")
    if state in _State.values:
        rows = rows.filter(state=state)
    listed = Paginator(rows, PAGE_SIZE).get_page(request.GET.get("page"))
    context = {
        "page": "webhooks",
        "endpoint": endpoint,
        "form": form,
        "events": WebhookEndpoint.Event.choices,
        "chosen": form.chosen_events(),
        "checked": bool(form["only_approval"].value()),
        "secret": secret,
        "rest": endpoints.rest_until(endpoint, timezone.now()),
        "deliveries": listed,
        "states": _State.choices,
        "state": state,
    }
    return render(request, "webhooks/detail.html", context, status=400 if form.errors else 200)
