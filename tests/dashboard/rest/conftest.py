"""A live server and bots that speak to it over real HTTP."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import requests
from django.contrib.auth.models import Permission, User
from schemathesis.openapi import from_dict

from dashboard.rest import site, tokens
from dashboard.rest.models import ApiToken

SCHEMA = from_dict(site.openapi())


class Bot:
    """Somebody with a token (or without). Every answer is checked against the OpenAPI schema."""

    def __init__(self, url: str, token: str = "") -> None:
        self.url = url
        self.token = token
        self.session = requests.Session()
        if token:
            self.session.headers["Authorization"] = f"Bearer {token}"

    def get(self, path: str, **options: Any) -> requests.Response:
        return self.call("GET", path, **options)

    def post(self, path: str, **options: Any) -> requests.Response:
        return self.call("POST", path, **options)

    def call(self, method: str, path: str, **options: Any) -> requests.Response:
        response = self.session.request(
            method, f"{self.url}/api/v1{path}", timeout=10, allow_redirects=False, **options
        )
        operation = SCHEMA.find_operation_by_path(method, f"/api/v1{path.partition('?')[0]}")
        if operation is not None:
            operation.validate_response(response)
        if response.status_code >= 400:
            assert response.headers["Content-Type"] == "application/problem+json", response.text
            assert response.json()["status"] == response.status_code
        return response


@pytest.fixture
def decider(operator: User) -> User:
    """Olga, who may decide."""
    return operator


@pytest.fixture
def second_decider(second_operator: User) -> User:
    """Otto, who may decide too."""
    return second_operator


@pytest.fixture
def token_of() -> Callable[..., str]:
    """The text of a new token of a user."""

    def make(user: User, *scopes: str, days: int = 30) -> str:
        chosen = scopes or (ApiToken.Scope.READ, ApiToken.Scope.DECIDE)
        return tokens.issue(user, name="bot", scopes=chosen, days=days, by=user).text

    return make


@pytest.fixture
def bot_of(live_server: Any, token_of: Callable[..., str]) -> Callable[..., Bot]:
    """A bot that acts as a user."""

    def make(user: User, *scopes: str) -> Bot:
        return Bot(live_server.url, token_of(user, *scopes))

    return make


@pytest.fixture
def bot(bot_of: Callable[..., Bot], decider: User) -> Bot:
    """Olga's bot."""
    return bot_of(decider)


@pytest.fixture
def nobody(live_server: Any) -> Bot:
    """A caller without a token."""
    return Bot(live_server.url)


def may(user: User, *codenames: str) -> User:
    user.user_permissions.add(*Permission.objects.filter(codename__in=codenames))
    return User.objects.get(pk=user.pk)
