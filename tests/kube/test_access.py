"""Descriptions of clusters: what is taken, what is refused, and that no secret is told."""

from __future__ import annotations

import base64
import json
import logging
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)
from kubernetes.config import incluster_config

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
from scheduler_core.kube.credentials import Credentials
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
    return dict(connection._credentials.headers())


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


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(
            f"users: [{SECRET}: [", "config: the kubeconfig is not YAML in line", id="YAML"
        ),
        pytest.param(f"- {SECRET}", "config: the kubeconfig is not a mapping", id="a list"),
        pytest.param("a: " + "[" * 50_000, "config: the kubeconfig is nested too", id="deep"),
        pytest.param("\x00", "config: the kubeconfig is not YAML", id="binary"),
        pytest.param(
            "contexts: 7", "config: contexts of the kubeconfig is not a list", id="number"
        ),
    ],
)
def test_files_that_are_no_kubeconfig(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "config"
    path.write_text(text)
    with pytest.raises(AccessError, match=message) as caught:
        connect(KubeconfigFile(str(path)))
    assert SECRET not in str(caught.value)


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


def test_inside_a_cluster_the_token_is_read_anew(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It lives for an hour, and the kubelet writes the next one into the file."""
    token, ca = tmp_path / "token", tmp_path / "ca.crt"
    token.write_text("one\n")
    ca.write_bytes(make()["certificate"])
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(token))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(ca))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    connection = connect(InCluster())
    assert connection.server == "https://[::1]:443"
    assert headers(connection) == {"authorization": "Bearer one"}
    token.write_text("two")
    connection._credentials._read_at -= 60
    assert headers(connection) == {"authorization": "Bearer two"}


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
        pytest.param("a: " + "[" * 50_000, "is nested too deeply in line 1", id="deep"),
        pytest.param(
            "a: &a [x, x, x, x, x, x, x, x, x]\n"
            + "".join(
                f"{n}: &{n} [{', '.join(['*' + p] * 9)}]\n" for p, n in pairwise("abcdefghijkl")
            )
            + "current-context: x\ncontexts: [{name: *l}]\n",
            r'has no context "x" \(it has: none\)',
            id="a name without end",
        ),
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
        pytest.param({"token": ["a"]}, '"token" .* is no text', id="no text"),
        pytest.param({"token": "a", "as": "joe"}, '"as" .* act as somebody else', id="as another"),
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
    ("cluster", "message"),
    [
        pytest.param(
            {"insecure-skip-tls-verify": "false"}, "must be true or false", id="insecure by a text"
        ),
        pytest.param({"proxy-url": "socks5://127.0.0.1:1"}, "the proxy of the", id="proxy"),
        pytest.param({"server": "https://127.0.0.1:1?token=x"}, "without [?] and #", id="query"),
        pytest.param(
            {"server": "https://a:b@127.0.0.1:1"}, "not contain a password", id="password"
        ),
        pytest.param({"certificate-authority-data": "QUFB"}, "is not PEM", id="authority"),
    ],
)
@pytest.mark.parametrize("as_file", [False, True], ids=["pasted", "file of this machine"])
def test_clusters_that_cannot_be_used(
    tmp_path: Path, cluster: dict[str, Any], message: str, as_file: bool
) -> None:
    config = yaml.safe_load(kubeconfig().replace("http://127", "https://127"))
    config["clusters"][0]["cluster"].update(cluster)
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(config))
    with pytest.raises(AccessError, match=message):
        connect(KubeconfigFile(str(path)) if as_file else Kubeconfig(path.read_text()))


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


@pytest.mark.parametrize("token", [f"a\n{SECRET}", f"{SECRET}\u00e4", f"a\x00{SECRET}"])
def test_a_token_that_cannot_be_sent_is_not_quoted(
    token: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Sent, the library would put it into its error."""
    for access in (Token("http://127.0.0.1:1", token), Kubeconfig(kubeconfig(token=token))):
        with pytest.raises(
            AccessError, match="the token has characters that no token has"
        ) as caught:
            connect(access)
        assert SECRET not in str(caught.value)
    assert SECRET not in caplog.text


# -- a kubeconfig of this machine ------------------------------------------------------------------


def of_file(folder: Path, **user: Any) -> Any:
    path = folder / "config"
    path.write_text(kubeconfig(**user))
    return connect(KubeconfigFile(str(path)))


def test_a_token_file_beside_the_kubeconfig_is_read_anew(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("one\n")
    connection = of_file(tmp_path, tokenFile="token")
    assert headers(connection) == {"authorization": "Bearer one"}
    (tmp_path / "token").write_text("two\n")
    assert headers(connection) == {"authorization": "Bearer one"}
    connection._credentials._read_at -= 60
    assert headers(connection) == {"authorization": "Bearer two"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(None, "token: No such file or directory", id="none"),
        pytest.param("", "token is empty", id="empty"),
        pytest.param(f"a\n{SECRET}", "characters that no token has", id="two lines"),
    ],
)
def test_token_files_that_are_none(tmp_path: Path, text: str | None, message: str) -> None:
    if text is not None:
        (tmp_path / "token").write_text(text)
    with pytest.raises(AccessError, match=message) as caught:
        of_file(tmp_path, tokenFile="token")
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("user", "message"),
    [
        pytest.param(
            {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "./nothing"}},
            r"the program of the kubeconfig \(exec\) gave no credentials",
            id="a program that is not there",
        ),
        pytest.param(
            {"auth-provider": {"name": "azure", "config": {"key": SECRET}}},
            'auth-provider "azure" of the kubeconfig gave no credentials',
            id="an auth-provider of yesterday",
        ),
        pytest.param({"token": SECRET, "as-groups": ["g"]}, '"as-groups"', id="as another"),
    ],
)
def test_credentials_that_are_not_to_be_had(
    tmp_path: Path, user: dict[str, Any], message: str
) -> None:
    """Without a word the requests would be those of nobody, or of somebody with other rights."""
    with pytest.raises(AccessError, match=message) as caught:
        of_file(tmp_path, **user)
    assert SECRET not in str(caught.value)


