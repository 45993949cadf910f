"""Descriptions of clusters: what is taken, what is refused, and that no secret is told."""

from __future__ import annotations

import base64
import logging
import tempfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from scheduler_core.kube.access import (
    AccessError,
    InCluster,
    Kubeconfig,
    KubeconfigFile,
    Token,
    contexts_of,
    read_kubeconfig,
)
from scheduler_core.kube.connect import connect
from tests.kube.certificates import make

SECRET = "s3cret-t0ken"


def kubeconfig(**user: Any) -> str:
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "one",
        "contexts": [
            {"name": "two", "context": {"cluster": "b", "user": "me"}},
            {"name": "one", "context": {"cluster": "a", "user": "me"}},
        ],
        "clusters": [
            {"name": "a", "cluster": {"server": "http://127.0.0.1:1"}},
            {"name": "b", "cluster": {"server": "http://127.0.0.1:2/base/"}},
        ],
        "users": [{"name": "me", "user": user or {"token": SECRET}}],
    }
    return yaml.safe_dump(config)


def headers(connection: Any) -> dict[str, str]:
    return dict(connection._headers())


def test_the_current_context_or_another() -> None:
    one, two = connect(Kubeconfig(kubeconfig())), connect(Kubeconfig(kubeconfig(), "two"))
    assert (one.server, two.server) == ("http://127.0.0.1:1", "http://127.0.0.1:2/base")
    assert headers(one) == {"authorization": f"Bearer {SECRET}"}
    assert contexts_of(kubeconfig()) == ["one", "two"]


def test_a_file_of_this_machine(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(kubeconfig())
    assert connect(KubeconfigFile(str(path), "two")).server == "http://127.0.0.1:2/base"
    with pytest.raises(AccessError, match="three"):
        connect(KubeconfigFile(str(path), "three"))
    with pytest.raises(AccessError):
        connect(KubeconfigFile(str(tmp_path / "nothing")))


def test_user_and_password() -> None:
    found = headers(connect(Kubeconfig(kubeconfig(username="me", password="pass"))))
    assert found == {"authorization": f"Basic {base64.b64encode(b'me:pass').decode()}"}


def test_an_address_and_a_token() -> None:
    connection = connect(Token("http://127.0.0.1:8001/", SECRET + "\n"))
    assert connection.server == "http://127.0.0.1:8001"
    assert headers(connection) == {"authorization": f"Bearer {SECRET}"}


def test_outside_a_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(AccessError, match="Service host/port is not set"):
        connect(InCluster())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("a: [", "is not YAML in line 2", id="no YAML"),
        pytest.param("[]", "is not a mapping", id="a list"),
        pytest.param("{}", "no current-context", id="empty"),
        pytest.param(
            "{current-context: x, contexts: [{name: a}]}",
            r'has no context "x" \(it has: a\)',
            id="no such context",
        ),
        pytest.param(
            "{current-context: x, contexts: [{name: x, context: {cluster: c}}]}",
            r'has no cluster "c" \(it has: none\)',
            id="no such cluster",
        ),
        pytest.param(
            "{current-context: x, contexts: [{name: x, context: {cluster: c}}],"
            " clusters: [{name: c, cluster: {}}]}",
            'cluster "c" of the kubeconfig has no server',
            id="no server",
        ),
        pytest.param("contexts: 7\ncurrent-context: x", "contexts .* is not a list", id="number"),
    ],
)
def test_faulty_kubeconfigs(text: str, message: str) -> None:
    with pytest.raises(AccessError, match=message):
        read_kubeconfig(text)


@pytest.mark.parametrize(
    ("user", "message"),
    [
        pytest.param({"exec": {"command": "touch"}}, '"exec" .* run a program', id="exec"),
        pytest.param(
            {"auth-provider": {"name": "gcp"}}, '"auth-provider" .* run a program', id="provider"
        ),
        pytest.param({"tokenFile": "/etc/passwd"}, '"tokenFile" .* names a file', id="token file"),
        pytest.param({"client-key": "/etc/key"}, '"client-key" .* names a file', id="key file"),
        pytest.param(
            {"client-key-data": "%%%", "client-certificate-data": "x"},
            '"client-certificate-data" .* is not base64|do not belong together',
            id="no base64",
        ),
    ],
)
def test_a_kubeconfig_from_elsewhere_runs_nothing_and_reads_nothing(
    user: dict[str, Any], message: str
) -> None:
    with pytest.raises(AccessError, match=message):
        connect(Kubeconfig(kubeconfig(**user).replace("http://127", "https://127")))


@pytest.mark.parametrize(
    "server",
    ["", "127.0.0.1", "ftp://host", "http://", "http://me:pass@host", "http://host:0"],
)
def test_addresses_that_are_none(server: str) -> None:
    with pytest.raises(AccessError, match="the address of the server"):
        connect(Token(server, SECRET))


def test_a_certificate_authority_that_is_none() -> None:
    with pytest.raises(AccessError, match="certificate authority is not PEM"):
        connect(Token("https://127.0.0.1:1", SECRET, ca="-----BEGIN"))


def test_no_secret_in_texts_and_logs(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    accesses = [Kubeconfig(kubeconfig()), Token("http://127.0.0.1:1", SECRET, ca=SECRET)]
    for access in accesses:
        assert SECRET not in repr(access)
        assert SECRET not in repr(connect(access))
    with pytest.raises(AccessError) as caught:
        read_kubeconfig(f"token: {SECRET}: [")
    assert SECRET not in str(caught.value)
    assert SECRET not in caplog.text


@pytest.mark.parametrize("as_file", [False, True], ids=["pasted", "file of this machine"])
def test_keys_leave_no_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, as_file: bool
) -> None:
    """The official client writes them into files and leaves those until the process ends."""
    pair = make()
    left = tmp_path / "left"
    left.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(left))
    data = {key: base64.b64encode(value).decode() for key, value in pair.items()}
    user = {"client-certificate-data": data["certificate"], "client-key-data": data["key"]}
    config = yaml.safe_load(kubeconfig(**user).replace("http://127", "https://127"))
    config["clusters"][0]["cluster"]["certificate-authority-data"] = data["certificate"]
    text = yaml.safe_dump(config)
    path = tmp_path / "config"
    path.write_text(text)
    for _ in range(2):
        connection = connect(KubeconfigFile(str(path)) if as_file else Kubeconfig(text))
        kept = connection.open(1)._manager.connection_pool_kw
        assert list(left.iterdir()) == []
        assert "key_file" not in kept
        assert kept["ssl_context"].get_ca_certs()
