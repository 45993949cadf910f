"""The rows of the REST API: tokens, and answers that may be asked for twice."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from django.conf import settings
from django.core.validators import MinLengthValidator
from django.db import models


class ApiToken(models.Model):
    """A token that acts as its user, within its scopes, until it expires or is revoked.

    Only the SHA-256 of the secret part is kept. That is enough: the secret is 256 random bits, so
    there is nothing to guess that a slow hash would protect.
    """

    class Scope(models.TextChoices):
        READ = "read", "Read what waits"
        DECIDE = "decide", "Approve and deny"
        EXTEND = "extend", "Ask runs as their extender"

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="api_tokens"
    )
    name = models.CharField(max_length=100, validators=[MinLengthValidator(1)])
    prefix = models.CharField(max_length=16, unique=True)
    digest = models.CharField(max_length=64)
    scopes = models.JSONField(default=list)
    created_at = models.DateTimeField()
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    expires_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    revoked_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )

    class Meta:
        ordering: ClassVar = ["-id"]
        verbose_name = "API token"

    def __str__(self) -> str:
        return f"{self.prefix} ({self.name})"

    def is_usable(self, now: datetime) -> bool:
        return self.revoked_at is None and now < self.expires_at

    def state(self, now: datetime) -> str:
        """``active``, ``expired`` or ``revoked``."""
        if self.revoked_at is not None:
            return "revoked"
        return "active" if now < self.expires_at else "expired"


class IdempotentAnswer(models.Model):
    """What was answered to a request with an ``Idempotency-Key``; written with what it did."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    key = models.CharField(max_length=255)
    fingerprint = models.CharField(max_length=64, help_text="SHA-256 of method, path and body.")
    status = models.IntegerField(default=0)
    body = models.JSONField(default=dict)
    created_at = models.DateTimeField(db_index=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["user", "key"], name="idempotentanswer_key")
        ]

    def __str__(self) -> str:
        return f"{self.key}: {self.status}"


class TokenFailures(models.Model):
    """Failed attempts to use an API token in one window of time (``dashboard.rest.throttle``)."""

    key = models.CharField(max_length=64, primary_key=True, help_text="SHA-256 of who failed.")
    failures = models.IntegerField(default=0)
    until = models.DateTimeField(db_index=True, help_text="When the window ends.")

    class Meta:
        verbose_name_plural = "token failures"

    def __str__(self) -> str:
        return f"{self.failures} until {self.until}"
