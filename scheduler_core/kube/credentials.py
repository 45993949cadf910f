"""The authorization header of requests, read anew before it is too old.

Tokens of service accounts live for an hour, and others write the new ones into the file; programs
of a kubeconfig say how long theirs live. One that cannot be renewed is used for as long as the
server takes it: only the server knows for how long that is.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from .access import AccessError

__all__ = ["Credentials", "of_token_file"]

log = logging.getLogger(__name__)

#: seconds between two looks at a file
FILE_SECONDS: Final = 60.0
#: seconds between two questions whether a token is still good: after a failure each runs a program
ASK_SECONDS: Final = 10.0
#: what a header may hold; anything else would be quoted in somebody's error message
_HEADER: Final = re.compile(r"[\x21-\x7e]+( [\x21-\x7e]+)?")


class Credentials:
    """Who we are to a server. Thread-safe.

    Args:
        read: the header's value as it is now, "" for nobody; may wait, run programs and fail.
        seconds: for which one is used before ``read`` is asked again.
        monotonic: seconds since some moment.

    Raises:
        AccessError: there are none to begin with, or they cannot be sent.
    """

    def __init__(
        self,
        read: Callable[[], str],
        seconds: float,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._read = read
        self._seconds = seconds
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._trouble = ""
        self._value = _sendable(read())
        self._read_at = monotonic()

    def headers(self) -> dict[str, str]:
        """Of a request that is sent now."""
        # Renewing may run a program: once, not once for each thread that finds the token too old.
        with self._lock:
            if self._monotonic() - self._read_at >= self._seconds:
                self._renew()
            return {"authorization": self._value} if self._value else {}

    def _renew(self) -> None:
        self._read_at = self._monotonic()
        try:
            self._value, self._trouble = _sendable(self._read()), ""
        except Exception as fault:  # noqa: BLE001 - of a library that runs others' programs
            # Its text may quote a secret.
            text = str(fault) if isinstance(fault, AccessError) else type(fault).__name__
            if text != self._trouble:
                log.warning("the credentials could not be renewed: %s", text)
            self._trouble = text


def of_token_file(path: Path) -> Callable[[], str]:
    """Reads a bearer token. Raises AccessError when called: there is none."""

    def read() -> str:
        try:
            token = path.read_text().strip()
        except (OSError, UnicodeDecodeError) as fault:
            reason = fault.strerror if isinstance(fault, OSError) else "it is not text"
            raise AccessError(f"the token file {path} cannot be read: {reason}") from None
        if not token:
            raise AccessError(f"the token file {path} is empty")
        return f"Bearer {token}"

    return read


def _sendable(value: str) -> str:
    if value and not _HEADER.fullmatch(value):
        raise AccessError("the token has characters that no token has; is a line broken?")
    return value
