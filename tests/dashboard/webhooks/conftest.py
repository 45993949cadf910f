"""Receivers, endpoints, and a deliverer whose time stands still until a test moves it."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User

from dashboard.webhooks import endpoints
from dashboard.webhooks.delivery import Deliverer
from dashboard.webhooks.models import WebhookEndpoint
from tests.dashboard.webhooks.receiver import LOCAL, Receiver, receiving


@pytest.fixture(autouse=True)
def loopback_is_allowed(settings: Any) -> None:
    settings.KUBESCHED_WEBHOOK_NETWORKS = [ipaddress.ip_network(text) for text in LOCAL]


@pytest.fixture
def receive() -> Iterator[Callable[..., Receiver]]:
    """Receivers that are gone after the test."""
    with ExitStack() as stack:
        yield lambda *answers: stack.enter_context(receiving(answers or (204,)))


@pytest.fixture
def manager(db: None) -> User:
    """Max, who may manage webhooks."""
    user = User.objects.create_user("max", password="secret")
    user.user_permissions.set(Permission.objects.filter(codename="manage_webhooks"))
    return user


@pytest.fixture
def endpoint_at(manager: User) -> Callable[..., WebhookEndpoint]:
    """A new endpoint; its secret is the attribute ``text``."""

    def make(url: str, **fields: Any) -> WebhookEndpoint:
        values = {
            "name": "chat",
            "url": url,
            "events": list(WebhookEndpoint.Event.values),
            "namespaces": [],
            "only_approval": True,
        }
        endpoint, secret = endpoints.create(manager, {**values, **fields})
        endpoint.text = secret  # type: ignore[attr-defined]
        return endpoint

    return make


class Post(Deliverer):
    """Delivers at once, in this thread, at a time of its own: the clock, only moved by tests."""

    now: datetime

    def __init__(self, **options: Any) -> None:
        self.now = datetime.now(UTC) + timedelta(seconds=1)
        values = {"clock": lambda: self.now, "uniform": lambda low, high: high, "timeout": 5.0}
        super().__init__(**{**values, **options})

    def deliver(self) -> int:
        """One round, as the tasks do it; how many messages were tried."""
        return sum(self.serve(endpoint) for endpoint in self.claim())

    def later(self, seconds: float) -> int:
        self.now += timedelta(seconds=seconds)
        return self.deliver()


@pytest.fixture
def post() -> Post:
    return Post()
