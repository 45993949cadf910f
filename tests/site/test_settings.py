"""Settings come from the environment; a start that cannot succeed ends with one line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kubesched_site import environment
from tests.servers import ROOT

SECRET = "k2Zq8-Wx5Vb1Nm7Rt4Yp9Lc3Jd6Hf0Gs-Ae2Ui8Ow5Tq1Xz7Bv4"
PRODUCTION = {
    "SECRET_KEY": SECRET,
    "DATABASE_URL": "postgres://user:pw@db.example.org/kubesched",
    "REDIS_URL": "redis://redis.example.org:6379/0",
    "ALLOWED_HOSTS": "kubesched.example.org",
}


def python(code: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run ``code`` with exactly ``variables`` as environment."""
    return subprocess.run(
        [sys.executable, "-c", code], env=variables, cwd=ROOT, capture_output=True, text=True
    )


def setting(expression: str, **variables: str) -> str:
    done = python(
        f"from kubesched_site import settings; print({expression})",
        DJANGO_SETTINGS_MODULE="kubesched_site.settings",
        **variables,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("missing", sorted(PRODUCTION))
def test_production_stops_with_one_line_that_names_what_is_missing(missing: str) -> None:
    variables = {name: value for name, value in PRODUCTION.items() if name != missing}

    done = python("from kubesched_site import settings", **variables)

    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert len(lines) == 1
    assert missing in lines[0]
    assert all(name not in lines[0] for name in variables)


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(["manage.py", "check"], id="manage.py"),
        pytest.param(["manage.py", "serve"], id="serve"),
        pytest.param(["-m", "celery", "-A", "kubesched_site", "worker"], id="celery"),
        pytest.param(["-m", "daphne", "kubesched_site.asgi:application"], id="daphne"),
    ],
)
def test_every_way_to_start_says_it_in_one_line(command: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, *command], env={}, cwd=ROOT, capture_output=True, text=True
    )

    assert done.returncode == 1
    assert done.stderr.startswith("KubeSched cannot start: production needs")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        pytest.param({"KUBESCHED_MODE": "staging"}, "KUBESCHED_MODE=staging", id="mode"),
        pytest.param({"KUBESCHED_LEASE_SECONDS": "four"}, "KUBESCHED_LEASE_SECONDS=four", id="int"),
        pytest.param(
            {"KUBESCHED_MATRIX_CYCLES": "0"}, "must be greater than zero", id="not positive"
        ),
        pytest.param({"SECURE_HSTS_SECONDS": "x"}, "SECURE_HSTS_SECONDS=x", id="hsts"),
        pytest.param({"REDIS_URL": "http://x"}, "REDIS_URL must begin with", id="redis scheme"),
        pytest.param({"DATABASE_URL": "nonsense"}, "DATABASE_URL", id="database"),
    ],
)
def test_a_value_that_cannot_be_read_is_one_line(variables: dict[str, str], words: str) -> None:
    done = python("from kubesched_site import settings", **{**PRODUCTION, **variables})

    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert words in done.stderr


def test_a_database_password_is_not_printed() -> None:
    done = python(
        "from kubesched_site import settings",
        **{**PRODUCTION, "DATABASE_URL": "postgres://user:hunter2@host:port/x"},
    )

    assert done.returncode == 1
    assert "hunter2" not in done.stderr


