"""How a real cluster is reached."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models


class ClusterConnection(models.Model):
    """The way to a Kubernetes cluster, and what came of the last look at it.

    ``sealed`` holds the credentials, encrypted (``dashboard.clusters.credentials``); ``server``,
    ``context`` and ``path`` are for people to see. ``problem`` is why the last look failed; "": it
    did not.
    """

    class Method(models.TextChoices):
        KUBECONFIG = "kubeconfig", "Kubeconfig"
        TOKEN = "token", "Address and token"
        IN_CLUSTER = "in_cluster", "Service account of the worker's pod"
        FILE = "file", "Kubeconfig file of the worker's machine"

    cluster = models.OneToOneField(
        "dashboard.Cluster", primary_key=True, on_delete=models.CASCADE, related_name="connection"
    )
    method = models.CharField(max_length=16, choices=Method.choices)
    server = models.CharField(max_length=500, blank=True)
    context = models.CharField(max_length=253, blank=True)
    path = models.CharField(max_length=1000, blank=True)
    insecure = models.BooleanField(default=False)
    sealed = models.TextField(blank=True)
    version = models.CharField(max_length=100, blank=True)
    problem = models.TextField(blank=True)
    checked_at = models.DateTimeField(null=True, blank=True)
    changed_at = models.DateTimeField()
    changed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )

    class Meta:
        permissions: ClassVar = [
            ("manage_clusters", "Can add real clusters and change how they are reached")
        ]

    def __str__(self) -> str:
        return f"connection of cluster {self.cluster_id}"
