"""The page of a person's own API tokens."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from dashboard.rest import tokens
from dashboard.rest.forms import TokenForm
from dashboard.rest.models import ApiToken


@never_cache
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def account_tokens(request: HttpRequest) -> HttpResponse:
    """A person's tokens, and the form of a new one. A new token's text is in the answer to the form
    and nowhere else."""
    form = TokenForm(request.POST or None)
    issued: tokens.Issued | None = None
    if request.method == "POST" and form.is_valid():
        try:
            issued = tokens.issue(request.user, by=request.user, **form.cleaned_data)
            form = TokenForm()
        except tokens.NotPermitted as error:
            form.add_error("scopes", str(error))
        except tokens.TooManyTokens as error:
            form.add_error(None, str(error))
    return _page(request, form, issued)


@login_required
@require_POST
def revoke_token(request: HttpRequest, pk: int) -> HttpResponse:
    """End one of one's own tokens."""
    token = get_object_or_404(ApiToken.objects.select_related("user"), pk=pk, user=request.user.pk)
    if tokens.revoke(token, request.user):
        messages.success(request, f"The token {token.name} is revoked.")
    else:
        messages.info(request, f"The token {token.name} was revoked before.")
    return redirect("account-tokens")


def _page(request: HttpRequest, form: TokenForm, issued: tokens.Issued | None) -> HttpResponse:
    now = timezone.now()
    mine = ApiToken.objects.filter(user=request.user.pk).select_related("created_by")
    rows: list[dict[str, Any]] = [
        {"token": token, "state": token.state(now), "scopes": _scopes(token)} for token in mine
    ]
    rows.sort(key=lambda row: row["state"] != "active")
    context = {
        "page": "account",
        "form": form,
        "chosen": form.chosen(),
        "scopes": [
            (scope, label)
            for scope, label in ApiToken.Scope.choices
            if not tokens.missing_permission(request.user, [scope])
        ],
        "days": form.fields["days"].choices,  # type: ignore[attr-defined]
        "issued": issued,
        "rows": rows,
    }
    status = 400 if form.errors else 200
    return render(request, "account/tokens.html", context, status=status)


def _scopes(token: ApiToken) -> str:
    words = dict(ApiToken.Scope.choices)
    return ", ".join(words[scope].lower() for scope in token.scopes if scope in words)