def test_production_settings_pass_djangos_deployment_check() -> None:
    done = subprocess.run(
        [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "WARNING"],
        env=PRODUCTION, cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    assert "no issues" in done.stdout


def test_sqlite_takes_its_lock_early_and_logs_ahead(tmp_path: Path) -> None:
    shown = setting(
        "settings.DATABASES['default']['OPTIONS']",
        KUBESCHED_MODE="demo",
        KUBESCHED_DATA_DIR=str(tmp_path),
    )

    assert "'transaction_mode': 'IMMEDIATE'" in shown
    assert "'timeout': 20" in shown
    assert "journal_mode=WAL" in shown
    assert "synchronous=NORMAL" in shown


def test_demo_keeps_everything_in_its_data_folder(tmp_path: Path) -> None:
    shown = setting(
        "settings.DATABASES['default']['NAME'], settings.SECRET_KEY",
        KUBESCHED_MODE="demo",
        KUBESCHED_DATA_DIR=str(tmp_path / "data"),
    )

    key = (tmp_path / "data" / "secret_key").read_text().strip()
    assert str(tmp_path / "data" / "kubesched.sqlite3") in shown
    assert key in shown


def test_postgresql_is_used_where_database_url_names_it() -> None:
    assert setting("settings.DATABASES['default']['ENGINE']", **PRODUCTION).endswith("postgresql")


@pytest.mark.parametrize(
    ("url", "expression", "expected"),
    [
        pytest.param("postgres://u@%2Frun%2Fpg/k", "['HOST']", "/run/pg", id="escaped"),
        pytest.param("postgres://u@/k?host=/run/pg", "['OPTIONS']['host']", "/run/pg", id="query"),
        pytest.param("postgres://u:p%40w@db:5433/k", "['PASSWORD']", "p@w", id="password"),
    ],
)
def test_a_database_address_means_what_it_says(url: str, expression: str, expected: str) -> None:
    variables = {**PRODUCTION, "DATABASE_URL": url}

    assert setting(f"settings.DATABASES['default']{expression}", **variables) == expected


def test_proxy_header_is_trusted_only_when_asked() -> None:
    expression = "getattr(settings, 'SECURE_PROXY_SSL_HEADER', None)"

    assert setting(expression, **PRODUCTION) == "None"
    behind = setting(expression, **PRODUCTION, KUBESCHED_BEHIND_PROXY="true")
    assert behind == "('HTTP_X_FORWARDED_PROTO', 'https')"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        pytest.param("redis://host:6379/2", "redis://host:6379/2", id="tcp stays"),
        pytest.param("rediss://:pw@host/0", "rediss://:pw@host/0", id="tls stays"),
        pytest.param("unix:///run/b.sock", "redis+socket:///run/b.sock", id="socket"),
        pytest.param(
            "unix:///run/b.sock?db=3", "redis+socket:///run/b.sock?virtual_host=3", id="number"
        ),
        pytest.param(
            "unix://:pw@/run/b.sock", "redis+socket://:pw@/run/b.sock", id="socket with password"
        ),
    ],
)
def test_broker_address_as_celery_spells_it(url: str, expected: str) -> None:
    assert environment.celery_broker_url(url) == expected


def test_local_secret_is_made_once_and_private(tmp_path: Path) -> None:
    first = environment.local_secret(tmp_path / "data")

    assert environment.local_secret(tmp_path / "data") == first
    assert len(first) >= 50
    assert (tmp_path / "data" / "secret_key").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "data").stat().st_mode & 0o777 == 0o700


def test_an_empty_secret_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "secret_key").touch()

    with pytest.raises(SystemExit, match="is empty; delete it"):
        environment.local_secret(tmp_path)


def test_runtime_dir_is_short_however_long_the_data_folder_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    deep = tmp_path / ("deep/" * 40)

    found = environment.default_runtime_dir(deep)

    assert len(str(found)) <= environment.LONGEST_RUNTIME_DIR
    assert found != environment.default_runtime_dir(tmp_path / "other")


@pytest.mark.parametrize(
    ("task", "queue"),
    [
        pytest.param("dashboard.tasks.run_scheduler", "loop", id="run"),
        pytest.param("dashboard.tasks.host_sandbox", "sandbox", id="sandbox"),
        pytest.param("dashboard.tasks.prune", "default", id="short task"),
    ],
)
def test_long_tasks_have_a_queue_of_their_own(task: str, queue: str) -> None:
    from kubesched_site.celery import app

    assert app.amqp.router.route({}, task)["queue"].name == queue


def test_beat_calls_tasks_that_exist() -> None:
    from kubesched_site.celery import app

    app.loader.import_default_modules()

    assert {entry["task"] for entry in app.conf.beat_schedule.values()} <= set(app.tasks)
