"""Connections to an API server: the one module that imports the `kubernetes` client.

Of that client come what it does well: it reads kubeconfigs and service accounts, renews their
tokens, and makes connection pools of what it has read.
"""

from __future__ import annotations

import base64
import binascii
import logging
import os
import socket
import ssl
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import urllib3
from kubernetes.client import ApiClient, Configuration
from kubernetes.client.rest import should_bypass_proxies
from kubernetes.config import (
    ConfigException,
    incluster_config,
    kube_config,
    load_incluster_config,
    load_kube_config_from_dict,
)
from urllib3.connection import HTTPConnection
from urllib3.exceptions import InsecureRequestWarning

from .access import (
    Access,
    AccessError,
    InCluster,
    Kubeconfig,
    KubeconfigFile,
    Token,
    check_cluster,
    check_user,
    contexts_of,
)
from .access import read_kubeconfig as read_text
from .credentials import ASK_SECONDS, FILE_SECONDS, Credentials, of_token_file
from .pool import PoolTransport

__all__ = ["Connection", "connect"]

log = logging.getLogger(__name__)

#: what a pool would read from files, and has been read already
_OF_FILES: Final = ("ca_certs", "ca_cert_data", "cert_file", "key_file")

_NO_AUTHORITY: Final = "the certificate authority is not PEM of a certificate"
_NO_PAIR: Final = "client certificate and key do not belong together, or the key is encrypted"
_one_at_a_time = threading.Lock()

#: seconds of silence before the kernel asks whether the other side is there, seconds between two
#: questions, and how many go unanswered before the connection counts as dead
_KEEPALIVE: Final = (30, 10, 3)


class Connection:
    """One API server and who we are to it. Thread-safe.

    Attributes:
        server: its address, for people.
    """

    def __init__(
        self,
        configuration: Configuration,
        tls: ssl.SSLContext | None,
        token_file: Path | None = None,
    ) -> None:
        """``token_file``: where the token is, instead of in the configuration.

        Raises:
            AccessError
        """
        self.server = _shown(configuration.host)
        _check_proxy(configuration)
        if not configuration.verify_ssl:
            log.warning("the certificate of %s is not looked at, as was asked for", self.server)
            urllib3.disable_warnings(InsecureRequestWarning)  # said once is enough
        self._configuration = configuration
        self._tls = tls
        if token_file is None:
            self._credentials = Credentials(self._token, ASK_SECONDS)
        else:
            self._credentials = Credentials(of_token_file(token_file), FILE_SECONDS)

    def open(self, connections: int, *, waits: bool = True) -> PoolTransport:
        """A transport with at most so many connections at once; further requests wait for one, or
        get one of their own where ``waits`` is False."""
        self._configuration.connection_pool_maxsize = connections
        self._configuration.socket_options = _socket_options()
        client = ApiClient(self._configuration)
        manager: urllib3.PoolManager = client.rest_client.pool_manager
        manager.connection_pool_kw["block"] = waits
        if self._tls is not None:
            for name in _OF_FILES:
                manager.connection_pool_kw.pop(name, None)
            manager.connection_pool_kw["ssl_context"] = self._tls
        return PoolTransport(
            manager, self._configuration.host, self._credentials.headers, urlencode
        )

    def _token(self) -> str:
        """Of the client, which renews it where its kubeconfig says how."""
        found = self._configuration.auth_settings().get("BearerToken")
        return str(found["value"] or "") if found else ""


def connect(access: Access) -> Connection:
    """Raises:
    AccessError: it cannot be used; whether the server answers is not tried.
    """
    makers: dict[type, Callable[[Any], Connection]] = {
        KubeconfigFile: _of_file,
        Kubeconfig: _of_text,
        InCluster: _in_cluster,
        Token: _of_token,
    }
    try:
        return makers[type(access)](access)
    except ConfigException as fault:
        raise AccessError(str(fault)) from None
    except OSError as fault:
        text = f"{fault.filename}: {fault.strerror}" if fault.filename else type(fault).__name__
        raise AccessError(f"a file of the cluster's description cannot be used ({text})") from None
    except (ValueError, TypeError, KeyError, AttributeError) as fault:
        # Of a library fed with what people wrote; its text may quote a secret.
        raise AccessError(
            f"the description of the cluster is faulty ({type(fault).__name__})"
        ) from None