def test_a_user_that_is_not_there(tmp_path: Path) -> None:
    config = yaml.safe_load(kubeconfig())
    config["users"] = []
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(config))
    with pytest.raises(AccessError, match='the kubeconfig has no user "me"'):
        connect(KubeconfigFile(str(path)))


def test_a_program_that_gives_a_token(tmp_path: Path) -> None:
    user = {"exec": _program(tmp_path, token="given")}
    assert headers(of_file(tmp_path, **user)) == {"authorization": "Bearer given"}


def _program(folder: Path, **status: str) -> dict[str, Any]:
    program = folder / "login.sh"
    answer = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential"}
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{json.dumps({**answer, 'status': status})}\nEND\n")
    program.chmod(0o700)
    return {"apiVersion": answer["apiVersion"], "command": "./login.sh"}


def test_a_program_that_gives_a_certificate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = {name: value.decode() for name, value in make().items()}
    left = tmp_path / "left"
    left.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(left))
    given = {"clientCertificateData": pair["certificate"], "clientKeyData": pair["key"]}
    path = tmp_path / "config"
    text = kubeconfig(exec=_program(tmp_path, **given))
    path.write_text(text.replace("http://127", "https://127"))
    assert headers(connect(KubeconfigFile(str(path)))) == {}
    assert list(left.iterdir()) == []


def test_a_certificate_in_a_file_and_its_key_in_the_kubeconfig(tmp_path: Path) -> None:
    pair = make()
    (tmp_path / "me.crt").write_bytes(pair["certificate"])
    user = {
        "client-certificate": "me.crt",
        "client-key-data": base64.b64encode(pair["key"]).decode(),
    }
    path = tmp_path / "config"
    path.write_text(kubeconfig(**user).replace("http://127", "https://127"))
    assert connect(KubeconfigFile(str(path))).server == "https://127.0.0.1:1"


def test_an_encrypted_key_is_not_asked_for_on_a_terminal() -> None:
    pair = make()
    key = load_pem_private_key(pair["key"], None).private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"hidden")
    )
    data = {"client-certificate-data": pair["certificate"], "client-key-data": key}
    user = {name: base64.b64encode(value).decode() for name, value in data.items()}
    with pytest.raises(AccessError, match="or the key is encrypted"):
        connect(Kubeconfig(kubeconfig(**user).replace("http://127", "https://127")))


# -- credentials that are renewed ------------------------------------------------------------------


class Reading:
    def __init__(self) -> None:
        self.now = 0.0
        self.asked = 0
        self.value: str | Exception = "Bearer one"

    def __call__(self) -> str:
        self.asked += 1
        if isinstance(self.value, Exception):
            raise self.value
        return self.value


def test_credentials_are_asked_for_now_and_then() -> None:
    reading = Reading()
    credentials = Credentials(reading, 60, lambda: reading.now)
    for _ in range(1000):
        credentials.headers()
    assert reading.asked == 1
    reading.now, reading.value = 60.0, "Bearer two"
    assert credentials.headers() == {"authorization": "Bearer two"}


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(AccessError("the token file is empty"), id="refused"),
        pytest.param(RuntimeError(f"program said {SECRET}"), id="a program that fails"),
        pytest.param(f"Bearer a\n{SECRET}", id="not to be sent"),
    ],
)
def test_what_cannot_be_renewed_goes_on_being_used(
    fault: str | Exception, caplog: pytest.LogCaptureFixture
) -> None:
    """An exception here would end the thread that renews the lease."""
    reading = Reading()
    credentials = Credentials(reading, 60, lambda: reading.now)
    reading.value = fault
    for _ in range(10):
        reading.now += 60
        assert credentials.headers() == {"authorization": "Bearer one"}
        credentials.headers()
    assert reading.asked == 11  # not with every request
    assert len(caplog.records) == 1  # said once
    assert SECRET not in caplog.text
    reading.now, reading.value = reading.now + 60, "Bearer two"
    assert credentials.headers() == {"authorization": "Bearer two"}


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
