"""People who decide, and a database that the rounds of a test share."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.db import connection

from tests.faults.checker import Database
from tests.faults.story import PEOPLE


@pytest.fixture
def people(transactional_db: None) -> list[User]:
    """Everybody who may decide and configure."""
    may = Permission.objects.filter(codename__in=("decide_waitingpod", "control_run"))
    users = [User.objects.create_user(name) for name in PEOPLE]
    for user in users:
        user.user_permissions.set(may)
    return users


@pytest.fixture
def database() -> Database:
    """The test's own database, by SQL."""

    def ask(question: str, *values: Any) -> list[dict[str, Any]]:
        with connection.cursor() as cursor:
            cursor.execute(question.replace("?", "%s"), values)
            names = [column[0] for column in cursor.description]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    return ask
