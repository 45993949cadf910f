"""System checks name settings that would break the product quietly."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytest_django.fixtures import Settings

from dashboard import checks

SQLITE = {
    "ENGINE": "django.db.backends.sqlite3",
    "OPTIONS": {"transaction_mode": "IMMEDIATE", "init_command": "PRAGMA journal_mode=WAL;"},
}


@pytest.mark.parametrize(
    ("database", "found"),
    [
        pytest.param(SQLITE, [], id="good sqlite"),
        pytest.param({**SQLITE, "ATOMIC_REQUESTS": True}, ["kubesched.E001"], id="atomic requests"),
        pytest.param({**SQLITE, "OPTIONS": {}}, ["kubesched.E002"], id="deferred sqlite"),
        pytest.param({"ENGINE": "django.db.backends.postgresql"}, [], id="postgresql"),
    ],
)
def test_database(settings: Settings, database: dict, found: list[str]) -> None:
    assert [m.id for m in _with(settings, "DATABASES", database, checks.check_database)] == found


@pytest.mark.parametrize(
    ("layer", "found"),
    [
        pytest.param("channels_redis.pubsub.RedisPubSubChannelLayer", [], id="pubsub"),
        pytest.param("channels_redis.core.RedisChannelLayer", ["kubesched.E003"], id="core"),
        pytest.param("channels.layers.InMemoryChannelLayer", ["kubesched.E003"], id="memory"),
    ],
)
def test_channel_layer(settings: Settings, layer: str, found: list[str]) -> None:
    settings.KUBESCHED_MODE = "production"
    messages = _with(settings, "CHANNEL_LAYERS", {"BACKEND": layer}, checks.check_channel_layer)
    assert [message.id for message in messages] == found


def test_pickle_is_refused(settings: Settings) -> None:
    settings.CELERY_ACCEPT_CONTENT = ["json", "pickle"]

    assert [m.id for m in checks.check_celery_content(None)] == ["kubesched.E004"]


def test_a_long_runtime_dir_is_warned_about(settings: Settings) -> None:
    settings.KUBESCHED_RUNTIME_DIR = Path("/run") / ("x" * 100)

    (message,) = checks.check_runtime_dir(None)

    assert message.id == "kubesched.W005"
    assert "105 bytes" in message.msg


class _Settings:
    """What the checks read, without Django's own watchers on DATABASES."""

    def __init__(self, settings: Settings, name: str, value: dict) -> None:
        self.KUBESCHED_MODE = settings.KUBESCHED_MODE
        setattr(self, name, {"default": value})


def _with(settings: Settings, name: str, value: dict, check) -> list:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checks, "settings", _Settings(settings, name, value))
        return check(None)
