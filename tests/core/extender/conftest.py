from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.core.extender.server import Certificates, FakeExtender


@pytest.fixture
def extender() -> Iterator[Callable[..., FakeExtender]]:
    """Starts extenders: ``extender({"filter": ...})``; they are stopped at the end."""
    started: list[FakeExtender] = []

    def start(answers: Mapping[str, Any], **options: Any) -> FakeExtender:
        started.append(FakeExtender(answers, **options))
        return started[-1]

    yield start
    for fake in started:
        fake.stop()


@pytest.fixture(scope="session")
def certificates() -> Certificates:
    ca_key, ca = _authority("kubesched test CA")
    _, other = _authority("another CA")
    server_key, server = _leaf(ca_key, ca, "extender.test", ["extender.test", "127.0.0.1"])
    client_key, client = _leaf(ca_key, ca, "scheduler", ["scheduler"])
    return Certificates(
        _pem(ca), _pem(server), _key(server_key), _pem(client), _key(client_key), _pem(other)
    )


def _authority(name: str) -> tuple[Any, x509.Certificate]:
    key = ec.generate_private_key(ec.SECP256R1())
    builder = _builder(name, name, key).add_extension(
        x509.BasicConstraints(ca=True, path_length=None), critical=True
    )
    return key, builder.sign(key, hashes.SHA256())


def _leaf(
    ca_key: Any, ca: x509.Certificate, name: str, hosts: list[str]
) -> tuple[Any, x509.Certificate]:
    key = ec.generate_private_key(ec.SECP256R1())
    issuer = ca.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value
    names = [
        x509.IPAddress(ipaddress.ip_address(host)) if host[0].isdigit() else x509.DNSName(host)
        for host in hosts
    ]
    builder = _builder(name, str(issuer), key).add_extension(
        x509.SubjectAlternativeName(names), critical=False
    )
    return key, builder.sign(ca_key, hashes.SHA256())


def _builder(name: str, issuer: str, key: Any) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
    )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key(key: Any) -> bytes:
    return bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
