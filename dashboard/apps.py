"""The app's configuration."""

from django.apps import AppConfig


class DashboardConfig(AppConfig):
    """KubeSched's pages and rows."""

    name = "dashboard"
    verbose_name = "KubeSched"
    default_auto_field = "django.db.models.BigAutoField"