def _of_file(access: KubeconfigFile) -> Connection:
    configuration = _configuration()
    path = access.path or kube_config.KUBE_CONFIG_DEFAULT_LOCATION
    for part in filter(None, path.split(os.pathsep)):
        _check_file(Path(part).expanduser())
    loader = kube_config._get_kube_config_loader(
        filename=path, active_context=access.context or None
    )
    check_cluster(loader._cluster.value)
    wanted = loader._current_context["context"].safe_get("user")
    if wanted and loader._user is None:
        raise AccessError(f'the kubeconfig has no user "{wanted}"')
    user = loader._user.value if loader._user else {}
    check_user(user)
    ca, certificate, key = _taken_out(loader._cluster.value, user)
    with _files_of_programs(user):
        loader.load_and_set(configuration)
        tls = _tls(
            configuration,
            ca or _text_of(configuration.ssl_ca_cert),
            not configuration.verify_ssl,
            certificate or _text_of(configuration.cert_file),
            key or _text_of(configuration.key_file),
        )
    _check_address(configuration.host)
    if not certificate:
        _check_credentials(user, loader)
    token_file = user.get("tokenFile")
    if not token_file:
        return Connection(configuration, tls)
    return Connection(
        configuration, tls, Path(loader._get_base_path(loader._user.path), token_file)
    )


def _check_file(path: Path) -> None:
    """What the client would say of it in a library's words, some of which may be secrets."""
    if not path.is_file():
        return
    try:
        contexts_of(path.read_text())
    except AccessError as fault:
        raise AccessError(f"{path}: {fault}") from None
    except UnicodeDecodeError:
        raise AccessError(f"{path}: the kubeconfig is not text") from None


def _check_credentials(user: Mapping[str, Any], loader: Any) -> None:
    """The client says to a log alone, and not to us, that there are none."""
    if hasattr(loader, "token") or getattr(loader, "cert_file", None):
        return
    if user.get("exec"):
        raise AccessError("the program of the kubeconfig (exec) gave no credentials; see the log")
    provider = user.get("auth-provider")
    if provider:
        name = provider.get("name") if isinstance(provider, Mapping) else ""
        raise AccessError(f'auth-provider "{name}" of the kubeconfig gave no credentials')


@contextmanager
def _files_of_programs(user: Mapping[str, Any]) -> Iterator[None]:
    """The client puts the certificate that a program gives into files, and takes all of them away
    at once: one after another, that no other connection's are taken."""
    if not user.get("exec"):
        yield
        return
    with _one_at_a_time:
        try:
            yield
        finally:
            kube_config._cleanup_temp_files()


def _text_of(path: str | None) -> str:
    return Path(path).read_text() if path else ""


def _of_text(access: Kubeconfig) -> Connection:
    config = read_text(access.text, access.context)
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    ca, certificate, key = _taken_out(cluster, user)
    configuration = _configuration()
    load_kube_config_from_dict(config, client_configuration=configuration, persist_config=False)
    _check_address(configuration.host)
    insecure = bool(cluster.get("insecure-skip-tls-verify"))
    return Connection(configuration, _tls(configuration, ca, insecure, certificate, key))


def _in_cluster(_: InCluster) -> Connection:
    configuration = _configuration()
    load_incluster_config(client_configuration=configuration, try_refresh_token=False)
    return Connection(configuration, None, Path(incluster_config.SERVICE_TOKEN_FILENAME))


