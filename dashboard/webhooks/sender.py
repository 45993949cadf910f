"""One attempt to hand one message over. No row is touched here.

The whole attempt has one deadline; redirects are not followed; of the answer only the status and
Retry-After are read, so that nobody can read another server's pages through this one.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

import urllib3
from urllib3.exceptions import ConnectTimeoutError, HTTPError, NewConnectionError, ReadTimeoutError
from urllib3.exceptions import SSLError as TLSError

from dashboard.webhooks import guard
from scheduler_core.extender.deadline import DeadlinePool, TLSDeadlinePool

USER_AGENT: Final = "KubeSched-Webhooks/1"
#: The longest that a receiver may ask us to wait.
MOST_RETRY_AFTER: Final = 3600.0


@dataclass(frozen=True, slots=True)
class Result:
    """What came of an attempt: ``status`` of the answer or None, ``error`` for a person to read or
    "", ``retry_after`` in seconds where the receiver asked for it."""

    status: int | None = None
    error: str = ""
    retry_after: float = 0.0

    @property
    def ok(self) -> bool:
        return not self.error


def send(
    url: str,
    body: bytes,
    headers: Mapping[str, str],
    *,
    timeout: float,
    look_up: guard.LookUp = guard.look_up,
) -> Result:
    """POST ``body``; any 2xx is a success. Never raises for what the network or receiver does."""
    try:
        target = guard.target(url, look_up)
    except guard.Forbidden as error:
        return Result(error=str(error))
    except (OSError, UnicodeError) as error:
        return Result(error=f"The host's name cannot be looked up: {error}.")
    until = time.monotonic() + timeout
    result = Result()
    for address in target.addresses:
        result, reached = _attempt(target, address, body, headers, until, timeout)
        if reached:
            break
    return result


def _attempt(
    target: guard.Target,
    address: str,
    body: bytes,
    headers: Mapping[str, str],
    until: float,
    timeout: float,
) -> tuple[Result, bool]:
    """What came of one address, and whether anybody was there: only then may the message have
    arrived, and the next address must not get it too."""
    left = until - time.monotonic()
    if left <= 0:
        return Result(error=_words(TimeoutError(), timeout)), True
    try:
        with _pool(target, address, left) as pool:
            answer = pool.urlopen(
                "POST",
                target.path,
                body=body,
                headers={
                    **headers,
                    "Host": target.host_header,
                    "Content-Type": "application/json",
                    "User-Agent": USER_AGENT,
                    "Connection": "close",
                },
                retries=False,
                redirect=False,
                preload_content=False,
                assert_same_host=False,
            )
            try:
                return _judge(answer.status, answer.headers.get("Retry-After", "")), True
            finally:
                answer.close()
    except NewConnectionError as error:
        return Result(error=_words(error, timeout)), False
    except (HTTPError, OSError, ValueError) as error:
        return Result(error=_words(error, timeout)), True


def _pool(target: guard.Target, address: str, timeout: float) -> urllib3.HTTPConnectionPool:
    limits = urllib3.Timeout(total=timeout)
    if target.scheme == "http":
        return DeadlinePool(address, target.port, timeout=limits, maxsize=1)
    return TLSDeadlinePool(
        address,
        target.port,
        timeout=limits,
        maxsize=1,
        ssl_context=ssl.create_default_context(),
        server_hostname=target.host,
        assert_hostname=target.host,
    )


def _judge(status: int, retry_after: str) -> Result:
    if 200 <= status < 300:
        return Result(status)
    if 300 <= status < 400:
        return Result(status, f"Answered {status}, a redirect; redirects are not followed.")
    return Result(status, f"Answered {status}.", _seconds(retry_after))


def _seconds(text: str) -> float:
    """Retry-After, a number of seconds or a date; 0 where it is neither."""
    text = text.strip()
    if text.isascii() and text.isdecimal():
        return min(float(text[:9]), MOST_RETRY_AFTER)
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, TypeError):
        return 0.0
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return min(max(0.0, (moment - datetime.now(UTC)).total_seconds()), MOST_RETRY_AFTER)


def _words(error: Exception, timeout: float) -> str:
    """What failed, without addresses of objects and without the URL's path."""
    # Before the timeouts: urllib3 takes it for one of them.
    if isinstance(error, NewConnectionError):
        return "No connection: nobody listens there."
    if isinstance(error, (ConnectTimeoutError, ReadTimeoutError, TimeoutError)):
        return f"No answer within {timeout:g} s."
    if isinstance(error, TLSError):
        return f"TLS failed: {str(error)[:200]}."
    return f"The connection broke: {type(error).__name__}."
