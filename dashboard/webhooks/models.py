"""The rows of webhooks: who is told, what there is to tell, and how far the telling has come."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models


class WebhookEndpoint(models.Model):
    """A server that is told.

    ``secret`` and ``old_secret`` are encrypted (``dashboard.webhooks.secrets``); the old one signs
    as well until ``old_secret_until``. ``retry_at`` and ``failures`` belong to the endpoint as a
    whole: a server that is down is not asked once per message. ``claimed_until`` says that a worker
    is sending to it.
    """

    class Event(models.TextChoices):
        WAITING = "gang.waiting", "A gang starts to wait"
        DECIDED = "gang.decided", "A gang is decided"
        EXPIRED = "gang.expired", "A gang's time has run out"

    name = models.CharField(max_length=100)
    url = models.CharField(max_length=2000)
    secret = models.TextField()
    old_secret = models.TextField(blank=True)
    old_secret_until = models.DateTimeField(null=True, blank=True)
    events = models.JSONField(default=list)
    namespaces = models.JSONField(default=list, blank=True, help_text="Empty: all of them.")
    only_approval = models.BooleanField(
        default=True, help_text="Only gangs in which a pod needs a person."
    )
    active = models.BooleanField(default=True)
    stopped_because = models.TextField(blank=True)
    created_at = models.DateTimeField()
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    failures = models.IntegerField(default=0)
    retry_at = models.DateTimeField(null=True, blank=True)
    claimed_until = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering: ClassVar = ["name", "id"]
        permissions: ClassVar = [("manage_webhooks", "Can see, make, change and delete webhooks")]

    def __str__(self) -> str:
        return self.name


class WebhookGang(models.Model):
    """One wait of one gang, as far as it has been told; gone when the wait has ended.

    ``key`` is "gang:" and the uid of the PodGroup, its "namespace/name" where the uid is not known,
    or "pod:" and the uid of a pod without one. ``first_wait`` is the lowest ``WaitingPod.id`` of
    this wait of the gang. ``outcome`` is "" until its quorum waits.
    """

    run = models.ForeignKey(
        "dashboard.SchedulerRun", on_delete=models.CASCADE, related_name="webhook_gangs"
    )
    key = models.CharField(max_length=507)
    first_wait = models.BigIntegerField()
    told_approval = models.BooleanField(default=False, help_text="Told that it needs a person.")
    outcome = models.CharField(max_length=16, blank=True, help_text="The last one told.")
    told = models.IntegerField(default=0, help_text="How many messages there were.")

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["run", "key"], name="webhookgang_one")
        ]

    def __str__(self) -> str:
        return f"{self.key} from wait {self.first_wait}"


class WebhookMessage(models.Model):
    """One event, with the very text that is signed and sent."""

    uid = models.CharField(max_length=36, unique=True, help_text="The header webhook-id.")
    type = models.CharField(max_length=32)
    run = models.ForeignKey(
        "dashboard.SchedulerRun", null=True, on_delete=models.CASCADE, related_name="+"
    )
    gang = models.CharField(max_length=507, blank=True)
    body = models.TextField()
    created_at = models.DateTimeField(db_index=True)

    class Meta:
        ordering: ClassVar = ["id"]

    def __str__(self) -> str:
        return f"{self.uid} {self.type} {self.gang}"


class WebhookDelivery(models.Model):
    """A message on its way to one endpoint. ``order_key`` names what keeps its order there."""

    class State(models.TextChoices):
        PENDING = "pending", "On its way"
        DELIVERED = "delivered", "Delivered"
        DEAD = "dead", "Given up"

    message = models.ForeignKey(WebhookMessage, on_delete=models.CASCADE, related_name="deliveries")
    endpoint = models.ForeignKey(
        WebhookEndpoint, on_delete=models.CASCADE, related_name="deliveries"
    )
    order_key = models.CharField(max_length=540)
    state = models.CharField(max_length=16, choices=State.choices, default=State.PENDING)
    attempts = models.IntegerField(default=0)
    next_attempt_at = models.DateTimeField()
    give_up_at = models.DateTimeField()
    last_attempt_at = models.DateTimeField(null=True, blank=True)
    delivered_at = models.DateTimeField(null=True, blank=True)
    last_status = models.IntegerField(null=True, blank=True)
    last_error = models.TextField(blank=True)

    class Meta:
        ordering: ClassVar = ["id"]
        verbose_name_plural = "webhook deliveries"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["message", "endpoint"], name="webhookdelivery_once")
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["endpoint", "state", "next_attempt_at"], name="webhookdelivery_due"
            ),
            models.Index(
                fields=["endpoint", "state", "order_key", "id"], name="webhookdelivery_order"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.message_id} to {self.endpoint_id}: {self.state}"