def _of_token(access: Token) -> Connection:
    _check_address(access.server)
    configuration = _configuration()
    configuration.host = access.server.rstrip("/")
    configuration.verify_ssl = not access.insecure
    if access.token:
        configuration.api_key["BearerToken"] = f"Bearer {access.token.strip()}"
    return Connection(configuration, _tls(configuration, access.ca, access.insecure))


def _configuration() -> Configuration:
    """The client's defaults alone; a proxy of the environment counts, as it does for kubectl."""
    return type.__call__(Configuration)


def _check_address(server: str) -> None:
    found = urlsplit(server)
    if found.scheme not in ("http", "https") or not found.hostname:
        raise AccessError("the address of the server must be http(s)://HOST[:PORT]")
    if found.username or found.password:
        raise AccessError("the address of the server must not contain a password")
    if found.port == 0:
        raise AccessError("the address of the server has port 0")
    if found.query or found.fragment:
        raise AccessError("the address of the server must end with its path, without ? and #")


def _check_proxy(configuration: Configuration) -> None:
    proxy, direct = configuration.proxy, configuration.no_proxy or ""
    if not proxy or should_bypass_proxies(configuration.host, direct):
        return
    if urlsplit(proxy).scheme not in ("http", "https"):
        raise AccessError("the proxy of the cluster must be http(s)://HOST[:PORT]")


def _taken_out(cluster: dict[str, Any], user: dict[str, Any]) -> tuple[str, str, str]:
    """Authority, certificate and key that are embedded, as PEM: kept from the client, which would
    write them into files and leave them there."""
    ca = _decoded(cluster, "certificate-authority-data")
    return ca, _decoded(user, "client-certificate-data"), _decoded(user, "client-key-data")


def _decoded(entry: dict[str, Any], key: str) -> str:
    value = entry.pop(key, None)
    if not value:
        return ""
    try:
        return base64.b64decode(str(value), validate=False).decode()
    except (binascii.Error, UnicodeDecodeError):
        raise AccessError(f'"{key}" of the kubeconfig is not base64 of PEM') from None


def _tls(
    configuration: Configuration, ca: str, insecure: bool, certificate: str = "", key: str = ""
) -> ssl.SSLContext | None:
    if not configuration.host.startswith("https"):
        return None
    try:
        context = ssl.create_default_context(cadata=ca or None)
    except ssl.SSLError:
        raise AccessError(_NO_AUTHORITY) from None
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if certificate or key:
        try:
            with _as_file(certificate + "\n" + key) as path:
                # Without a password an encrypted key would be asked for on a terminal.
                context.load_cert_chain(path, password="")
        except (ssl.SSLError, OSError):
            raise AccessError(_NO_PAIR) from None
    return context


@contextmanager
def _as_file(text: str) -> Iterator[str]:
    """For a library that reads keys from files alone: one that is in memory where there are such,
    and nowhere afterwards."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("client-certificate", os.MFD_CLOEXEC)
        try:
            os.write(descriptor, text.encode())
            yield f"/proc/self/fd/{descriptor}"
        finally:
            os.close(descriptor)
        return
    with tempfile.NamedTemporaryFile("w") as file:
        file.write(text)
        file.flush()
        yield file.name


def _socket_options() -> list[tuple[int, int, int]]:
    idle, interval, count = _KEEPALIVE
    options = [*HTTPConnection.default_socket_options]
    options.append((socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1))
    for name, value in (
        ("TCP_KEEPIDLE", idle),
        ("TCP_KEEPINTVL", interval),
        ("TCP_KEEPCNT", count),
    ):
        if hasattr(socket, name):
            options.append((socket.IPPROTO_TCP, getattr(socket, name), value))
    return options


def _shown(host: str) -> str:
    found = urlsplit(host)
    name = found.hostname or ""
    host = f"[{name}]" if ":" in name else name
    port = f":{found.port}" if found.port else ""
    return f"{found.scheme}://{host}{port}{found.path}"
