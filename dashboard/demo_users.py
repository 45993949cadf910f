"""The demo's first users: who may do what, to try out permissions and approvals by two people."""

from __future__ import annotations

import secrets
from typing import Final

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission

from dashboard import audit
from dashboard.models import AuditEntry

ADMIN: Final = "admin"
APPROVER: Final = "approver"
VIEWER: Final = "viewer"

#: What each may, in the words of the demo's greeting.
ROLES: Final = {
    ADMIN: "may do everything",
    APPROVER: "may approve and deny",
    VIEWER: "may only look",
}
DECIDE: Final = "decide_waitingpod"


def ensure_users() -> dict[str, str]:
    """Create the users that are missing; return the new ones' passwords by name.

    A password is known at this moment only: the database keeps a hash of it.
    """
    users = get_user_model().objects
    created: dict[str, str] = {}
    for name in ROLES:
        if users.filter(username=name).exists():
            continue
        audit.write(None, AuditEntry.Verb.CREATE_USER, name, message="by make demo")
        created[name] = secrets.token_urlsafe(9)
        is_admin = name == ADMIN
        user = users.create_user(
            name, password=created[name], is_staff=is_admin, is_superuser=is_admin
        )
        if name == APPROVER:
            user.user_permissions.add(
                Permission.objects.get(content_type__app_label="dashboard", codename=DECIDE)
            )
    return created
