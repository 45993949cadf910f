"""Tokens and kubeconfigs of sandboxes, as pages and hosts use them."""

from __future__ import annotations

import secrets
from typing import Any, Final

from django.db import transaction
from django.utils import timezone

from dashboard import audit, sealing
from dashboard.models import AuditEntry, SchedulerRun
from dashboard.sandbox_api.kubeconfig import kubeconfig
from dashboard.sandbox_api.models import SandboxAccess

__all__ = ["NotServed", "download", "ensure", "new_token", "token_of"]

_PURPOSE: Final = b"kubesched.sandbox.token"
_TOKEN_BYTES: Final = 32


class NotServed(Exception):
    """There is no kubeconfig to give; the text says why."""


def ensure(sandbox_id: int) -> SandboxAccess:
    """The row of a sandbox, with a token that can be read; made if it is not there."""
    row = SandboxAccess.objects.filter(pk=sandbox_id).first()
    if row is None:
        made = {"token": _fresh(), "token_made_at": timezone.now()}
        row, _ = SandboxAccess.objects.get_or_create(sandbox_id=sandbox_id, defaults=made)
    if token_of(row) is None:
        # SECRET_KEY has changed: who had the token loses it, as with every other secret.
        row.token, row.token_made_at = _fresh(), timezone.now()
        row.save(update_fields=["token", "token_made_at"])
    return row


def token_of(row: SandboxAccess) -> str | None:
    """The token; None where SECRET_KEY has changed since it was made."""
    try:
        return sealing.unseal(row.token, _PURPOSE)
    except sealing.Unreadable:
        return None


def _fresh() -> str:
    return sealing.seal(secrets.token_urlsafe(_TOKEN_BYTES), _PURPOSE)


@transaction.atomic
def download(user: Any, run: SchedulerRun) -> str:
    """The kubeconfig of a run's sandbox; that it was given away is written down.

    Raises:
        NotServed: the sandbox does not run, or its token cannot be read.
    """
    row = SandboxAccess.objects.filter(pk=run.cluster_id).first()
    token = None if row is None else token_of(row)
    if row is None or not row.url:
        raise NotServed("The sandbox is not served now. Start it, then try again.")
    if token is None:
        raise NotServed("SECRET_KEY has changed since the token was made. Make a new token.")
    text = kubeconfig(row.url, token, run.cluster.name, row.ca_pem.encode() or None)
    _record(user, AuditEntry.Verb.DOWNLOAD_KUBECONFIG, run)
    return text


@transaction.atomic
def new_token(user: Any, run: SchedulerRun) -> None:
    """From now on (within seconds) the old token opens nothing more."""
    row = ensure(run.cluster_id)
    row.token, row.token_made_at = _fresh(), timezone.now()
    row.save(update_fields=["token", "token_made_at"])
    _record(user, AuditEntry.Verb.NEW_SANDBOX_TOKEN, run)


def _record(user: Any, verb: AuditEntry.Verb, run: SchedulerRun) -> None:
    audit.write(user, verb, f"sandbox {run.cluster.name}", run=run)
