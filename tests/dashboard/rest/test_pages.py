"""The page of a person's tokens, and tokens on the admin site."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client

from dashboard.models import AuditEntry
from dashboard.rest import tokens
from dashboard.rest.models import ApiToken

pytestmark = pytest.mark.django_db(transaction=True)
FORM = {"name": "release bot", "scopes": ["read", "decide"], "days": "30"}
URL = "/account/tokens/"


def test_a_token_is_made_shown_once_and_listed(as_operator: Client) -> None:
    response = as_operator.post(URL, FORM)
    (text,) = re.findall(r"kst_[a-z0-9]{12}_[A-Za-z0-9_-]{43}", response.text)
    assert "no-store" in response["Cache-Control"]
    token = tokens.authenticate(text, "here")
    assert (token.user.username, token.scopes) == ("olga", ["read", "decide"])
    assert (token.expires_at - token.created_at).days == 30
    page = as_operator.get(URL).text
    assert text not in page
    assert f"kst_{token.prefix}" in page
    entry = AuditEntry.objects.get(verb="create_token")
    assert (entry.username, entry.target) == ("olga", f"{token.prefix} of olga")
    assert text.rsplit("_", 1)[1] not in str(entry.detail)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param({"name": " "}, "Say what the token is for.", id="no name"),
        pytest.param({"scopes": []}, "Choose at least one thing", id="no scope"),
        pytest.param({"scopes": ["admin"]}, "not one of the available choices", id="scope"),
        pytest.param({"days": "9999"}, "not one of the available choices", id="for ever"),
        pytest.param(
            {"scopes": ["read", "extend"]}, "needs the permission dashboard.extend_run", id="extend"
        ),
    ],
)
def test_a_bad_form_makes_nothing(as_operator: Client, change: object, words: str) -> None:
    response = as_operator.post(URL, {**FORM, **change})  # type: ignore[dict-item]
    assert response.status_code == 400
    assert words in response.text
    assert not ApiToken.objects.exists()


def test_there_is_a_most(as_operator: Client, operator: User) -> None:
    for _ in range(tokens.MOST_TOKENS):
        tokens.issue(operator, name="x", scopes=["read"], days=7, by=operator)
    response = as_operator.post(URL, FORM)
    assert response.status_code == 400
    assert "There may be 50 tokens" in response.text


def test_a_person_revokes_their_own_and_nobody_elses(
    as_operator: Client, as_viewer: Client, operator: User
) -> None:
    token = tokens.issue(operator, name="b", scopes=["read"], days=7, by=operator).token
    url = f"{URL}{token.pk}/revoke/"
    assert as_viewer.post(url).status_code == 404
    assert as_operator.get(url).status_code == 405
    assert "The token b is revoked." in as_operator.post(url, follow=True).text
    assert "was revoked before" in as_operator.post(url, follow=True).text
    token.refresh_from_db()
    assert token.revoked_at is not None
    assert f"kst_{token.prefix}" not in as_viewer.get(URL).text


def test_names_are_escaped_and_the_page_needs_a_login(as_operator: Client) -> None:
    as_operator.post(URL, {**FORM, "name": "<script>x</script>"})
    assert "<script>x" not in as_operator.get(URL).text
    assert Client().get(URL).status_code == 302


def test_csrf() -> None:
    User.objects.create_user("carla", password="secret")
    client = Client(enforce_csrf_checks=True)
    client.login(username="carla", password="secret")
    assert client.post(URL, FORM).status_code == 403


def test_a_superuser_makes_tokens_for_others_and_revokes_them(viewer: User, operator: User) -> None:
    root = User.objects.create_superuser("root", password="secret")
    client = Client()
    client.force_login(root)
    add = "/admin/dashboard/apitoken/add/"
    assert client.get(add).status_code == 200
    response = client.post(add, {"user": viewer.pk, "name": "b", "scopes": ["read"], "days": "7"})
    (text,) = re.findall(r"kst_[a-z0-9]{12}_[A-Za-z0-9_-]{43}", response.text)
    assert "no-store" in response["Cache-Control"]
    token = tokens.authenticate(text, "here")
    assert (token.user, token.created_by) == (viewer, root)
    assert ApiToken.objects.count() == 1
    for url in ("/admin/dashboard/apitoken/", f"/admin/dashboard/apitoken/{token.pk}/change/"):
        page = client.get(url).text
        assert token.prefix in page
        assert token.digest not in page
    client.post("/admin/dashboard/apitoken/", {"action": "revoke", "_selected_action": [token.pk]})
    token.refresh_from_db()
    assert token.revoked_by == root


def test_staff_that_is_no_superuser_makes_none_for_others(operator: User) -> None:
    from django.contrib.auth.models import Permission

    operator.is_staff = True
    operator.save()
    operator.user_permissions.add(*Permission.objects.filter(codename__endswith="_apitoken"))
    client = Client()
    client.force_login(operator)
    assert client.get("/admin/dashboard/apitoken/").status_code == 200
    assert client.get("/admin/dashboard/apitoken/add/").status_code == 403
