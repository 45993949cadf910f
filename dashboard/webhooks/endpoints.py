"""What people do to webhook endpoints; each with its audit row in the same transaction.

A URL may hold a secret of the receiver in its path, so audit rows and logs name its host alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import urlsplit

from django.db import transaction
from django.utils import timezone

from dashboard import audit
from dashboard.models import AuditEntry
from dashboard.webhooks import outbox, payloads, secrets
from dashboard.webhooks.models import WebhookDelivery, WebhookEndpoint, WebhookGang

PERMISSION: Final = "dashboard.manage_webhooks"
#: How long the secret before the newest one signs as well.
OLD_SECRET_COUNTS: Final = timedelta(hours=24)
_COLUMNS: Final = ("name", "url", "events", "namespaces", "only_approval")


def create(user: Any, fields: Mapping[str, Any]) -> tuple[WebhookEndpoint, str]:
    """A new endpoint, and its secret, which is shown now and never again."""
    secret = secrets.new_secret()
    with transaction.atomic():
        _begin_to_tell()
        endpoint = WebhookEndpoint.objects.create(
            **{name: fields[name] for name in _COLUMNS},
            secret=secrets.seal(secret),
            created_at=timezone.now(),
            created_by=user,
        )
        _audit(user, AuditEntry.Verb.CREATE_WEBHOOK, endpoint, _public(fields))
    return endpoint, secret


def change(user: Any, endpoint: WebhookEndpoint, fields: Mapping[str, Any]) -> None:
    """Other address, events or filters; for what happens from now on."""
    with transaction.atomic():
        for name in _COLUMNS:
            setattr(endpoint, name, fields[name])
        endpoint.save(update_fields=_COLUMNS)
        _audit(user, AuditEntry.Verb.CHANGE_WEBHOOK, endpoint, _public(fields))


def switch(user: Any, endpoint: WebhookEndpoint, active: bool) -> None:
    """Begin or stop to send. What was under way waits, until it is too old."""
    with transaction.atomic():
        if active:
            _begin_to_tell()
        WebhookEndpoint.objects.filter(pk=endpoint.pk).update(
            active=active, stopped_because="", failures=0, retry_at=None
        )
        _audit(user, AuditEntry.Verb.CHANGE_WEBHOOK, endpoint, {"active": active})


def renew_secret(user: Any, endpoint: WebhookEndpoint) -> str:
    """A new secret, shown now and never again. For a day messages are signed with both."""
    secret = secrets.new_secret()
    until = timezone.now() + OLD_SECRET_COUNTS
    with transaction.atomic():
        WebhookEndpoint.objects.filter(pk=endpoint.pk).update(
            secret=secrets.seal(secret), old_secret=_readable(endpoint), old_secret_until=until
        )
        _audit(user, AuditEntry.Verb.CHANGE_WEBHOOK, endpoint, {"secret": "new"})
    return secret


def delete(user: Any, endpoint: WebhookEndpoint) -> None:
    """Gone, with all its deliveries."""
    with transaction.atomic():
        _audit(user, AuditEntry.Verb.DELETE_WEBHOOK, endpoint, {})
        endpoint.delete()


def test(user: Any, endpoint: WebhookEndpoint) -> WebhookDelivery:
    """Have a message sent that says that it is a test."""
    now = timezone.now()
    with transaction.atomic():
        delivery = outbox.send_to(endpoint, payloads.TEST, payloads.test_body(now), now)
        _wake(endpoint)
        _audit(user, AuditEntry.Verb.RESEND_WEBHOOK, endpoint, {"message": payloads.TEST})
    return delivery


def resend(user: Any, delivery: WebhookDelivery) -> bool:
    """Send a message again that was given up or delivered: the same text and webhook-id, and as
    much time as a new one. False: it is on its way anyway."""
    now = timezone.now()
    with transaction.atomic():
        changed = (
            WebhookDelivery.objects.filter(pk=delivery.pk)
            .exclude(state=WebhookDelivery.State.PENDING)
            .update(
                state=WebhookDelivery.State.PENDING,
                attempts=0,
                next_attempt_at=now,
                give_up_at=now + outbox.max_age(),
            )
        )
        if changed:
            _wake(delivery.endpoint)
            detail = {"message": delivery.message.uid}
            _audit(user, AuditEntry.Verb.RESEND_WEBHOOK, delivery.endpoint, detail)
    return bool(changed)


def host(endpoint: WebhookEndpoint) -> str:
    """Whom an endpoint's messages go to, without what its URL may hold of secrets."""
    parts = urlsplit(endpoint.url)
    return f"{parts.scheme}://{parts.netloc}"


def _wake(endpoint: WebhookEndpoint) -> None:
    """A person wants it tried now, not after the rest that failures have earned."""
    WebhookEndpoint.objects.filter(pk=endpoint.pk).update(retry_at=None)


def _readable(endpoint: WebhookEndpoint) -> str:
    """The secret so far, or "" where it cannot be read any more and so cannot sign."""
    try:
        secrets.unseal(endpoint.secret)
    except secrets.Unreadable:
        return ""
    return endpoint.secret


def _begin_to_tell() -> None:
    """While nobody is told, ``outbox`` does not look: what it knows of waits is out of date."""
    if WebhookEndpoint.objects.filter(active=True).exists():
        return
    WebhookGang.objects.all().delete()
    outbox.know_what_waits()


def _public(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: fields[name] for name in _COLUMNS if name not in {"name", "url"}}


def _audit(
    user: Any, verb: AuditEntry.Verb, endpoint: WebhookEndpoint, detail: Mapping[str, Any]
) -> None:
    audit.write(user, verb, f"{endpoint.name} ({host(endpoint)})", detail=detail)


def rest_until(endpoint: WebhookEndpoint, now: datetime) -> datetime | None:
    """Until when nothing is sent, because the receiver has failed so often."""
    if not endpoint.active or endpoint.retry_at is None or endpoint.retry_at <= now:
        return None
    return endpoint.retry_at
