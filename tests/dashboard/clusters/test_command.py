"""`manage.py add_cluster`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from dashboard.clusters.models import ClusterConnection
from dashboard.models import Cluster, SchedulerRun
from tests.dashboard.clusters.conftest import TOKEN, Served

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def files(tmp_path: Path, served: Served) -> Path:
    (tmp_path / "config").write_text(served.kubeconfig())
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    (tmp_path / "wrong").write_text("wrong\n")
    (tmp_path / "empty").write_text("")
    (tmp_path / "config.yaml").write_text("kind: Pod\n")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    return tmp_path


def add(*arguments: Any) -> None:
    call_command("add_cluster", *map(str, arguments))


def test_each_way(files: Path, served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    add("a", "--kubeconfig", files / "config", "--context", "one")
    add("b", "--kubeconfig-file", files / "config")
    add("c", "--server", served.url, "--token-file", files / "token")
    found = ClusterConnection.objects.order_by("cluster__name")
    assert [row.method for row in found] == ["kubeconfig", "file", "token"]
    assert [bool(row.sealed) for row in found] == [True, False, True]
    assert found[1].path == str(files / "config")
    run = SchedulerRun.objects.get(cluster__name="a")
    assert f"a is there: /runs/{run.pk}/" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(["--kubeconfig", "nothing"], "nothing: No such file", id="no file"),
        pytest.param(["--kubeconfig", "binary"], "binary: it is not text", id="no text"),
        pytest.param(["--kubeconfig", "config", "--context", "two"], "no context", id="context"),
        pytest.param(["--server", "URL"], "needs --token-file", id="no token"),
        pytest.param(
            ["--server", "URL", "--token-file", "empty"], "needs --token-file", id="empty"
        ),
        pytest.param(["--server", "URL", "--token-file", "wrong"], "401 Unauthorized", id="wrong"),
        pytest.param(["--in-cluster"], "Service host/port is not set", id="no pod"),
        pytest.param(
            ["--kubeconfig", "config", "--config", "config.yaml"], "config.yaml: ", id="config"
        ),
    ],
)
def test_what_cannot_be_done_is_said_and_keeps_nothing(
    files: Path,
    served: Served,
    arguments: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(files)
    with pytest.raises(CommandError, match=message):
        add("a", *(served.url if word == "URL" else word for word in arguments))
    assert not Cluster.objects.exists()
