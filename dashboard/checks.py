"""System checks: settings that would break the product quietly are found at the start."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage, Error, Tags, register

LONGEST_RUNTIME_DIR = 80


@register(Tags.database)
def check_database(app_configs: Sequence[AppConfig] | None, **options: Any) -> list[CheckMessage]:
    """SQLite must take its write lock early and log ahead; requests must not hold it."""
    found: list[CheckMessage] = []
    config = settings.DATABASES["default"]
    if config.get("ATOMIC_REQUESTS"):
        found.append(
            Error(
                "ATOMIC_REQUESTS is on: every page would hold the database's write lock.",
                id="kubesched.E001",
            )
        )
    if not config["ENGINE"].endswith(".sqlite3"):
        return found
    sqlite = config.get("OPTIONS", {})
    if sqlite.get("transaction_mode") != "IMMEDIATE" or "WAL" not in sqlite.get("init_command", ""):
        found.append(
            Error(
                "SQLite without immediate transactions and a write-ahead log answers "
                "'database is locked' under load.",
                hint="Set transaction_mode=IMMEDIATE and journal_mode=WAL in its OPTIONS.",
                id="kubesched.E002",
            )
        )
    return found


@register(Tags.compatibility)
def check_channel_layer(
    app_configs: Sequence[AppConfig] | None, **options: Any
) -> list[CheckMessage]:
    """Frames cross processes, and channels_redis.core loses sockets under redis-py 8."""
    backend = settings.CHANNEL_LAYERS["default"]["BACKEND"]
    if (
        backend == "channels_redis.pubsub.RedisPubSubChannelLayer"
        or settings.KUBESCHED_MODE == "test"
    ):
        return []
    return [
        Error(
            f"The channel layer {backend} does not carry frames from the workers to the pages.",
            hint="Use channels_redis.pubsub.RedisPubSubChannelLayer.",
            id="kubesched.E003",
        )
    ]


@register(Tags.security)
def check_celery_content(
    app_configs: Sequence[AppConfig] | None, **options: Any
) -> list[CheckMessage]:
    """A pickled message would run whatever its sender likes."""
    if list(settings.CELERY_ACCEPT_CONTENT) == ["json"]:
        return []
    return [Error("Celery must accept JSON only.", id="kubesched.E004")]


@register(Tags.files)
def check_runtime_dir(
    app_configs: Sequence[AppConfig] | None, **options: Any
) -> list[CheckMessage]:
    """The path of a unix socket may have 104 bytes on some systems."""
    length = len(os.fsencode(settings.KUBESCHED_RUNTIME_DIR))
    if length <= LONGEST_RUNTIME_DIR:
        return []
    return [
        checks.Warning(
            f"KUBESCHED_RUNTIME_DIR has {length} bytes; "
            f"unix sockets need {LONGEST_RUNTIME_DIR} or fewer.",
            hint="Set KUBESCHED_RUNTIME_DIR to a short path, such as /run/kubesched.",
            id="kubesched.W005",
        )
    ]
