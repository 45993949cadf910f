"""The admin site: users aside, a look at the rows. What the worker or an audit wrote stays."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

# They register themselves.
from dashboard import accounts_admin  # noqa: F401
from dashboard.models import (
    AuditEntry,
    Cluster,
    Lease,
    Sandbox,
    SchedulerRun,
    SchedulingCycle,
    WaitingPod,
)
from dashboard.rest import admin as rest_admin  # noqa: F401
from dashboard.webhooks import admin as webhooks_admin  # noqa: F401


class ReadOnly(admin.ModelAdmin):
    """Rows to look at, not to change."""

    show_full_result_count = False

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Cluster)
class ClusterAdmin(ReadOnly):
    list_display = ("name", "kind", "created_at", "created_by")


@admin.register(Sandbox)
class SandboxAdmin(ReadOnly):
    list_display = ("cluster", "preset", "clock_mode", "speed", "state", "message")


@admin.register(SchedulerRun)
class SchedulerRunAdmin(ReadOnly):
    list_display = ("name", "cluster", "desired_state", "state", "scheduled", "bound")
    list_filter = ("state", "cluster")


@admin.register(SchedulingCycle)
class SchedulingCycleAdmin(ReadOnly):
    list_display = ("sequence", "run", "namespace", "name", "outcome", "node")
    list_filter = ("outcome", "run")
    search_fields = ("name", "namespace")


@admin.register(WaitingPod)
class WaitingPodAdmin(ReadOnly):
    list_display = ("namespace", "name", "run", "node", "pod_group", "state")
    list_filter = ("state", "run")
    search_fields = ("name", "pod_group")


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnly):
    list_display = ("at", "username", "verb", "target", "outcome", "comment")
    list_filter = ("verb", "outcome")
    search_fields = ("username", "target")


@admin.register(Lease)
class LeaseAdmin(ReadOnly):
    list_display = ("name", "holder", "epoch", "queue")
