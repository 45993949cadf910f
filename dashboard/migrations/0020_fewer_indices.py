"""Indices that longer ones begin like: each row cost them too, and PostgreSQL, as long as it had
not analysed a table, read a whole run through them rather than a few rows through the longer one.
"""

from __future__ import annotations

from typing import ClassVar

import django.db.models.deletion
from django.db import migrations, models

_INDICES = {
    "dashboard_sandboxwrite_cluster_id_47fcae7a": ("dashboard_sandboxwrite", "cluster_id"),
    "dashboard_schedulingcycle_run_id_60bbd5af": ("dashboard_schedulingcycle", "run_id"),
    "dashboard_cyclematrix_run_id_bfc9ccfc": ("dashboard_cyclematrix", "run_id"),
}
_KEYS = (
    ("sandboxwrite", "cluster", "dashboard.cluster", "writes"),
    ("schedulingcycle", "run", "dashboard.schedulerrun", "cycles"),
    ("cyclematrix", "run", "dashboard.schedulerrun", "matrices"),
)


class Migration(migrations.Migration):
    dependencies: ClassVar = [("dashboard", "0019_long_worker_names")]

    operations: ClassVar = [
        # SQLite would copy the whole table for what Django makes of it.
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.RunSQL(
                    f'DROP INDEX IF EXISTS "{name}"',
                    f'CREATE INDEX "{name}" ON "{table}" ("{column}")',
                )
                for name, (table, column) in _INDICES.items()
            ],
            state_operations=[
                migrations.AlterField(
                    model,
                    name,
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name=related,
                        to=to,
                    ),
                )
                for model, name, to, related in _KEYS
            ],
        )
    ]
