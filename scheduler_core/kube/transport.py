"""What the rest of this package needs of HTTP, and why a request got no answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

__all__ = ["JSON", "MERGE_PATCH", "STRATEGIC_PATCH", "Answer", "Query", "Stream", "Transport"]
__all__ += ["NoAnswer"]

JSON: Final = "application/json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_PATCH: Final = "application/strategic-merge-patch+json"

Query = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Answer:
    """What the server said.

    Attributes:
        retry_after: the header's seconds; None where there was none.
    """

    status: int
    body: bytes
    retry_after: float | None = None


class NoAnswer(Exception):
    """The connection failed or the time was over.

    Attributes:
        sent: the request may have arrived, and may have been or still be carried out.
        timed_out: the time was over, the connection had not failed.
    """

    def __init__(self, message: str, *, sent: bool, timed_out: bool = False) -> None:
        super().__init__(message)
        self.sent = sent
        self.timed_out = timed_out


class Stream(Protocol):
    """The answer to a watch while it arrives."""

    def lines(self) -> Iterator[bytes]:
        """Each line without its end; ends where the server ends it, or after `close`.

        Raises:
            NoAnswer: the connection broke, or nothing came for too long.
        """

    def close(self) -> None:
        """From any thread, at any time, and more than once: `lines` ends."""


class Transport(Protocol):
    """Requests to one API server, from any thread. No request is repeated in here."""

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Query = (),
        body: bytes | None = None,
        content_type: str = JSON,
        timeout: float,
    ) -> Answer:
        """Raises:
        NoAnswer: there was none within ``timeout`` seconds, or no way to the server.
        """

    def stream(self, path: str, query: Query, *, silence: float) -> Stream | Answer:
        """GET an endless answer; an Answer where the server refuses.

        Args:
            silence: seconds without a byte after which the connection counts as dead.

        Raises:
            NoAnswer: as above.
        """

    def close(self) -> None:
        """Close idle connections."""
