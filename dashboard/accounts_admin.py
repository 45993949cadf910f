"""Users and groups on the admin site, with a row of the audit for everything that is done there.

The row is written in the transaction of the change. What is done in a shell (createsuperuser,
changepassword) has none: who has that shell has the database.
"""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, User
from django.db import models, transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse

from dashboard import audit
from dashboard.models import AuditEntry

Verb = AuditEntry.Verb


class Audited(admin.ModelAdmin):
    """Every addition, change and deletion is a row: by whom, of which name, and what of it."""

    created: ClassVar[Verb]
    changed: ClassVar[Verb]
    deleted: ClassVar[Verb]

    def log_addition(self, request: HttpRequest, obj: models.Model, message: Any) -> Any:
        entry = super().log_addition(request, obj, message)
        audit.write(request.user, self.created, str(obj))
        return entry

    def log_change(self, request: HttpRequest, obj: models.Model, message: Any) -> Any:
        """``message`` names the fields, never what is in them."""
        entry = super().log_change(request, obj, message)
        audit.write(request.user, self.changed, str(obj), message=entry.get_change_message())
        return entry

    def delete_model(self, request: HttpRequest, obj: models.Model) -> None:
        with transaction.atomic():
            name = str(obj)
            super().delete_model(request, obj)
            audit.write(request.user, self.deleted, name)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        with transaction.atomic():
            names = [str(obj) for obj in queryset]
            super().delete_queryset(request, queryset)
            for name in names:
                audit.write(request.user, self.deleted, name)


class AuditedUsers(Audited, UserAdmin):
    created, changed, deleted = Verb.CREATE_USER, Verb.CHANGE_USER, Verb.DELETE_USER

    def user_change_password(
        self, request: HttpRequest, id: str, form_url: str = ""
    ) -> HttpResponse:
        with transaction.atomic():
            return super().user_change_password(request, id, form_url)


class AuditedGroups(Audited, GroupAdmin):
    created, changed, deleted = Verb.CREATE_GROUP, Verb.CHANGE_GROUP, Verb.DELETE_GROUP


for model, model_admin in ((User, AuditedUsers), (Group, AuditedGroups)):
    admin.site.unregister(model)
    admin.site.register(model, model_admin)
