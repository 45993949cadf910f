"""Under which address, and with which token, a sandbox speaks the Kubernetes API."""

from __future__ import annotations

from django.db import models


class SandboxAccess(models.Model):
    """One row for each sandbox that has been served.

    ``url`` is empty while nobody serves it; ``problem`` says why that is so although it should be;
    beside a ``url`` it says what people have to know of the address.
    ``token`` is encrypted (``dashboard.sealing``), because the kubeconfig has to name it again.
    """

    sandbox = models.OneToOneField(
        "dashboard.Sandbox", primary_key=True, on_delete=models.CASCADE, related_name="access"
    )
    token = models.TextField()
    url = models.CharField(max_length=300, blank=True)
    ca_pem = models.TextField(blank=True)
    problem = models.TextField(blank=True)
    token_made_at = models.DateTimeField()

    class Meta:
        verbose_name_plural = "sandbox accesses"

    def __str__(self) -> str:
        return f"access to sandbox {self.sandbox_id}"
