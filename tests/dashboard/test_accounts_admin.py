"""What is done to users and groups on the admin site is in the audit, in the same transaction."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client

from dashboard.models import AuditEntry

pytestmark = pytest.mark.django_db
PASSWORD = "four words for otto"


def rows() -> list[tuple[str, str, str, str]]:
    found = AuditEntry.objects.order_by("pk")
    return [(row.username, row.verb, row.target, row.message) for row in found]


@pytest.fixture
def otto() -> User:
    return User.objects.create_user("otto", password=PASSWORD)


def test_a_new_user(admin_client: Client) -> None:
    form = {"username": "otto", "password1": PASSWORD, "password2": PASSWORD}
    assert admin_client.post("/admin/auth/user/add/", form).status_code == 302
    assert rows() == [("admin", "create_user", "otto", "")]


def test_a_form_with_faults_leaves_no_row(admin_client: Client) -> None:
    form = {"username": "otto", "password1": PASSWORD, "password2": "another"}
    assert admin_client.post("/admin/auth/user/add/", form).status_code == 200
    assert rows() == []


def test_a_change_names_the_fields(admin_client: Client, otto: User) -> None:
    joined = {"date_joined_0": "2026-09-01", "date_joined_1": "12:00:00"}
    form = {
        "username": "otto", "is_active": "on", "is_superuser": "on", **joined,
        **{f"initial-{name}": value for name, value in joined.items()},
    }  # fmt: skip
    assert admin_client.post(f"/admin/auth/user/{otto.pk}/change/", form).status_code == 302
    assert rows() == [("admin", "change_user", "otto", "Changed Superuser status.")]


def test_a_new_password_is_told_not_shown(admin_client: Client, otto: User) -> None:
    form = {"password1": "another five words now", "password2": "another five words now"}
    page = f"/admin/auth/user/{otto.pk}/password/"
    assert admin_client.post(page, {**form, "usable_password": "true"}).status_code == 302
    ((who, verb, target, message),) = rows()
    assert (who, verb, target) == ("admin", "change_user", "otto")
    assert message == "Changed password."


def test_a_user_that_goes(admin_client: Client, otto: User) -> None:
    answer = admin_client.post(f"/admin/auth/user/{otto.pk}/delete/", {"post": "yes"})
    assert answer.status_code == 302
    assert rows() == [("admin", "delete_user", "otto", "")]


def test_several_that_go_at_once(admin_client: Client) -> None:
    groups = [Group.objects.create(name=name) for name in ("leads", "ops")]
    form = {
        "action": "delete_selected", "_selected_action": [group.pk for group in groups],
        "post": "yes",
    }  # fmt: skip
    assert admin_client.post("/admin/auth/group/", form).status_code == 302
    assert rows() == [
        ("admin", "delete_group", "leads", ""),
        ("admin", "delete_group", "ops", ""),
    ]


def test_a_group_that_comes_and_changes(admin_client: Client) -> None:
    assert admin_client.post("/admin/auth/group/add/", {"name": "leads"}).status_code == 302
    page = f"/admin/auth/group/{Group.objects.get().pk}/change/"
    assert admin_client.post(page, {"name": "ml-leads"}).status_code == 302
    assert rows() == [
        ("admin", "create_group", "leads", ""),
        ("admin", "change_group", "ml-leads", "Changed Name."),
    ]
