"""The demo's first users: `admin` may decide and control, `viewer` may only look."""

from __future__ import annotations

import secrets

from django.contrib.auth import get_user_model

ADMIN = "admin"
VIEWER = "viewer"


def ensure_users() -> dict[str, str]:
    """Create the users that are missing; return the new ones' passwords by name.

    A password is known at this moment only: the database keeps a hash of it.
    """
    users = get_user_model().objects
    created: dict[str, str] = {}
    for name, may_everything in ((ADMIN, True), (VIEWER, False)):
        if users.filter(username=name).exists():
            continue
        created[name] = secrets.token_urlsafe(9)
        users.create_user(
            name, password=created[name], is_staff=may_everything, is_superuser=may_everything
        )
    return created
