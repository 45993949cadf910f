"""The form of a webhook endpoint."""

from __future__ import annotations

import re
from typing import Any, Final

from django import forms

from dashboard.webhooks import guard
from dashboard.webhooks.models import WebhookEndpoint

_NAMESPACE: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
MOST_NAMESPACES: Final = 100


class EndpointForm(forms.Form):
    """Where to, what, and of which namespaces."""

    name = forms.CharField(
        max_length=100, error_messages={"required": "Give it a name by which people know it."}
    )
    url = forms.CharField(
        max_length=guard.MAX_URL, error_messages={"required": "Where should messages go?"}
    )
    events = forms.MultipleChoiceField(
        choices=WebhookEndpoint.Event.choices,
        initial=WebhookEndpoint.Event.values,
        error_messages={"required": "Choose at least one event."},
    )
    only_approval = forms.BooleanField(required=False, initial=True)
    namespaces = forms.CharField(required=False, max_length=6400)

    def clean_url(self) -> str:
        """The address's form, and where its host's name leads to at this moment; it is looked at
        again whenever something is sent."""
        url = str(self.cleaned_data["url"])
        try:
            guard.target(url)
        except guard.Forbidden as error:
            raise forms.ValidationError(str(error)) from None
        except (OSError, UnicodeError):
            pass  # a name that is not known yet: sending says so
        return url

    def clean_namespaces(self) -> list[str]:
        names = list(dict.fromkeys(re.split(r"[\s,]+", self.cleaned_data["namespaces"].strip())))
        names = [name for name in names if name]
        wrong = [name for name in names if not _NAMESPACE.fullmatch(name)]
        if wrong:
            raise forms.ValidationError(f"{wrong[0]} is not a namespace's name.")
        if len(names) > MOST_NAMESPACES:
            raise forms.ValidationError(f"At most {MOST_NAMESPACES} namespaces.")
        return names

    def chosen_events(self) -> list[str]:
        return [str(event) for event in self["events"].value() or ()]


def filled(endpoint: WebhookEndpoint) -> dict[str, Any]:
    """An endpoint as the form shows it."""
    return {
        "name": endpoint.name,
        "url": endpoint.url,
        "events": endpoint.events,
        "only_approval": endpoint.only_approval,
        "namespaces": ", ".join(endpoint.namespaces),
    }
