"""On PostgreSQL the large JSON of a cycle's row is compressed with lz4, where the server has it."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db import Error, migrations, transaction

#: With pglz, the default, compressing was half the cost of inserting a row.
_STATEMENT = 'ALTER TABLE "dashboard_schedulingcycle" ALTER COLUMN "detail" SET COMPRESSION lz4'


def compress_quickly(apps: Any, schema_editor: Any) -> None:
    connection = schema_editor.connection
    # Before 14 there is no choice; a server may have been built without lz4.
    if connection.vendor != "postgresql" or connection.pg_version < 140_000:
        return
    try:
        with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
            cursor.execute(_STATEMENT)
    except Error:
        return


class Migration(migrations.Migration):
    dependencies: ClassVar = [("dashboard", "0016_remove_cluster_audit")]

    operations: ClassVar = [migrations.RunPython(compress_quickly, migrations.RunPython.noop)]
