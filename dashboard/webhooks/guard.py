"""Where webhooks may go: a guard against having this server reach what only it can reach.

A name is looked up once, every address it has must be allowed, and the connection goes to the
address that was checked, so that a second look-up cannot lead elsewhere.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

from django.conf import settings

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
LookUp = Callable[[str, int], Sequence[str]]

MAX_URL: Final = 2000
MOST_ADDRESSES: Final = 4
_PORTS: Final = {"http": 80, "https": 443}
#: NAT64 carries an IPv4 address inside an IPv6 one.
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")


class Forbidden(Exception):
    """This URL is not one that may be called; the message says why."""


@dataclass(frozen=True, slots=True)
class Target:
    """A URL that may be called, and the addresses to call, in the order in which to try them."""

    scheme: str
    host: str
    port: int
    path: str
    addresses: tuple[str, ...]

    @property
    def host_header(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"


def check_form(url: str) -> SplitResult:
    """The parts of a URL whose form is sound.

    Raises:
        Forbidden: it is not an http(s) URL with a host, or has a user name or a fragment.
    """
    if len(url) > MAX_URL or not url.isprintable() or " " in url or not url.isascii():
        raise Forbidden(f"A URL has at most {MAX_URL} ASCII characters and no spaces.")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise Forbidden("This is not a URL.") from None
    if parts.scheme not in _PORTS:
        raise Forbidden("The URL must begin with http:// or https://.")
    if not parts.hostname or port == 0:
        raise Forbidden("The URL must name a host.")
    if parts.username is not None or parts.password is not None:
        raise Forbidden("The URL must not hold a user name or a password.")
    if parts.fragment:
        raise Forbidden("The URL must not have a part after #: no server would see it.")
    return parts


def look_up(host: str, port: int) -> list[str]:
    """Every address of a name, in the order in which to try them."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(info[4][0]) for info in found))


def target(url: str, look_up: LookUp = look_up, allowed: Sequence[Network] | None = None) -> Target:
    """Where to connect for ``url``.

    Args:
        allowed: networks that may be reached although they are not public; the setting's.

    Raises:
        Forbidden: the URL's form, or one of its host's addresses, is not allowed.
        OSError: the name cannot be looked up.
    """
    parts = check_form(url)
    networks = settings.KUBESCHED_WEBHOOK_NETWORKS if allowed is None else allowed
    host = str(parts.hostname)
    port = parts.port or _PORTS[parts.scheme]
    addresses = look_up(host, port)
    if not addresses:
        raise OSError("the name has no address")
    for address in addresses:
        _check_address(host, address, networks)
    path = parts.path or "/"
    query = f"?{parts.query}" if parts.query else ""
    return Target(parts.scheme, host, port, path + query, tuple(addresses[:MOST_ADDRESSES]))


def is_allowed(address: str, networks: Sequence[Network]) -> bool:
    """A public address, or one in ``networks``."""
    value = _plain(ipaddress.ip_address(address.partition("%")[0]))
    if any(value in network for network in networks if network.version == value.version):
        return True
    return value.is_global and not value.is_multicast and not _is_reserved(value)


def _check_address(host: str, address: str, networks: Sequence[Network]) -> None:
    if is_allowed(address, networks):
        return
    what = "is" if host == address else f"has the address {address}, which is"
    raise Forbidden(
        f"{host} {what} not public. If webhooks may go there, name its network in"
        " KUBESCHED_WEBHOOK_NETWORKS."
    )


def _plain(address: Address) -> Address:
    """The IPv4 address that an IPv6 one stands for, where it does."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    inner: Any = address.ipv4_mapped or address.sixtofour
    if inner is None and address in _NAT64:
        inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return inner if inner is not None else address


def _is_reserved(address: Address) -> bool:
    return address.is_reserved or address.is_unspecified or address.is_loopback
