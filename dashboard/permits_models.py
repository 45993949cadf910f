"""Rows of people's decisions. What counts of them is denormalised on ``WaitingPod``."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q


class GangApproval(models.Model):
    """One person's approval of a whole gang: it covers members that begin to wait later.

    It stands until the gang is let go (``complete``), its wait ends otherwise or its last member is
    gone (``ended``), or the person takes it back (``revoked``). ``bases``: under which terms it was
    given (``permits_gangs.basis``); members that wait under others are not covered.
    """

    class State(models.TextChoices):
        STANDING = "standing", "Standing"
        COMPLETE = "complete", "Complete"
        ENDED = "ended", "Ended"
        REVOKED = "revoked", "Revoked"

    run = models.ForeignKey(
        "dashboard.SchedulerRun", on_delete=models.CASCADE, related_name="gang_approvals"
    )
    pod_group = models.CharField(max_length=507)
    gang_uid = models.CharField(max_length=64, blank=True)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    username = models.CharField(max_length=150)
    at = models.FloatField()
    comment = models.TextField(blank=True)
    bases = models.JSONField(default=list)
    state = models.CharField(max_length=16, choices=State.choices, default=State.STANDING)
    ended_at = models.FloatField(null=True)

    class Meta:
        app_label = "dashboard"
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["run", "pod_group", "gang_uid", "username"],
                condition=Q(state="standing"),
                name="gangapproval_one_standing",
            )
        ]
        indexes: ClassVar = [
            models.Index(fields=["run", "state", "pod_group"], name="gangapproval_standing")
        ]

    def __str__(self) -> str:
        return f"{self.username} approved {self.pod_group}: {self.state}"


class Rest(models.Model):
    """``records.Rest``: what was turned down does not ask again ``until`` then (scheduler's clock),
    unless it changes. The recorder writes it with the end of the wait; the run's next scheduler
    reads it."""

    run = models.ForeignKey(
        "dashboard.SchedulerRun", on_delete=models.CASCADE, related_name="rests"
    )
    kind = models.CharField(max_length=64)
    key = models.CharField(max_length=507)
    text = models.TextField(blank=True)
    until = models.FloatField()
    group = models.CharField(max_length=64, blank=True)
    members = models.JSONField(default=dict)

    class Meta:
        app_label = "dashboard"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["run", "kind", "key"], name="rest_of_one")
        ]
        indexes: ClassVar = [models.Index(fields=["run", "until"], name="rest_until")]

    def __str__(self) -> str:
        return f"{self.kind} {self.key}: {self.text}"


class Decision(models.Model):
    """One word of one person on one wait: what the scheduler reads, in the order of ``id``.

    Rows of a run are made under the run's lock, so that their ids rise in the order in which they
    are committed. They are never changed but for what the scheduler made of them (``applied`` None:
    it has not said yet). ``gang``: it was said of the whole gang.
    """

    class Verdict(models.TextChoices):
        APPROVE = "approve", "Approve"
        DENY = "deny", "Deny"
        REVOKE = "revoke", "Take back"

    run = models.ForeignKey(
        "dashboard.SchedulerRun", on_delete=models.CASCADE, related_name="decisions"
    )
    waiting_pod = models.ForeignKey(
        "dashboard.WaitingPod", on_delete=models.CASCADE, related_name="decisions"
    )
    verdict = models.CharField(max_length=16, choices=Verdict.choices)
    username = models.CharField(max_length=150)
    at = models.FloatField()
    comment = models.TextField(blank=True)
    gang = models.BooleanField(default=False)
    audit = models.ForeignKey(
        "dashboard.AuditEntry",
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="decisions",
    )
    applied = models.BooleanField(null=True)
    applied_at = models.FloatField(null=True)
    message = models.TextField(blank=True)

    class Meta:
        app_label = "dashboard"
        ordering: ClassVar = ["id"]
        indexes: ClassVar = [models.Index(fields=["run", "id"], name="decision_run")]

    def __str__(self) -> str:
        return f"{self.username}: {self.verdict} wait {self.waiting_pod_id}"
