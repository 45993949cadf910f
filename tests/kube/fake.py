"""An API server with behaviour, in this process and in virtual time: the sandbox's store behind the
paths of the API, which can be told to fail in every way that servers and networks have."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from scheduler_core.api.kinds import KINDS, Kind
from scheduler_core.clock import VirtualClock
from scheduler_core.cluster.sandbox import SandboxCluster
from scheduler_core.kube.transport import Answer, NoAnswer, Query
from scheduler_core.ports import ApiError

Json = dict[str, Any]
START = 1_800_000_000.0


class VirtualTiming:
    """Waiting lets time pass at once; what was planned for that time happens meanwhile."""

    def __init__(self, clock: VirtualClock | None = None) -> None:
        self.clock = clock or VirtualClock(START)
        self.waits: list[float] = []
        self._planned: list[tuple[float, Callable[[], None]]] = []
        self._skew = 0.0

    def monotonic(self) -> float:
        return self.clock.now()

    def wait(self, seconds: float, until: threading.Event) -> bool:
        if until.is_set():
            return True
        self.waits.append(seconds)
        assert len(self.waits) < 20_000, "it waits for ever"
        self.pass_to(self.clock.now() + max(0.0, seconds))
        return until.is_set()

    def plan(self, after: float, action: Callable[[], None]) -> None:
        """Have ``action`` happen in so many seconds, while somebody waits."""
        self._planned.append((self.clock.now() + after, action))
        self._planned.sort(key=lambda entry: entry[0])

    def pass_to(self, then: float) -> None:
        while self._planned and self._planned[0][0] <= then:
            at, action = self._planned.pop(0)
            self.clock.set(max(at, self.clock.now()))
            action()
        self.clock.set(max(then, self.clock.now()))


@dataclass(frozen=True, slots=True)
class Request:
    at: float
    method: str
    path: str
    query: dict[str, str]
    body: Any

    @property
    def verb(self) -> str:
        return "WATCH" if "watch" in self.query else self.method

    def __str__(self) -> str:
        return f"{self.verb} {self.path}"


#: What is done to a request instead of, or after, carrying it out: an answer, or None to go on.
Fault = Callable[[Request], "Answer | None"]


def status(code: int, reason: str, message: str = "", **more: Any) -> Answer:
    body = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": message or reason,
    }
    return Answer(code, orjson.dumps({**body, **more}))


def later(seconds: float, code: int = 429) -> Answer:
    return Answer(code, status(code, "TooManyRequests").body, seconds)


@dataclass
class FakeServer:
    """Attributes:
    before: faults that come instead of the request, tried in turn; a fault that gives None is
        not there for this request.
    after: faults that come once the request has been carried out.
    absent: kinds whose API is not there.
    page: items on a page of a list, whatever limit the client asks for (where that is more).
    idle: told when a watch has nothing more to say; its answer is said then: "end", "cut",
        "expired", "silent", or "more" where it has made something happen.
    """

    timing: VirtualTiming = field(default_factory=VirtualTiming)
    before: list[Fault] = field(default_factory=list)
    after: list[Fault] = field(default_factory=list)
    absent: set[str] = field(default_factory=set)
    requests: list[Request] = field(default_factory=list)
    leases: dict[str, Json] = field(default_factory=dict)
    idle: Callable[[Request], str] = lambda request: "end"
    history: int = 10_000
    server: str = "https://fake:6443"

    def __post_init__(self) -> None:
        self.sandbox = SandboxCluster(self.timing.clock, history=self.history)

    # -- as Endpoint ---------------------------------------------------------------------------

    def open(self, connections: int, *, waits: bool = True) -> FakeTransport:
        return FakeTransport(self)

    # -- what was asked ------------------------------------------------------------------------

    def asked(self, verb: str = "", ending: str = "") -> list[Request]:
        return [r for r in self.requests if (not verb or r.verb == verb) and ending in r.path]

    # -- serving -------------------------------------------------------------------------------

    def serve(self, request: Request) -> Answer:
        self.requests.append(request)
        for fault in self.before:
            answer = fault(request)
            if answer is not None:
                return answer
        answer = self._carried_out(request)
        for fault in self.after:
            other = fault(request)
            if other is not None:
                return other
        return answer

    def _carried_out(self, request: Request) -> Answer:
        if "/leases" in request.path:
            return self._lease(request)
        try:
            return Answer(200, orjson.dumps(self._result(request)))
        except ApiError as refusal:
            causes = [{"field": f, "message": m} for f, m in refusal.causes]
            details = {"causes": causes}
            return status(refusal.code, refusal.reason, refusal.message, details=details)

    def _result(self, request: Request) -> Json:
        if request.path == "/version":
            return {"gitVersion": "v1.36.0"}
        kind, namespace, name, subresource = self._place(request.path)
        body = request.body
        if request.method == "POST" and subresource == "binding":
            metadata = body["metadata"]
            node = body["target"]["name"]
            self.sandbox.bind(namespace, name, metadata.get("uid", ""), node)
            return {"kind": "Status", "status": "Success"}
        if request.method == "POST":
            return self.sandbox.create(kind.kind, body)
        if request.method == "GET" and not name:
            return self._page(kind, namespace or None, request.query)
        if request.method == "GET":
            return self.sandbox.get(kind.kind, namespace, name)
        if request.method == "PUT":
            return self.sandbox.update(kind.kind, body)
        if request.method == "PATCH":
            if "conditions" in (body.get("status") or {}):
                body = self._with_conditions(kind, namespace, name, body)
            return self.sandbox.patch(kind.kind, namespace, name, body, subresource=subresource)
        uid = (body or {}).get("preconditions", {}).get("uid", "")
        grace = (body or {}).get("gracePeriodSeconds")
        self.sandbox.delete(kind.kind, namespace, name, uid=uid, grace_period_seconds=grace)
        return {"kind": "Status", "status": "Success"}

    def _place(self, path: str) -> tuple[Kind, str, str, str]:
        parts = path.strip("/").split("/")
        version = parts[1] if parts[0] == "api" else "/".join(parts[1:3])
        rest = parts[2:] if parts[0] == "api" else parts[3:]
        namespace = ""
        if rest[0] == "namespaces" and len(rest) > 2:
            namespace, rest = rest[1], rest[2:]
        found = [k for k in KINDS.values() if k.api_version == version and k.plural == rest[0]]
        if not found or found[0].kind in self.absent:
            text = "the server could not find the requested resource"
            raise ApiError(404, "NotFound", text)
        name = rest[1] if len(rest) > 1 else ""
        return found[0], namespace, name, rest[2] if len(rest) > 2 else ""

    def _page(self, kind: Kind, namespace: str | None, query: dict[str, str]) -> Json:
        fields, labels = query.get("fieldSelector", ""), query.get("labelSelector", "")
        found = self.sandbox.list(kind.kind, namespace, labels, fields)
        start, _, version = query.get("continue", "0").partition("@")
        limit = int(query.get("limit", "0")) or len(found.items) or 1
        items = list(found.items)[int(start) : int(start) + limit]
        end = int(start) + limit
        version = version or found.resource_version
        more = f"{end}@{version}" if end < len(found.items) else ""
        # As in a server's list, items have neither kind nor apiVersion.
        bare = [{k: v for k, v in o.items() if k not in ("kind", "apiVersion")} for o in items]
        metadata = {"resourceVersion": version, **({"continue": more} if more else {})}
        return {"kind": f"{kind.written}List", "metadata": metadata, "items": bare}

    def _with_conditions(self, kind: Kind, namespace: str, name: str, body: Json) -> Json:
        """Strategic merge: conditions by their type."""
        old = self.sandbox.get(kind.kind, namespace, name).get("status", {}).get("conditions", [])
        merged = {c["type"]: c for c in old}
        for new in body["status"]["conditions"]:
            entry = {**merged.get(new["type"], {}), **new}
            merged[new["type"]] = {k: v for k, v in entry.items() if v is not None}
        return {**body, "status": {**body["status"], "conditions": list(merged.values())}}

    def _lease(self, request: Request) -> Answer:
        key = request.path.rpartition("/leases")[2].strip("/")
        if request.method == "GET":
            held = self.leases.get(key)
            return Answer(200, orjson.dumps(held)) if held else status(404, "NotFound")
        lease = request.body
        key = lease["metadata"]["name"]
        held = self.leases.get(key)
        version = lease["metadata"].get("resourceVersion")
        if request.method == "POST" and held:
            return status(409, "AlreadyExists")
        if held and version != held["metadata"]["resourceVersion"]:
            return status(409, "Conflict")
        number = int(held["metadata"]["resourceVersion"]) + 1 if held else 1
        metadata = {**lease["metadata"], "resourceVersion": str(number)}
        self.leases[key] = {**lease, "metadata": metadata}
        return Answer(200, orjson.dumps(self.leases[key]))

    # -- watching ------------------------------------------------------------------------------

    def watch(self, request: Request) -> FakeStream | Answer:
        self.requests.append(request)
        for fault in self.before:
            answer = fault(request)
            if answer is not None:
                return answer
        try:
            kind, _, _, _ = self._place(request.path)
            return FakeStream(self, request, kind)
        except ApiError as refusal:
            return status(refusal.code, refusal.reason, refusal.message)


class FakeTransport:
    def __init__(self, server: FakeServer) -> None:
        self._server = server

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Query = (),
        body: bytes | None = None,
        content_type: str = "",
        timeout: float,
    ) -> Answer:
        return self._server.serve(self._request(method, path, query, body))

    def stream(self, path: str, query: Query, *, silence: float) -> FakeStream | Answer:
        return self._server.watch(self._request("GET", path, query, None))

    def close(self) -> None:
        return

    def _request(self, method: str, path: str, query: Query, body: bytes | None) -> Request:
        at = self._server.timing.monotonic()
        found = None if body is None else orjson.loads(body)
        return Request(at, method, path, dict(query), found)


class FakeStream:
    """Says what has happened; when there is nothing more it asks the server's ``idle``."""

    def __init__(self, server: FakeServer, request: Request, kind: Kind) -> None:
        self._server = server
        self._request = request
        self._events: list[Json] = []
        self._closed = False
        self._watch = server.sandbox.watch_from(
            kind.kind,
            int(request.query["resourceVersion"]),
            self._take,
            field_selector=request.query.get("fieldSelector", ""),
        )

    def _take(self, event: Any) -> None:
        obj = event.object
        if event.type == "BOOKMARK":
            obj = {"metadata": {"resourceVersion": str(event.resource_version)}}
        self._events.append({"type": event.type, "object": obj})

    def lines(self) -> Iterator[bytes]:
        while not self._closed:
            while self._events:
                yield orjson.dumps(self._events.pop(0))
            word = self._server.idle(self._request)
            if word == "end":
                return
            if word == "cut":
                raise NoAnswer("connection reset by peer", sent=True)
            if word == "silent":
                raise NoAnswer("nothing came", sent=True, timed_out=True)
            if word == "expired":
                yield orjson.dumps({"type": "ERROR", "object": gone()})

    def deafen(self) -> None:
        """Hear of no more changes."""
        self._watch.stop()

    def close(self) -> None:
        self._closed = True
        self._watch.stop()


