"""The form of a way to a cluster."""

from __future__ import annotations

from typing import Any, Final

from django import forms

from dashboard.clusters.models import ClusterConnection
from dashboard.models import SchedulerRun
from scheduler_core.kube.access import Access, InCluster, Kubeconfig, Token

_Method = ClusterConnection.Method
_Mode = SchedulerRun.Mode
#: What a page offers; a file of the worker's machine may run programs, and is for its owner.
METHODS: Final = [
    (m.value, m.label) for m in (_Method.KUBECONFIG, _Method.TOKEN, _Method.IN_CLUSTER)
]
LONGEST_KUBECONFIG: Final = 200_000


class ConnectionForm(forms.Form):
    """Kubeconfig, or address and token, or the service account. Secrets are never shown again."""

    method = forms.ChoiceField(choices=METHODS, initial=_Method.KUBECONFIG)
    kubeconfig = forms.CharField(required=False, max_length=LONGEST_KUBECONFIG, strip=False)
    context = forms.CharField(required=False, max_length=253)
    server = forms.CharField(required=False, max_length=500)
    token = forms.CharField(required=False, max_length=20_000)
    ca = forms.CharField(required=False, max_length=LONGEST_KUBECONFIG)
    insecure = forms.BooleanField(required=False)

    def clean(self) -> dict[str, Any]:
        found = super().clean() or self.cleaned_data
        method = found.get("method")
        if method == _Method.KUBECONFIG and not str(found.get("kubeconfig", "")).strip():
            self.add_error("kubeconfig", "Paste a kubeconfig.")
        if method == _Method.TOKEN:
            for field, text in (("server", "Give its address."), ("token", "Give a token.")):
                if not found.get(field) and field not in self.errors:
                    self.add_error(field, text)
        return found

    def access(self) -> Access:
        """What was given; of a valid form."""
        found = self.cleaned_data
        if found["method"] == _Method.IN_CLUSTER:
            return InCluster()
        if found["method"] == _Method.TOKEN:
            return Token(found["server"], found["token"], found["ca"], found["insecure"])
        return Kubeconfig(found["kubeconfig"], found["context"])


class RunForm(forms.Form):
    """One more run on a cluster."""

    mode = forms.ChoiceField(
        choices=[(m.value, m.label) for m in (_Mode.OBSERVE, _Mode.SCHEDULE)],
        initial=_Mode.OBSERVE,
    )
    name = forms.CharField(max_length=63, required=False)


class RemovalForm(forms.Form):
    """Whoever removes a cluster types its name, so that it is this one that goes."""

    name = forms.CharField(max_length=63, required=False)

    def __init__(self, *args: Any, cluster: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._cluster = cluster

    def clean_name(self) -> str:
        if self.cleaned_data["name"] != self._cluster:
            raise forms.ValidationError(f"Type {self._cluster} to remove it.")
        return self._cluster


class ClusterForm(ConnectionForm):
    """A new cluster."""

    mode = forms.ChoiceField(
        choices=[(m.value, m.label) for m in (_Mode.OBSERVE, _Mode.SCHEDULE)],
        initial=_Mode.OBSERVE,
        required=False,
    )
    name = forms.CharField(
        max_length=63, error_messages={"required": "Give it a name by which people know it."}
    )
