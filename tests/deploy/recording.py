"""A way to an API server that notes what was asked of it, in the words of RBAC rules."""

from __future__ import annotations

import re
import threading
from typing import Any, Final

from scheduler_core.kube.cluster import Endpoint
from scheduler_core.kube.transport import Answer, NoAnswer, Query, Stream, Transport

__all__ = ["Need", "RecordingEndpoint"]

#: (API group, resource or resource/subresource, verb)
Need = tuple[str, str, str]

_PATH: Final = re.compile(
    r"/(?:api/v1|apis/(?P<group>[^/]+)/[^/]+)"
    r"(?:/namespaces/(?P<namespace>[^/]+)(?=/))?"
    r"/(?P<resource>[^/]+)(?:/(?P<name>[^/]+)(?:/(?P<sub>[^/]+))?)?"
)
_VERBS: Final = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


def need_of(method: str, path: str, watch: bool = False) -> Need | None:
    """None for what needs no rule (``/version``)."""
    match = _PATH.fullmatch(path)
    if match is None:
        return None
    resource = match["resource"] + (f"/{match['sub']}" if match["sub"] else "")
    if method == "GET":
        verb = "watch" if watch else "get" if match["name"] else "list"
    else:
        verb = _VERBS[method]
    return match["group"] or "", resource, verb


class RecordingEndpoint:
    """``used`` is what was asked and not refused. ``lose_next_bind``: the answer to the next
    binding does not arrive."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.server = endpoint.server
        self._endpoint = endpoint
        self._lock = threading.Lock()
        self.used: set[Need] = set()
        self.lose_next_bind = False

    def open(self, connections: int, *, waits: bool = True) -> Transport:
        return _Recording(self, self._endpoint.open(connections, waits=waits))

    def note(self, need: Need | None, status: int) -> None:
        # 404 of a collection: the server has no such API. 404 of an object: it was asked about.
        if need is None or (status == 404 and need[2] in ("list", "watch")):
            return
        with self._lock:
            self.used.add(need)

    def loses(self, path: str) -> bool:
        with self._lock:
            lost = self.lose_next_bind and path.endswith("/binding")
            self.lose_next_bind &= not lost
        return lost


class _Recording:
    def __init__(self, owner: RecordingEndpoint, transport: Transport) -> None:
        self._owner = owner
        self._transport = transport

    def request(self, method: str, path: str, **options: Any) -> Answer:
        answer = self._transport.request(method, path, **options)
        self._owner.note(need_of(method, path), answer.status)
        if self._owner.loses(path):
            raise NoAnswer("the answer was lost", sent=True)
        return answer

    def stream(self, path: str, query: Query, *, silence: float) -> Stream | Answer:
        answer = self._transport.stream(path, query, silence=silence)
        status = answer.status if isinstance(answer, Answer) else 200
        self._owner.note(need_of("GET", path, watch=True), status)
        return answer

    def close(self) -> None:
        self._transport.close()
