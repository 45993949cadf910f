from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("dashboard", "0006_approvals")]

    operations = [
        migrations.AddField(
            model_name="schedulerrun",
            name="rows_refused",
            field=models.BigIntegerField(
                default=0, help_text="Rows that the database refused and that were given up."
            ),
        ),
    ]
