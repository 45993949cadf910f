"""API tokens on the admin site: everybody's, to revoke; a superuser makes them for others."""

from __future__ import annotations

from typing import Any, Final

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.shortcuts import render
from django.utils import timezone
from django.utils.cache import add_never_cache_headers

from dashboard.rest import tokens
from dashboard.rest.forms import DEFAULT_DAYS
from dashboard.rest.models import ApiToken

_SHOWN: Final = (
    "user", "name", "prefix", "scopes", "created_at", "created_by", "expires_at",
    "last_used_at", "revoked_at", "revoked_by",
)  # fmt: skip


class NewTokenForm(forms.ModelForm):
    """A token for somebody: its text is shown once, after saving."""

    scopes = forms.MultipleChoiceField(
        choices=ApiToken.Scope.choices, widget=forms.CheckboxSelectMultiple
    )
    days = forms.TypedChoiceField(
        label="Ends after",
        coerce=int,
        initial=DEFAULT_DAYS,
        choices=[(str(days), f"{days} days") for days in tokens.LIFETIMES_DAYS],
    )

    class Meta:
        model = ApiToken
        fields = ("user", "name")

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or self.cleaned_data
        if "user" in data and "scopes" in data:
            missing = tokens.missing_permission(data["user"], data["scopes"])
            if missing:
                self.add_error("scopes", missing)
        return data


@admin.register(ApiToken)
class ApiTokenAdmin(admin.ModelAdmin):
    """Tokens are never changed: they are made and revoked."""

    list_display = (
        "prefix", "name", "user", "scopes", "state", "expires_at", "last_used_at", "created_by",
    )  # fmt: skip
    list_filter = ("user",)
    search_fields = ("prefix", "name", "user__username")
    actions = ("revoke",)
    form = NewTokenForm

    @admin.display(description="State")
    def state(self, token: ApiToken) -> str:
        return token.state(timezone.now())

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Whoever makes a token for somebody can act as them."""
        return bool(request.user.is_active and request.user.is_superuser)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("dashboard.delete_apitoken")

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        if obj is None:
            return ("user", "name", "scopes", "days")
        return _SHOWN

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        data = form.cleaned_data
        issued = tokens.issue(
            data["user"],
            name=data["name"],
            scopes=data["scopes"],
            days=data["days"],
            by=request.user,
        )
        obj.pk = issued.token.pk
        obj.issued = issued

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """``tokens.issue`` has written everything."""

    def response_add(self, request: HttpRequest, obj: Any, post_url_continue: Any = None) -> Any:
        """The token's text: in this answer and nowhere else."""
        context = {**self.admin_site.each_context(request), "issued": obj.issued}
        response = render(request, "admin/dashboard/apitoken/issued.html", context)
        add_never_cache_headers(response)
        return response

    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        """The audit row says it; Django's own log has nothing to add."""
        return None

    @admin.action(description="Revoke the chosen tokens", permissions=["revoke"])
    def revoke(self, request: HttpRequest, chosen: QuerySet[ApiToken]) -> None:
        ended = sum(tokens.revoke(token, request.user) for token in chosen.select_related("user"))
        self.message_user(request, f"Revoked: {ended}.", messages.SUCCESS)
