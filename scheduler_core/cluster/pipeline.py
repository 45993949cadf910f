"""A sandbox of another process for a scheduler: bindings are not waited for one by one."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Final, Literal

from scheduler_core.ports import ApiError, Json, NotFound

from .connections import Line
from .errors import unavailable
from .event_log import reference_to
from .objects import uid_of
from .remote_client import RemoteSandbox
from .wire import error_of

__all__ = ["SchedulersSandbox"]

log = logging.getLogger(__name__)

#: How long bindings gather before they are sent: few lines, little waiting.
_PACE_SECONDS: Final = 0.01
#: Events that wait to be sent; what comes beyond is dropped, as a full store drops it.
_MOST_EVENTS: Final = 5_000
_RETRY_SECONDS: Final = 0.2

_Binding = tuple[str, str, str, str]


class SchedulersSandbox(RemoteSandbox):
    """`Cluster` and `AsyncBinder` over a unix socket, for one scheduler.

    When its connection breaks it is over (`gone`): what was under way is looked up in the sandbox
    that comes after, for at most `lookup` seconds, so that a binding that was made is not told as
    a failure; and whoever uses it makes another one.
    """

    def __init__(self, socket_path: str | Path, *, actor: str, lookup: float = 15.0) -> None:
        """Connect.

        Raises:
            ApiError: 503, the sandbox is not running.
        """
        super().__init__(socket_path, actor=actor)
        self.gone = threading.Event()
        self._lookup = lookup
        self._lock = threading.Lock()
        self._number = 0
        self._unsent: list[tuple[int, _Binding]] = []
        self._events: list[Json] = []
        self._under_way: dict[int, tuple[_Binding, Future[None]]] = {}
        self._has_work = threading.Event()
        self._closed = False
        self._line = self._begin()
        self._threads = [
            threading.Thread(target=work, name=name, daemon=True)
            for work, name in ((self._send, "bindings-out"), (self._receive, "bindings-in"))
        ]
        for thread in self._threads:
            thread.start()

    def as_actor(self, actor: str) -> SchedulersSandbox:
        """Itself: it acts in one name alone."""
        if actor != self.actor:
            raise ValueError(f"this connection acts as {self.actor!r}, not as {actor!r}")
        return self

    def begin_binding(self, namespace: str, name: str, uid: str, node: str) -> Future[None]:
        """See `AsyncBinder`."""
        future: Future[None] = Future()
        binding = (namespace, name, uid, node)
        with self._lock:
            is_over = self.gone.is_set() or self._closed
            if not is_over:
                self._number += 1
                self._under_way[self._number] = (binding, future)
                self._unsent.append((self._number, binding))
        if is_over:
            future.set_exception(unavailable("the connection to the sandbox broke"))
        elif not self._has_work.is_set():
            self._has_work.set()
        return future

    def emit_event(
        self,
        regarding: Mapping[str, Any],
        *,
        type: Literal["Normal", "Warning"],
        reason: str,
        action: str,
        note: str,
        reporting_controller: str,
    ) -> None:
        event = {
            "regarding": reference_to(regarding),
            "type": type,
            "reason": reason,
            "action": action,
            "note": note,
            "reporting_controller": reporting_controller,
        }
        with self._lock:
            if len(self._events) < _MOST_EVENTS:
                self._events.append(event)
        if not self._has_work.is_set():
            self._has_work.set()

    def close(self) -> None:
        """Send what waits, and hear what becomes of it no more. May be called twice."""
        self._closed = True
        self._has_work.set()
        self._threads[0].join()
        self._line.close()
        self._threads[1].join()
        super().close()

    # -- the connection --------------------------------------------------------------------------

    def _begin(self) -> Line:
        line = self._connections.open()
        try:
            line.send(self._request("pipeline"))
            answer = line.receive()
            line.silence(None)
        except OSError as error:
            line.close()
            raise unavailable(f"the connection to the sandbox broke: {error}") from error
        if "error" in answer:
            line.close()
            raise error_of(answer["error"])
        return line

    def _send(self) -> None:
        while not self.gone.is_set():
            self._has_work.wait()
            if not self._closed:
                time.sleep(_PACE_SECONDS)
            self._has_work.clear()
            with self._lock:
                binds, self._unsent = self._unsent, []
                events, self._events = self._events, []
            try:
                if binds or events:
                    said = [[number, *binding] for number, binding in binds]
                    self._line.send({"binds": said, "events": events})
            except OSError:
                return  # the other thread finds out, and sees to what is under way
            if self._closed:
                return

    def _receive(self) -> None:
        try:
            while True:
                for number, refusal in self._line.receive()["bound"]:
                    _, future = self._under_way.pop(number)
                    _tell(future, None if refusal is None else error_of(refusal))
        except (OSError, ApiError, ValueError) as error:
            if not self._closed:
                log.warning("the connection to the sandbox broke: %s", error)
        finally:
            self._over()

    def _over(self) -> None:
        with self._lock:
            self.gone.set()
            left, self._under_way = self._under_way, {}
        self._has_work.set()
        give_up = time.monotonic() + self._lookup
        for binding, future in left.values():
            _tell(future, self._what_became(binding, give_up))

    def _what_became(self, binding: _Binding, give_up: float) -> ApiError | None:
        """Why a binding whose answer never came was not made; None where it was."""
        namespace, name, uid, node = binding
        while True:
            try:
                pod = self.get("Pod", namespace, name)
            except NotFound as error:
                return error
            except ApiError as error:
                if time.monotonic() >= give_up:
                    return error
                time.sleep(_RETRY_SECONDS)
                continue
            if uid_of(pod) == uid and pod["spec"].get("nodeName") == node:
                return None
            return unavailable("the sandbox went away before it was bound")


def _tell(future: Future[None], failure: ApiError | None) -> None:
    if failure is None:
        future.set_result(None)
    else:
        future.set_exception(failure)
