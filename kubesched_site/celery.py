"""The Celery application. Queues: `loop` for tasks that live on, `default` for the rest."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kubesched_site.settings")

app = Celery("kubesched")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
