"""Who gets in: tokens, sessions, scopes, ends, limits; and errors of every path as problems."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
import requests
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from dashboard.models import AuditEntry, SchedulerRun
from dashboard.rest import throttle, tokens
from dashboard.rest.models import ApiToken
from tests.dashboard.rest.conftest import Bot
from tests.dashboard.told_waits import waiting

pytestmark = pytest.mark.django_db(transaction=True)
BotOf = Callable[..., Bot]


def refused(bot: Bot, status: int = 401) -> dict[str, Any]:
    response = bot.get("/waiting")
    assert response.status_code == status, response.text
    return dict(response.json())


def test_without_a_token(nobody: Bot) -> None:
    response = nobody.get("/waiting")
    assert response.status_code == 401
    assert response.headers["WWW-Authenticate"] == 'Bearer realm="KubeSched"'
    assert "Send an API token" in response.json()["detail"]
    assert nobody.post("/waiting/x/approve").status_code == 401


def test_only_the_hash_is_kept_and_the_prefix_shown(decider: User) -> None:
    issued = tokens.issue(decider, name="b", scopes=["read"], days=7, by=decider)
    prefix, secret = issued.text.removeprefix("kst_").split("_", 1)
    row = ApiToken.objects.get()
    assert (row.prefix, row.scopes) == (prefix, ["read"])
    kept = [str(value) for value in ApiToken.objects.values().get().values()]
    assert not any(secret in value for value in kept)
    assert str(row) == f"{prefix} (b)"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param(lambda text: text[:-1] + "~", "not a valid API token", id="malformed"),
        pytest.param(
            lambda text: text[:-1] + ("A" if text[-1] != "A" else "B"),
            "not a valid API token",
            id="wrong secret",
        ),
        pytest.param(
            lambda text: "kst_" + "a" * 12 + text[16:], "not a valid API token", id="unknown"
        ),
        pytest.param(lambda text: "", "not a valid API token", id="empty"),
    ],
)
def test_a_wrong_token(bot: Bot, change: Callable[[str], str], words: str) -> None:
    bot.session.headers["Authorization"] = f"Bearer {change(bot.token)}"
    assert words in refused(bot)["detail"]


def test_revoked(bot: Bot, decider: User) -> None:
    token = ApiToken.objects.get()
    assert tokens.revoke(token, decider)
    assert not tokens.revoke(token, decider)
    assert refused(bot)["detail"].startswith("This API token was revoked at ")
    entry = AuditEntry.objects.get(verb="revoke_token")
    assert (entry.username, entry.target) == ("olga", f"{token.prefix} of olga")


def test_expired(bot: Bot) -> None:
    ApiToken.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert refused(bot)["detail"].startswith("This API token expired at ")


def test_a_user_who_may_not_log_in_any_more(bot: Bot, decider: User) -> None:
    User.objects.filter(pk=decider.pk).update(is_active=False)
    assert refused(bot)["detail"] == "The account olga of this API token is not active."


def test_scopes(run: SchedulerRun, bot_of: BotOf, decider: User) -> None:
    waiting(run, "web")
    reader, judge = bot_of(decider, "read"), bot_of(decider, "decide")
    assert reader.get("/waiting").status_code == 200
    problem = reader.post("/waiting/uid-web/approve")
    assert (problem.status_code, problem.json()["code"]) == (403, "missing_scope")
    assert problem.json()["scopes"] == ["read"]
    assert judge.get("/waiting").status_code == 403
    assert judge.post("/waiting/uid-web/approve").status_code == 200


def test_failures_are_limited_and_a_good_token_at_the_same_address_is_not(
    bot: Bot, nobody: Bot, bot_of: BotOf, decider: User
) -> None:
    nobody.session.headers["Authorization"] = "Bearer kst_guess"
    for _ in range(throttle.MOST_FAILURES):
        refused(nobody, 401)
    response = nobody.get("/waiting")
    assert response.status_code == 429
    assert response.headers["Retry-After"] == "60"
    assert bot.get("/waiting").status_code == 200
    # A guesser who knows a prefix is counted for that prefix.
    wrong = bot_of(decider)
    wrong.session.headers["Authorization"] = f"Bearer {bot.token[:-3]}AAA"
    for _ in range(throttle.MOST_FAILURES):
        refused(wrong, 401)
    refused(wrong, 429)
    refused(bot, 429)


def test_last_use_is_noted_once_a_minute(bot: Bot) -> None:
    bot.get("/waiting")
    first = ApiToken.objects.get().last_used_at
    assert first is not None
    bot.get("/waiting")
    assert ApiToken.objects.get().last_used_at == first
    ApiToken.objects.update(last_used_at=first - timedelta(minutes=2))
    bot.get("/waiting")
    assert ApiToken.objects.get().last_used_at > first - timedelta(minutes=1)


def test_a_browser_needs_a_csrf_token_and_a_bot_does_not(
    run: SchedulerRun, live_server: Any, decider: User
) -> None:
    waiting(run, "web")
    client = Client()
    client.force_login(decider)
    session = requests.Session()
    name = "kubesched_session"
    session.cookies.set(name, client.cookies[name].value)
    url = f"{live_server.url}/api/v1"
    assert session.get(f"{url}/waiting", timeout=10).status_code == 200
    response = session.post(f"{url}/waiting/uid-web/approve", timeout=10)
    assert (response.status_code, response.json()["code"]) == (403, "csrf")
    page = session.get(f"{live_server.url}/account/tokens/", timeout=10)
    session.headers["X-CSRFToken"] = page.text.split('name="csrf-token" content="')[1].split('"')[0]
    assert session.post(f"{url}/waiting/uid-web/approve", timeout=10).status_code == 200
    assert "token" not in AuditEntry.objects.get(verb="approve").detail


def test_a_bad_token_does_not_fall_back_to_the_session(client: Client, decider: User) -> None:
    client.force_login(decider)
    response = client.get("/api/v1/waiting", headers={"Authorization": "Bearer kst_x"})
    assert response.status_code == 401
    assert client.get("/api/v1/waiting", headers={"Authorization": "Basic eDp5"}).status_code == 401


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        pytest.param("GET", "/", 404, id="root"),
        pytest.param("GET", "/nothing", 404, id="no such call"),
        pytest.param("DELETE", "/waiting", 405, id="wrong method"),
        pytest.param("GET", "/waiting/x/approve", 405, id="GET of an action"),
    ],
)
def test_every_error_is_a_problem(bot: Bot, method: str, path: str, status: int) -> None:
    response = bot.session.request(method, f"{bot.url}/api/v1{path}", timeout=10)
    assert response.status_code == status
    assert response.headers["Content-Type"] == "application/problem+json"
    assert set(response.json()) >= {"type", "title", "status", "code", "detail"}


def test_answers_are_not_kept_by_caches(bot: Bot) -> None:
    assert "no-store" in bot.get("/waiting").headers["Cache-Control"]


def test_the_schema_needs_no_login_and_names_every_call(nobody: Bot) -> None:
    response = nobody.session.get(f"{nobody.url}/api/schema/", timeout=10)
    schema = response.json()
    assert schema["openapi"].startswith("3.1")
    assert sorted(schema["paths"]) == [
        "/api/v1/gangs/{uid}/approve",
        "/api/v1/gangs/{uid}/deny",
        "/api/v1/waiting",
        "/api/v1/waiting/{uid}",
        "/api/v1/waiting/{uid}/approve",
        "/api/v1/waiting/{uid}/deny",
    ]


@pytest.mark.parametrize(
    ("proxy", "forwarded", "address"),
    [
        pytest.param(None, "6.6.6.6", "127.0.0.1", id="nobody is believed"),
        pytest.param(("X", "https"), "1.1.1.1, 9.9.9.9", "9.9.9.9", id="whom the proxy saw"),
        pytest.param(("X", "https"), "", "127.0.0.1", id="no header"),
    ],
)
def test_who_is_at_the_other_end(
    rf: Any, settings: Any, proxy: Any, forwarded: str, address: str
) -> None:
    from dashboard.rest.auth import client_address

    settings.SECURE_PROXY_SSL_HEADER = proxy
    headers = {"X-Forwarded-For": forwarded} if forwarded else {}
    assert client_address(rf.get("/", headers=headers)) == address
