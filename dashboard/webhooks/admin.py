"""Webhooks on the admin site: to look at. Their own page makes and changes them."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from dashboard.webhooks.models import WebhookDelivery, WebhookEndpoint


class _ReadOnly(admin.ModelAdmin):
    show_full_result_count = False

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(WebhookEndpoint)
class WebhookEndpointAdmin(_ReadOnly):
    list_display = ("name", "active", "events", "namespaces", "failures", "created_by")
    exclude = ("secret", "old_secret")


@admin.register(WebhookDelivery)
class WebhookDeliveryAdmin(_ReadOnly):
    list_display = ("message", "endpoint", "state", "attempts", "last_status", "last_error")
    list_filter = ("state", "endpoint")
