"""Adding a real cluster in a browser: the form shows what belongs to the chosen way, says what is
wrong, and leads to the cluster's page."""

from __future__ import annotations

from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client
from playwright.sync_api import Page, expect

from tests.dashboard.clusters.conftest import TOKEN, Served, served

__all__ = ["served"]

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def site(page: Page, live_server: Any) -> tuple[Page, str]:
    user = User.objects.create_superuser("ada")
    client = Client()
    client.force_login(user)
    name = settings.SESSION_COOKIE_NAME
    cookie = {"name": name, "value": client.cookies[name].value, "url": live_server.url}
    page.context.add_cookies([cookie])  # type: ignore[list-item]
    page.set_default_timeout(20_000)
    return page, live_server.url


def test_a_cluster_is_added_and_removed(site: tuple[Page, str], served: Served) -> None:
    page, base = site
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.goto(f"{base}/")
    page.get_by_role("link", name="Add a real cluster").click()

    token, kubeconfig = page.locator("[name=token]"), page.locator("[name=kubeconfig]")
    expect(kubeconfig).to_be_visible()
    expect(token).to_be_hidden()
    page.get_by_text("Address and token").first.click()
    expect(token).to_be_visible()
    expect(kubeconfig).to_be_hidden()

    page.locator("[name=name]").fill("staging")
    page.locator("[name=server]").fill(served.url)
    token.fill("wrong")
    page.get_by_role("button", name="Connect and add").click()
    expect(page.get_by_role("alert")).to_contain_text("does not accept these credentials")
    expect(token).to_have_value("")  # a secret is not sent back

    token.fill(TOKEN)
    page.get_by_role("button", name="Connect and add").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("staging")
    expect(page.locator(".facts")).to_contain_text(served.url)
    page.get_by_role("button", name="Check now").click()
    expect(page.get_by_text("It answers.")).to_be_visible()

    page.goto(f"{base}/")
    page.get_by_role("link", name="Kubernetes cluster").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("staging")

    page.get_by_text("Remove staging").click()
    page.get_by_label("Its name").fill("staging")
    page.get_by_role("button", name="Remove for good").click()
    expect(page.get_by_text("staging is removed.")).to_be_visible()
    expect(page.get_by_text("No cluster yet")).to_be_visible()
    assert faults == []
