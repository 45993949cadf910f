"""The pages of webhooks."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from dashboard.models import AuditEntry, SchedulerRun
from dashboard.webhooks import secrets
from dashboard.webhooks.models import WebhookDelivery, WebhookEndpoint
from tests.dashboard.told_waits import waiting
from tests.dashboard.webhooks.conftest import Post
from tests.dashboard.webhooks.receiver import Receiver

pytestmark = pytest.mark.django_db(transaction=True)
FORM = {
    "name": "chat",
    "url": "http://127.0.0.1:9/hooks/s3cret-path",
    "events": ["gang.waiting", "gang.expired"],
    "namespaces": "shop, web  ci",
    "only_approval": "on",
}


@pytest.fixture
def as_manager(manager: User) -> Client:
    client = Client()
    client.force_login(manager)
    return client


def test_an_endpoint_is_made_and_its_secret_shown_once(as_manager: Client) -> None:
    response = as_manager.post("/webhooks/", FORM)
    (secret,) = re.findall(r"whsec_[A-Za-z0-9+/=]{44}", response.text)
    assert "no-store" in response["Cache-Control"]
    endpoint = WebhookEndpoint.objects.get()
    assert endpoint.events == ["gang.waiting", "gang.expired"]
    assert endpoint.namespaces == ["shop", "web", "ci"]
    assert endpoint.only_approval
    assert secret not in endpoint.secret
    assert secrets.unseal(endpoint.secret) == secret
    for url in ("/webhooks/", f"/webhooks/{endpoint.pk}/"):
        assert secret not in as_manager.get(url).text
    entry = AuditEntry.objects.get(verb="create_webhook")
    assert (entry.username, entry.target) == ("max", "chat (http://127.0.0.1:9)")
    assert "s3cret-path" not in f"{entry.target}{entry.detail}"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param({"name": ""}, "Give it a name", id="no name"),
        pytest.param({"url": ""}, "Where should messages go?", id="no URL"),
        pytest.param({"url": "http://10.0.0.1/"}, "10.0.0.1 is not public.", id="private"),
        pytest.param({"url": "ftp://x/"}, "must begin with http", id="scheme"),
        pytest.param({"events": []}, "Choose at least one event.", id="no event"),
        pytest.param({"namespaces": "Shop"}, "Shop is not a namespace", id="namespace"),
    ],
)
def test_a_bad_form_says_why(as_manager: Client, change: dict[str, Any], words: str) -> None:
    response = as_manager.post("/webhooks/", {**FORM, **change})
    assert response.status_code == 400
    assert words in response.text
    assert not WebhookEndpoint.objects.exists()


@pytest.mark.parametrize("path", ["", "1/", "1/secret/", "1/delete/", "1/deliveries/1/"])
def test_only_people_with_the_permission(as_operator: Client, path: str) -> None:
    call = as_operator.get if path in {"", "1/"} else as_operator.post
    assert call(f"/webhooks/{path}").status_code == 403
    assert Client().get("/webhooks/").status_code == 302


def test_change_switch_renew_and_delete(
    as_manager: Client, endpoint_at: Callable[..., WebhookEndpoint]
) -> None:
    endpoint = endpoint_at("http://127.0.0.1:9/")
    url = f"/webhooks/{endpoint.pk}/"
    page = as_manager.post(url, {**FORM, "name": "pager"}, follow=True).text
    assert "pager" in page
    assert "Changed; it holds for what happens from now on." in page
    assert "pager is switched off." in as_manager.post(url + "stop/", follow=True).text
    endpoint.refresh_from_db()
    assert (endpoint.active, endpoint.name) == (False, "pager")
    as_manager.post(url + "start/")
    response = as_manager.post(url + "secret/")
    (secret,) = re.findall(r"whsec_[A-Za-z0-9+/=]{44}", response.text)
    assert "with the one before it as well" in response.text
    endpoint.refresh_from_db()
    assert secrets.unseal(endpoint.secret) == secret
    assert secrets.unseal(endpoint.old_secret) == endpoint_text(endpoint_at, endpoint)
    assert "pager is deleted." in as_manager.post(url + "delete/", follow=True).text
    assert not WebhookEndpoint.objects.exists()
    verbs = list(AuditEntry.objects.order_by("pk").values_list("verb", flat=True))
    assert verbs == ["create_webhook", *["change_webhook"] * 4, "delete_webhook"]


def endpoint_text(_: Any, endpoint: WebhookEndpoint) -> str:
    return str(endpoint.text)  # type: ignore[attr-defined]


def test_what_was_given_up_is_shown_and_sent_again(
    run: SchedulerRun,
    as_manager: Client,
    receive: Callable[..., Receiver],
    endpoint_at: Callable[..., WebhookEndpoint],
    post: Post,
) -> None:
    receiver = receive(400, 200)
    endpoint = endpoint_at(receiver.url)
    waiting(run, "solo", requested_by="<b>alice</b>")
    post.deliver()
    WebhookDelivery.objects.update(state="dead")
    url = f"/webhooks/{endpoint.pk}/"
    assert "1 given up" in as_manager.get("/webhooks/").text
    page = as_manager.get(url, {"state": "dead"}).text
    assert "Answered 400." in page
    assert "<b>alice</b>" not in page
    assert "No delivery is in this state." in as_manager.get(url, {"state": "delivered"}).text
    row = WebhookDelivery.objects.get()
    resend = f"{url}deliveries/{row.pk}/"
    assert "is sent again." in as_manager.post(resend, follow=True).text
    assert "is on its way already." in as_manager.post(resend, follow=True).text
    post.later(5)
    assert [got.id for got in receiver.got] == [row.message.uid] * 2
    row.refresh_from_db()
    assert row.state == "delivered"


def test_a_test_message(
    as_manager: Client,
    receive: Callable[..., Receiver],
    endpoint_at: Callable[..., WebhookEndpoint],
    post: Post,
) -> None:
    receiver = receive()
    endpoint = endpoint_at(receiver.url)
    as_manager.post(f"/webhooks/{endpoint.pk}/test/")
    post.later(5)
    assert receiver.told == ["webhook.test"]


def test_the_admin_site_shows_no_secret(endpoint_at: Callable[..., WebhookEndpoint]) -> None:
    endpoint = endpoint_at("http://127.0.0.1:9/")
    client = Client()
    client.force_login(User.objects.create_superuser("root", password="secret"))
    page = client.get(f"/admin/dashboard/webhookendpoint/{endpoint.pk}/change/")
    assert page.status_code == 200
    assert endpoint.secret not in page.text
