"""The demo's link logs in during its own run, for an hour, and never in production."""

from __future__ import annotations

import time

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django.fixtures import Settings

from dashboard import demo_login
from dashboard.demo_users import ADMIN, APPROVER, VIEWER, ensure_users

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.site.urls")]


@pytest.fixture
def run(settings: Settings) -> str:
    settings.KUBESCHED_DEMO_RUN = "this-run"
    ensure_users()
    return "this-run"


def open_link(client: Client, token: str) -> tuple[int, str | None]:
    answer = client.get(f"/demo-login/{token}/")
    return answer.status_code, answer.headers.get("Location")


def test_the_link_logs_in(client: Client, run: str) -> None:
    assert open_link(client, demo_login.make_token(ADMIN, run)) == (302, "/")
    assert client.get("/").content == b"the page"


@pytest.mark.parametrize("number", ["9" * 5000, "-1", "²", "x"])
def test_a_link_to_no_run_leads_to_the_first_page(client: Client, run: str, number: str) -> None:
    answer = client.get(f"/demo-login/{demo_login.make_token(ADMIN, run)}/", {"run": number})
    assert (answer.status_code, answer.headers["Location"]) == (302, "/")


def test_the_link_does_not_switch_users(client: Client, run: str) -> None:
    client.force_login(User.objects.get(username=VIEWER))

    assert open_link(client, demo_login.make_token(ADMIN, run)) == (302, "/")
    assert client.session["_auth_user_id"] == str(User.objects.get(username=VIEWER).pk)


@pytest.mark.parametrize(
    "token",
    [
        pytest.param(lambda: demo_login.make_token(ADMIN, "an earlier run"), id="earlier run"),
        pytest.param(lambda: demo_login.make_token("nobody", "this-run"), id="no such user"),
        pytest.param(lambda: demo_login.make_token(ADMIN, "this-run")[:-1] + "_", id="tampered"),
        pytest.param(lambda: "rubbish", id="rubbish"),
    ],
)
def test_another_link_leads_to_the_login(client: Client, run: str, token) -> None:
    assert open_link(client, token()) == (302, "/login/")
    assert "_auth_user_id" not in client.session


def test_the_link_ends_after_an_hour(
    client: Client, run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = demo_login.make_token(ADMIN, run)
    later = time.time() + demo_login.MAX_AGE_SECONDS + 60
    monkeypatch.setattr("django.core.signing.time.time", lambda: later)

    assert open_link(client, token) == (302, "/login/")


def test_outside_the_demo_there_is_no_such_page(client: Client, settings: Settings) -> None:
    settings.KUBESCHED_DEMO_RUN = ""

    assert open_link(client, demo_login.make_token(ADMIN, "")) == (404, None)


def test_the_first_users_and_what_they_may() -> None:
    passwords = ensure_users()

    admin, viewer = User.objects.get(username=ADMIN), User.objects.get(username=VIEWER)
    assert set(passwords) == {ADMIN, APPROVER, VIEWER}
    assert admin.check_password(passwords[ADMIN])
    assert admin.has_perm("dashboard.decide_waitingpod")
    approver = User.objects.get(username=APPROVER)
    assert approver.check_password(passwords[APPROVER])
    assert approver.get_all_permissions() == {"dashboard.decide_waitingpod"}
    assert not approver.is_staff
    assert viewer.check_password(passwords[VIEWER])
    assert not viewer.get_all_permissions()


def test_a_second_start_keeps_the_passwords() -> None:
    first = ensure_users()

    assert ensure_users() == {}
    assert User.objects.get(username=ADMIN).check_password(first[ADMIN])
