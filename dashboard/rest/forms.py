"""The form of a new token."""

from __future__ import annotations

from typing import Any, Final

from django import forms

from dashboard.rest.models import ApiToken
from dashboard.rest.tokens import LIFETIMES_DAYS

_LIFETIMES: Final = [(str(days), f"{days} days") for days in LIFETIMES_DAYS]
DEFAULT_DAYS: Final = "90"


class TokenForm(forms.Form):
    """Name, scopes and lifetime of a token."""

    name = forms.CharField(
        max_length=100, error_messages={"required": "Say what the token is for."}
    )
    scopes = forms.MultipleChoiceField(
        choices=ApiToken.Scope.choices,
        initial=[ApiToken.Scope.READ],
        error_messages={"required": "Choose at least one thing that it may do."},
    )
    days = forms.TypedChoiceField(choices=_LIFETIMES, coerce=int, initial=DEFAULT_DAYS)

    def chosen(self) -> dict[str, Any]:
        """What the template marks: scopes and days, as text."""
        return {
            "scopes": [str(scope) for scope in self["scopes"].value() or ()],
            "days": str(self["days"].value()),
        }
