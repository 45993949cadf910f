"""A certificate authority of one's own, and the server's certificate by it."""

from __future__ import annotations

import datetime
import ipaddress
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

__all__ = ["Certificates", "certificates_in"]

_CA_DAYS: Final = 3650
_SERVER_DAYS: Final = 365
#: a server's certificate is made anew when it has less than this left
_RENEW_DAYS: Final = 30
_LOCAL: Final = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class Certificates:
    """Where they are. `ca_pem` goes into kubeconfigs."""

    certificate: Path
    key: Path
    ca_pem: bytes


def certificates_in(folder: Path, hosts: Sequence[str] = ()) -> Certificates:
    """The certificates of a folder, made at the first call; keys are readable by the owner alone.

    Args:
        hosts: names and addresses under which the server is reached, besides this machine's own.

    Raises:
        OSError: the folder cannot be written.
        ValueError: what lies there is no certificate.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    names = tuple(dict.fromkeys((*_LOCAL, *hosts)))
    ca, ca_key = _authority(folder)
    certificate, key = folder / "server.crt", folder / "server.key"
    if not _is_good(certificate, key, ca, names):
        _make_server(certificate, key, ca, ca_key, names)
    return Certificates(certificate, key, ca.public_bytes(serialization.Encoding.PEM))


_Key = ec.EllipticCurvePrivateKey


def _authority(folder: Path) -> tuple[x509.Certificate, _Key]:
    certificate, key = folder / "ca.crt", folder / "ca.key"
    if certificate.exists() and key.exists():
        loaded = serialization.load_pem_private_key(key.read_bytes(), None)
        assert isinstance(loaded, ec.EllipticCurvePrivateKey)
        return x509.load_pem_x509_certificate(certificate.read_bytes()), loaded
    made_key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kubesched sandbox CA")])
    usage = _key_usage(key_cert_sign=True)
    made = (
        _builder(name, name, made_key, _CA_DAYS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(
            x509.SubjectKeyIdentifier.from_public_key(made_key.public_key()), critical=False
        )
        .sign(made_key, hashes.SHA256())
    )
    _write_key(key, made_key)
    _write(certificate, made.public_bytes(serialization.Encoding.PEM), 0o644)
    return made, made_key


def _make_server(
    path: Path, key_path: Path, ca: x509.Certificate, ca_key: _Key, names: Sequence[str]
) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kubesched sandbox API")])
    made = (
        _builder(subject, ca.subject, key, _SERVER_DAYS)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(digital_signature=True), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([_name(n) for n in names]), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False
        )
        .sign(ca_key, hashes.SHA256())
    )
    _write_key(key_path, key)
    _write(path, made.public_bytes(serialization.Encoding.PEM), 0o644)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: _Key, days: int
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        # Clocks of class rooms differ.
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=days))
    )


def _key_usage(*, key_cert_sign: bool = False, digital_signature: bool = False) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=digital_signature,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=key_cert_sign,
        crl_sign=key_cert_sign,
        encipher_only=False,
        decipher_only=False,
    )


def _name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _is_good(path: Path, key: Path, ca: x509.Certificate, names: Sequence[str]) -> bool:
    if not path.exists() or not key.exists():
        return False
    found = x509.load_pem_x509_certificate(path.read_bytes())
    soon = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=_RENEW_DAYS)
    if found.issuer != ca.subject or found.not_valid_after_utc < soon:
        return False
    try:
        found.verify_directly_issued_by(ca)
        alternatives = found.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except (ValueError, TypeError, x509.ExtensionNotFound):
        return False
    except Exception:  # noqa: BLE001 - InvalidSignature: another authority of the same name
        return False
    known = set(alternatives.value)
    return all(_name(name) in known for name in names)


def _write_key(path: Path, key: _Key) -> None:
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    _write(path, pem, 0o600)


def _write(path: Path, content: bytes, mode: int) -> None:
    """All of it or nothing, and never readable by others for a moment."""
    draft = path.with_suffix(path.suffix + ".new")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(content)
    draft.replace(path)
