"""One request to the API server: rate limit, fence, and when it is sent again."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import orjson

from scheduler_core.ports import ApiError, Json

from .fence import NO_FENCE, Fence
from .rate_limit import RateLimit
from .statuses import LostAnswer, decode, error_of
from .timing import Backoff, Random, Timing
from .transport import JSON, Answer, NoAnswer, Query, Stream, Transport

__all__ = ["CONNECTIONS", "KubeApi", "Patience"]

#: requests under way at once
CONNECTIONS: Final = 48

_FIRST_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 5.0
#: seconds where a server says "later" and not when
_DEFAULT_RETRY_AFTER: Final = 1.0
#: a proxy's or a starting server's: somebody else may answer the next time
_PASSING: Final = (502, 503, 504)


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a request is tried.

    Attributes:
        timeout: seconds of one try.
        budget: seconds of all tries together; none is begun after that.
    """

    timeout: float = 30.0
    budget: float = 60.0


@dataclass(frozen=True, slots=True)
class KubeApi:
    """Requests to one API server, from any thread.

    Attributes:
        transport: for everything but watches.
        watches: for watches, which keep their connections for minutes.
        slots: one for each connection of ``transport``. Waiting for one comes before the fence is
            asked: a write that waited in the pool could be sent when the lease is another's.
        hurried: set before the end; nothing that failed is tried again.
        closed: set at the end; nothing is sent any more.
    """

    transport: Transport
    watches: Transport
    timing: Timing
    random: Random
    limit: RateLimit
    fence: Fence = NO_FENCE
    patience: Patience = field(default_factory=Patience)
    slots: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(CONNECTIONS))
    hurried: threading.Event = field(default_factory=threading.Event)
    closed: threading.Event = field(default_factory=threading.Event)

    def with_limit(self, limit: RateLimit) -> KubeApi:
        """The same, with a rate limit of its own."""
        return replace(self, limit=limit)

    def backoff(self) -> Backoff:
        return Backoff(_FIRST_PAUSE, _LONGEST_PAUSE, self.random)

    def get(self, path: str, query: Query = ()) -> Json:
        """Raises ApiError."""
        return self.call("GET", path, query=query, repeatable=True)

    def call(
        self,
        method: str,
        path: str,
        *,
        query: Query = (),
        body: Any = None,
        content_type: str = JSON,
        repeatable: bool = False,
    ) -> Json:
        """The answer's object; ``{}`` where there is none.

        "Later" (429, or 5xx with Retry-After) and connections that were never made are tried again;
        an answer that was lost only where the request is ``repeatable``: where doing it twice is
        the same as once.

        Raises:
            ApiError: refused. LostAnswer: none came.
        """
        encoded = None if body is None else orjson.dumps(body)
        deadline = self.timing.monotonic() + self.patience.budget
        backoff = self.backoff()
        while True:
            try:
                answer = self.once(method, path, query, encoded, content_type)
            except LostAnswer as lost:
                if lost.sent and not repeatable:
                    raise
                self.pause(backoff.pause(), deadline, lost)
                continue
            if answer.status < 300:
                return decode(answer.body) if answer.body else {}
            refusal = error_of(answer)
            seconds = self.retry_after(answer, backoff, repeatable=repeatable)
            if seconds is None:
                raise refusal
            self.pause(seconds, deadline, refusal)

    def once(
        self, method: str, path: str, query: Query, body: bytes | None, content_type: str = JSON
    ) -> Answer:
        """One try, when it is its turn.

        Raises:
            LostAnswer: no answer. ApiError: the fence is closed, or this client is.
        """
        self.limit.wait(self.closed)
        if not self.slots.acquire(timeout=self.patience.timeout):
            text = f"{method} {path}: no connection became free in time"
            raise LostAnswer(text, sent=False, timed_out=True)
        try:
            return self._send(method, path, query, body, content_type)
        finally:
            self.slots.release()

    def _send(
        self, method: str, path: str, query: Query, body: bytes | None, content_type: str
    ) -> Answer:
        timeout = self.patience.timeout
        if method != "GET":
            left = self.fence.check()
            if left < math.inf:
                timeout = min(timeout, left)
                # The server gives it up too: what it did later would be after the lease.
                query = [*query, ("timeout", _duration(timeout))]
        if self.closed.is_set():
            raise ApiError(503, "ServiceUnavailable", "the connection to the cluster is closed")
        try:
            return self.transport.request(
                method, path, query=query, body=body, content_type=content_type, timeout=timeout
            )
        except NoAnswer as lost:
            text = f"{method} {path}: {lost}"
            raise LostAnswer(text, sent=lost.sent, timed_out=lost.timed_out) from lost

    def retry_after(self, answer: Answer, backoff: Backoff, *, repeatable: bool) -> float | None:
        """Seconds after which a refused request is to be sent again; None: never."""
        if answer.status == 429:
            told = answer.retry_after
            return _spread(_DEFAULT_RETRY_AFTER if told is None else told, self.random)
        if answer.status >= 500 and answer.retry_after is not None:
            return _spread(answer.retry_after, self.random)
        if answer.status in _PASSING and repeatable:
            return backoff.pause()
        return None

    def pause(self, seconds: float, deadline: float, cause: ApiError) -> None:
        """Wait before the next try.

        Raises:
            ApiError: ``cause``, where the time is over by then or this client is to end.
        """
        if self.timing.monotonic() + seconds > deadline or self.timing.wait(seconds, self.hurried):
            raise cause

    def watch(self, path: str, query: Sequence[tuple[str, str]], silence: float) -> Stream:
        """Begin a watch; see `Transport.stream`.

        Raises:
            ApiError: refused. LostAnswer: no answer.
        """
        self.limit.wait(self.closed)
        try:
            stream = self.watches.stream(path, query, silence=silence)
        except NoAnswer as lost:
            text = f"watch {path}: {lost}"
            raise LostAnswer(text, sent=lost.sent, timed_out=lost.timed_out) from lost
        if isinstance(stream, Answer):
            raise error_of(stream)
        return stream


def _duration(seconds: float) -> str:
    """As Go writes it, and never longer."""
    return f"{int(seconds)}s" if seconds >= 1 else f"{max(1, int(seconds * 1000))}ms"


def _spread(seconds: float, random: Random) -> float:
    """Never earlier than told, and not all at once."""
    return seconds + random() * max(0.1, seconds * 0.2)
