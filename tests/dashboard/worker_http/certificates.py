"""An authority and what it issues, made for one test."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec


@dataclass(frozen=True, slots=True)
class Pair:
    """PEM files."""

    certificate: Path
    key: Path


class Authority:
    """Issues certificates for servers and clients; ``certificate`` is its own, as a PEM file."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, folder.name)])
        self.certificate = folder / "ca.pem"
        builder = self._builder(self._name, self._key.public_key())
        own = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        self._write(self.certificate, own)

    def issue(self, name: str) -> Pair:
        """For an IP address or any other name."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        alternative: x509.GeneralName = x509.DNSName(name)
        with suppress(ValueError):
            alternative = x509.IPAddress(ip_address(name))
        builder = self._builder(subject, key.public_key()).add_extension(
            x509.SubjectAlternativeName([alternative]), False
        )
        pair = Pair(self._folder / f"{name}.pem", self._folder / f"{name}.key")
        self._write(pair.certificate, builder)
        pair.key.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        return pair

    def _builder(
        self, subject: x509.Name, key: ec.EllipticCurvePublicKey
    ) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
        )

    def _write(self, path: Path, builder: x509.CertificateBuilder) -> None:
        signed = builder.sign(self._key, hashes.SHA256())
        path.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
