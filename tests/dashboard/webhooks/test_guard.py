"""Where webhooks may go, and how they are signed."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable

import pytest

from dashboard.webhooks import guard, sender, signing
from tests.dashboard.webhooks.receiver import Receiver


def at(*addresses: str) -> guard.LookUp:
    return lambda host, port: list(addresses)


PUBLIC = at("93.184.215.14")


@pytest.mark.parametrize(
    "address",
    [
        pytest.param("127.0.0.1", id="loopback"),
        pytest.param("127.8.8.8", id="all of loopback"),
        pytest.param("0.0.0.1", id="this network"),
        pytest.param(".".join("0000"), id="this host"),
        pytest.param("10.1.2.3", id="private 10"),
        pytest.param("172.16.0.1", id="private 172"),
        pytest.param("192.168.1.1", id="private 192"),
        pytest.param("100.64.0.1", id="shared"),
        pytest.param("169.254.169.254", id="a cloud's metadata"),
        pytest.param("224.0.0.1", id="multicast"),
        pytest.param("255.255.255.255", id="broadcast"),
        pytest.param("::1", id="loopback 6"),
        pytest.param("::", id="this host 6"),
        pytest.param("fe80::1", id="link-local 6"),
        pytest.param("fe80::1%eth0", id="link-local 6 with its link"),
        pytest.param("fd00::1", id="private 6"),
        pytest.param("ff02::1", id="multicast 6"),
        pytest.param("::ffff:10.1.2.3", id="private 10 inside IPv6"),
        pytest.param("2002:7f00:1::", id="loopback inside 6to4"),
        pytest.param("64:ff9b::a01:203", id="private 10 inside NAT64"),
    ],
)
def test_what_is_not_public_is_refused(address: str) -> None:
    with pytest.raises(guard.Forbidden, match="KUBESCHED_WEBHOOK_NETWORKS"):
        guard.target("http://bot.example/hook", at(address), [])


def test_one_bad_address_among_good_ones_is_enough() -> None:
    with pytest.raises(guard.Forbidden, match=r"has the address 10\.0\.0\.1, which is not public"):
        guard.target("https://bot.example/", at("93.184.215.14", "10.0.0.1"), [])


@pytest.mark.parametrize("address", ["10.1.2.3", "::ffff:10.1.2.3"])
def test_networks_that_are_named_are_allowed(address: str) -> None:
    networks = [ipaddress.ip_network("10.0.0.0/8")]
    assert guard.target("http://bot.example/", at(address), networks).addresses == (address,)
    with pytest.raises(guard.Forbidden):
        guard.target("http://bot.example/", at("192.168.0.1"), networks)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        pytest.param("ftp://bot.example/", "must begin with http", id="scheme"),
        pytest.param("file:///etc/passwd", "must begin with http", id="file"),
        pytest.param("//bot.example/", "must begin with http", id="no scheme"),
        pytest.param("http:///path", "must name a host", id="no host"),
        pytest.param("http://bot.example:0/", "must name a host", id="port 0"),
        pytest.param("http://bot.example:99999/", "not a URL", id="port too large"),
        pytest.param("http://[::1/", "not a URL", id="half an address"),
        pytest.param("http://me:pw@bot.example/", "user name or a password", id="password"),
        pytest.param("http://bot.example/#x", "after #", id="fragment"),
        pytest.param("http://bot.example/a b", "no spaces", id="space"),
        pytest.param("http://bot.example/\r\nX: y", "no spaces", id="line break"),
        pytest.param("http://bøt.example/", "ASCII", id="not ASCII"),
        pytest.param("http://bot.example/" + "a" * 2000, "at most 2000", id="too long"),
    ],
)
def test_a_url_whose_form_is_wrong(url: str, words: str) -> None:
    with pytest.raises(guard.Forbidden, match=words):
        guard.target(url, PUBLIC, [])


@pytest.mark.parametrize(
    ("url", "host_header", "path"),
    [
        pytest.param("https://bot.example", "bot.example", "/", id="bare"),
        pytest.param("https://bot.example:443/a?b=c", "bot.example", "/a?b=c", id="usual port"),
        pytest.param("http://bot.example:8080/a", "bot.example:8080", "/a", id="other port"),
        pytest.param("http://[2606:2800::1]:81/", "[2606:2800::1]:81", "/", id="IPv6"),
    ],
)
def test_what_is_sent_to(url: str, host_header: str, path: str) -> None:
    found = guard.target(url, PUBLIC, [])
    assert (found.host_header, found.path) == (host_header, path)


def test_a_name_is_looked_up_once_and_the_checked_address_is_called(
    receive: Callable[..., Receiver],
) -> None:
    receiver = receive(200)
    port = receiver.url.split(":")[2].split("/")[0]
    asked: list[str] = []

    def look_up(host: str, number: int) -> list[str]:
        asked.append(host)
        return ["127.0.0.1"]

    url = f"http://bot.invalid:{port}/hook"
    assert sender.send(url, b"{}", {}, timeout=5, look_up=look_up).ok
    assert asked == ["bot.invalid"]
    assert receiver.got[0].headers["host"] == f"bot.invalid:{port}"


def test_the_next_address_is_tried_where_nobody_listens(
    receive: Callable[..., Receiver],
) -> None:
    receiver = receive(200)
    port = receiver.url.split(":")[2].split("/")[0]
    look_up = at("127.0.0.9", "127.0.0.1")
    assert sender.send(f"http://bot.invalid:{port}/", b"{}", {}, timeout=5, look_up=look_up).ok
    assert len(receiver.got) == 1


def test_a_refused_url_is_a_failed_attempt_with_its_reason() -> None:
    result = sender.send("http://10.0.0.1/", b"{}", {}, timeout=1)
    assert result.error.startswith("10.0.0.1 is not public.")


def test_a_name_that_nobody_knows() -> None:
    def unknown(host: str, port: int) -> list[str]:
        raise OSError("name not known")

    result = sender.send("http://bot.invalid/", b"{}", {}, timeout=1, look_up=unknown)
    assert result.error == "The host's name cannot be looked up: name not known."


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        pytest.param("120", 120, id="seconds"),
        pytest.param("999999999999", 3600, id="more than may be asked"),
        pytest.param("-5", 0, id="negative"),
        pytest.param("soon", 0, id="no number"),
        pytest.param("Wed, 21 Oct 2015 07:28:00 GMT", 0, id="a date that has passed"),
        pytest.param("Wed, 21 Oct 2099 07:28:00 GMT", 3600, id="a date far away"),
    ],
)
def test_retry_after(text: str, seconds: float) -> None:
    assert sender._seconds(text) == seconds


def test_the_signature_is_that_of_the_specification() -> None:
    """The vector that implementations of Standard Webhooks share."""
    assert (
        signing.signature(
            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            1614265330,
            b'{"test": 2432232314}',
        )
        == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    )