def gone() -> Json:
    found: Json = orjson.loads(status(410, "Expired", "too old resource version: 1 (2)").body)
    return found


# -- faults --------------------------------------------------------------------------------------


def times(count: int, fault: Fault) -> Fault:
    """The first ``count`` times only."""
    left = [count]

    def limited(request: Request) -> Answer | None:
        if left[0] <= 0:
            return None
        try:
            answer = fault(request)
        except NoAnswer:
            left[0] -= 1
            raise
        if answer is not None:
            left[0] -= 1
        return answer

    return limited


def on(verb: str, ending: str, answer: Answer | Exception) -> Fault:
    """An answer, or none, to requests of one verb to paths that end so."""

    def fault(request: Request) -> Answer | None:
        if request.verb != verb or not request.path.endswith(ending):
            return None
        if isinstance(answer, Exception):
            raise answer
        return answer

    return fault


def lost() -> NoAnswer:
    return NoAnswer("connection reset by peer", sent=True)


def unsent() -> NoAnswer:
    return NoAnswer("connection refused", sent=False)


def sequence(faults: Sequence[Fault]) -> Fault:
    """One after another, each once."""
    waiting = list(faults)

    def fault(request: Request) -> Answer | None:
        if not waiting:
            return None
        try:
            answer = waiting[0](request)
        except NoAnswer:
            waiting.pop(0)
            raise
        if answer is not None:
            waiting.pop(0)
        return answer

    return fault
