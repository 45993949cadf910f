"""The TLS side of an extender's configuration (kube-scheduler 1.36)."""

from __future__ import annotations

import base64
import ssl
import tempfile
from pathlib import Path

from scheduler_core.config.types import Extender, ExtenderTLS

__all__ = ["TLSConfigError", "is_insecure", "tls_context"]


class TLSConfigError(ValueError):
    """Certificates or keys cannot be used. The text names no secret."""


def is_insecure(config: Extender) -> bool:
    """Whether the server's certificate is not checked: asked for, or ``enableHTTPS`` without a CA
    to check it by."""
    tls = config.tls or ExtenderTLS()
    return tls.insecure or (config.enable_https and not _has_ca(tls))


def tls_context(config: Extender) -> ssl.SSLContext:
    """The context for calls to an extender.

    Raises:
        TLSConfigError: a file cannot be read, or its content is none; a CA together with
            ``insecure``.
    """
    tls = config.tls or ExtenderTLS()
    if tls.insecure and _has_ca(tls):
        raise TLSConfigError(
            "specifying a root certificates file with the insecure flag is not allowed"
        )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if is_insecure(config):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif _has_ca(tls):
        _load_ca(context, tls)
    else:
        context.load_default_certs()
    _load_client(context, tls)
    return context


def _has_ca(tls: ExtenderTLS) -> bool:
    return bool(tls.ca_file or tls.ca_data)


def _load_ca(context: ssl.SSLContext, tls: ExtenderTLS) -> None:
    pem = _content(tls.ca_data, tls.ca_file)
    try:
        context.load_verify_locations(cadata=pem.decode("ascii"))
    except (ssl.SSLError, ValueError) as exc:
        raise TLSConfigError(f"unable to load root certificates: {_reason(exc)}") from exc


def _load_client(context: ssl.SSLContext, tls: ExtenderTLS) -> None:
    """The scheduler's own certificate, where there are both a certificate and a key."""
    if not (tls.cert_data or tls.cert_file) or not (tls.key_data or tls.key_file):
        return
    cert = _content(tls.cert_data, tls.cert_file)
    key = _content(tls.key_data, tls.key_file)
    # Python takes them from files alone; this folder is its user's only and gone at once.
    with tempfile.TemporaryDirectory(prefix="kubesched-") as folder:
        cert_path, key_path = Path(folder, "cert.pem"), Path(folder, "key.pem")
        cert_path.write_bytes(cert)
        key_path.touch(mode=0o600)
        key_path.write_bytes(key)
        try:
            # Without a password of ours OpenSSL would ask for one on the terminal.
            context.load_cert_chain(cert_path, key_path, password=lambda: b"")
        except (ssl.SSLError, ValueError) as exc:
            text = f"the client certificate and its key cannot be used: {_reason(exc)}"
            raise TLSConfigError(text) from exc


def _content(data: str, file: str) -> bytes:
    """What is written in the configuration counts before what a file has."""
    if data:
        return base64.b64decode(data)
    try:
        return Path(file).read_bytes()
    except OSError as exc:
        raise TLSConfigError(f"open {file}: {(exc.strerror or str(exc)).lower()}") from exc


def _reason(exc: Exception) -> str:
    if isinstance(exc, UnicodeDecodeError):
        return "not PEM text"
    return (getattr(exc, "reason", None) or str(exc)).replace("_", " ").lower()
