"""Login everywhere, JSON errors under /api/, and what a browser is told it may do."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.site.urls")]


@pytest.fixture
def user() -> User:
    return User.objects.create_user("someone", password="pw")


@pytest.fixture
def logged_in(user: User) -> Client:
    client = Client(raise_request_exception=False)
    client.force_login(user)
    return client


def test_a_page_sends_strangers_to_the_login(client: Client) -> None:
    answer = client.get("/")

    assert answer.status_code == 302
    assert answer["Location"] == "/login/?next=/"


def test_the_api_answers_strangers_with_json(client: Client) -> None:
    answer = client.get("/api/page")

    assert answer.status_code == 401
    assert answer.json() == {"error": "Log in first."}


def test_who_is_logged_in_gets_both(logged_in: Client) -> None:
    assert logged_in.get("/").content == b"the page"
    assert logged_in.get("/api/page").content == b"the page"


@pytest.mark.parametrize(
    ("path", "status", "message"),
    [
        pytest.param("/api/forbidden", 403, "Only an operator may do this.", id="403"),
        pytest.param("/api/absent", 404, "There is no run 7.", id="404 of a view"),
        pytest.param("/api/no/such/path", 404, "Not found.", id="404 of no view"),
        pytest.param("/api/nonsense", 400, "The request cannot be understood.", id="400"),
        pytest.param("/api/broken", 500, "The server failed; its log says why.", id="500"),
    ],
)
def test_the_api_reports_errors_as_json(
    logged_in: Client, path: str, status: int, message: str
) -> None:
    answer = logged_in.get(path)

    assert answer.status_code == status
    assert answer.json() == {"error": message}


def test_a_page_reports_errors_as_a_page(logged_in: Client) -> None:
    answer = logged_in.get("/forbidden")

    assert answer.status_code == 403
    assert answer["Content-Type"].startswith("text/html")


def test_a_post_without_csrf_token_is_told_so_in_json(user: User) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(user)

    answer = strict.post("/api/page")

    assert answer.status_code == 403
    assert "CSRF" in answer.json()["error"]


def test_health_needs_no_login(client: Client) -> None:
    answer = client.get("/healthz")

    assert (answer.status_code, answer.content) == (200, b"ok")


def test_content_security_policy_allows_this_site_alone(client: Client) -> None:
    policy = dict(
        directive.strip().split(" ", 1)
        for directive in client.get("/healthz")["Content-Security-Policy"].split(";")
    )

    assert policy == {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "img-src": "'self'",
        "font-src": "'self'",
        "connect-src": "'self'",
        "form-action": "'self'",
        "frame-ancestors": "'none'",
        "base-uri": "'none'",
    }
