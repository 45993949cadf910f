"""The Django project: settings, URLs, ASGI and Celery applications."""

from kubesched_site.celery import app as celery_app

__all__ = ["celery_app"]
