"""The snippet of docs/webhooks.md against what is really sent."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from dashboard.models import SchedulerRun
from dashboard.webhooks.models import WebhookEndpoint
from tests.dashboard.told_waits import gang
from tests.dashboard.webhooks.conftest import Post
from tests.dashboard.webhooks.receiver import Receiver

pytestmark = pytest.mark.django_db(transaction=True)
TEXT = (Path(settings.BASE_DIR) / "docs" / "webhooks.md").read_text(encoding="utf-8")


@pytest.fixture
def is_genuine() -> Callable[..., bool]:
    names: dict[str, Any] = {}
    (code,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    exec(code, names)  # noqa: S102 - our own document
    return names["is_genuine"]


def test_the_snippet_knows_what_is_genuine(
    run: SchedulerRun,
    receive: Callable[..., Receiver],
    endpoint_at: Callable[..., WebhookEndpoint],
    post: Post,
    is_genuine: Callable[..., bool],
) -> None:
    receiver = receive()
    secret: str = endpoint_at(receiver.url).text  # type: ignore[attr-defined]
    gang(run, "a", "b", requested_by="alice")
    post.deliver()
    (got,) = receiver.got
    assert is_genuine(secret, got.headers, got.body)
    assert not is_genuine(secret, got.headers, got.body + b" ")
    assert not is_genuine(secret, {**got.headers, "webhook-id": "msg_x"}, got.body)
    assert not is_genuine("whsec_" + "A" * 44, got.headers, got.body)
    assert not is_genuine(secret, got.headers, got.body, now=post.now.timestamp() + 301)
    both = {**got.headers, "webhook-signature": f"v1,abc {got.headers['webhook-signature']}"}
    assert is_genuine(secret, both, got.body)


def test_the_example_has_the_fields_of_a_real_message(
    run: SchedulerRun,
    receive: Callable[..., Receiver],
    endpoint_at: Callable[..., WebhookEndpoint],
    post: Post,
) -> None:
    receiver = receive()
    endpoint_at(receiver.url)
    gang(run, "a")
    post.deliver()
    (example,) = re.findall(r"```json\n(.*?)```", TEXT, re.DOTALL)
    assert shape(json.loads(example)) == shape(receiver.got[0].json)


def shape(value: Any) -> Any:
    """Field names, and nothing of the values."""
    if isinstance(value, dict):
        return {name: shape(item) for name, item in value.items()}
    if isinstance(value, list):
        return [shape(item) for item in value[:1]]
    return None


def test_every_event_is_named() -> None:
    for event in WebhookEndpoint.Event.values:
        assert f"`{event}`" in TEXT
