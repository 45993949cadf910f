"""Settings of a loop worker's own server, and of logs."""

from __future__ import annotations

import json
import logging
import logging.config

import environ
import pytest
from django.conf import settings

from kubesched_site.environment import read_address, read_choice

env = environ.Env()


@pytest.mark.parametrize(
    ("text", "address"),
    [
        pytest.param("", None, id="none"),
        pytest.param("127.0.0.1:10259", ("127.0.0.1", 10259), id="address and port"),
        pytest.param(":10259", ("0.0.0.0", 10259), id="every interface"),  # noqa: S104
        pytest.param("[::1]:10259", ("::1", 10259), id="IPv6"),
    ],
)
def test_an_address(
    text: str, address: tuple[str, int] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBESCHED_WORKER_LISTEN", text)
    assert read_address(env, "KUBESCHED_WORKER_LISTEN") == address


@pytest.mark.parametrize("text", ["10259", "host:", "host:http", "host:99999"])
def test_an_address_that_is_none_ends_the_start(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBESCHED_WORKER_LISTEN", text)
    with pytest.raises(SystemExit, match="must be HOST:PORT"):
        read_address(env, "KUBESCHED_WORKER_LISTEN")


def test_a_format_of_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBESCHED_LOG_FORMAT", raising=False)
    choices = ("line", "json")
    assert read_choice(env, "KUBESCHED_LOG_FORMAT", choices) == "line"
    monkeypatch.setenv("KUBESCHED_LOG_FORMAT", "json")
    assert read_choice(env, "KUBESCHED_LOG_FORMAT", choices) == "json"
    monkeypatch.setenv("KUBESCHED_LOG_FORMAT", "xml")
    with pytest.raises(SystemExit, match="must be one of line, json"):
        read_choice(env, "KUBESCHED_LOG_FORMAT", choices)


def test_the_json_formatter_of_the_settings_works() -> None:
    factory = logging.config.DictConfigurator(settings.LOGGING)
    formatter = factory.configure_formatter(dict(settings.LOGGING["formatters"]["json"]))
    record = logging.makeLogRecord({"msg": "hello", "levelname": "INFO", "run": 7})
    assert json.loads(formatter.format(record))["run"] == 7
