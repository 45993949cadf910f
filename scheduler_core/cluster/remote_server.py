"""Serves a sandbox on a unix socket."""

from __future__ import annotations

import logging
import os
import queue
import socket
import socketserver
import stat
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from scheduler_core.ports import ApiError, Gone, Json, PodCondition

from .errors import bad_request
from .packed import Packer
from .sandbox import ActingView, SandboxCluster
from .watch import StreamEvent
from .wire import ITEMS_A_LINE, LONGEST_LINE, decode, encode, error_document

__all__ = ["SandboxServer"]

log = logging.getLogger(__name__)

Command = Callable[[Json], Any]

_HEARTBEAT_SECONDS: Final = 5.0
_SEND_SECONDS: Final = 15.0
#: until the bindings that were taken are kept, at the end
_ANSWER_SECONDS: Final = 5.0
#: events that a client may lag behind before it is dropped (it comes back and catches up)
_BACKLOG: Final = 100_000
_EVENTS_A_LINE_BURST: Final = 500
#: what the kernel allows, including the closing zero
_LONGEST_PATH: Final = 107


class SandboxServer:
    """Serves a cluster to other processes of the same user, until `close`.

    One thread a connection. A client that dies, or stops reading, is dropped.
    """

    def __init__(
        self,
        cluster: SandboxCluster,
        socket_path: str | Path,
        *,
        commands: Mapping[str, Command] = MappingProxyType({}),
    ) -> None:
        """
        Args:
            socket_path: in a folder that is made, or must be, this user's alone (mode 0700).
            commands: what else clients may ask the owner for, by name.

        Raises:
            OSError: the path is too long, the folder is not ours, or somebody serves there.
        """
        self.cluster = cluster
        self.commands = commands
        self.path = Path(socket_path)
        self.backlog = _BACKLOG
        self.heartbeat = _HEARTBEAT_SECONDS
        _prepare(self.path)
        self._lock = threading.Lock()
        self._connections: set[socket.socket] = set()
        self._pipelines: set[socket.socket] = set()
        self._answered = threading.Condition(self._lock)
        self._server = _Server(self)
        self.path.chmod(0o600)
        self._thread = threading.Thread(
            target=self._server.serve_forever,
            kwargs={"poll_interval": 0.1},
            name="sandbox-server",
            daemon=True,
        )
        self._thread.start()

    def close(self) -> None:
        """Stop serving, answer the bindings that were taken, and drop every client. May be called
        twice."""
        self._server.shutdown()
        self._server.server_close()
        with self._answered:
            for connection in self._pipelines:
                _shut(connection, socket.SHUT_RD)
            self._answered.wait_for(lambda: not self._pipelines, _ANSWER_SECONDS)
        with self._lock:
            connections = tuple(self._connections)
        for connection in connections:
            _shut(connection)
        self._thread.join()
        self.path.unlink(missing_ok=True)

    def __enter__(self) -> SandboxServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def acting(self, request: Json) -> ActingView:
        """The cluster in the name of who asks."""
        return self.cluster.as_actor(str(request.get("actor") or "remote"))

    @property
    def clients(self) -> int:
        """Open connections."""
        with self._lock:
            return len(self._connections)

    def opened(self, connection: socket.socket) -> None:
        with self._lock:
            self._connections.add(connection)

    def closed(self, connection: socket.socket) -> None:
        with self._answered:
            self._connections.discard(connection)
            self._pipelines.discard(connection)
            self._answered.notify_all()

    def pipelined(self, connection: socket.socket) -> None:
        """It carries bindings, which are answered before it is dropped."""
        with self._lock:
            self._pipelines.add(connection)


def _prepare(path: Path) -> None:
    if len(os.fsencode(path)) > _LONGEST_PATH:
        raise OSError(f"the socket's path is longer than {_LONGEST_PATH} bytes: {path}")
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder = path.parent.stat()
    if folder.st_uid != os.geteuid() or stat.S_IMODE(folder.st_mode) & 0o077:
        raise OSError(f"the folder of the socket must be this user's alone (0700): {path.parent}")
    if not path.exists():
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(os.fspath(path))
        except OSError:
            path.unlink(missing_ok=True)  # left behind by a process that died
        else:
            raise OSError(f"another process serves a sandbox at {path}")


def _shut(connection: socket.socket, how: int = socket.SHUT_RDWR) -> None:
    try:
        connection.shutdown(how)
    except OSError:
        return  # gone already


class _Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, owner: SandboxServer) -> None:
        self.owner = owner
        super().__init__(os.fspath(owner.path), _Connection)

    def handle_error(self, request: object, client_address: object) -> None:
        log.exception("a connection to the sandbox failed")


class _ClientGoneError(Exception):
    """The client closed its connection, or does not read."""


class _Connection(socketserver.StreamRequestHandler):
    server: _Server

    def handle(self) -> None:
        owner = self.server.owner
        owner.opened(self.connection)
        try:
            self._serve(owner)
        except OSError:
            return  # the client went away
        finally:
            owner.closed(self.connection)

    def _serve(self, owner: SandboxServer) -> None:
        while True:
            line = self.rfile.readline(LONGEST_LINE)
            if not line.endswith(b"\n"):
                return
            answer = self._answer(owner, line)
            if answer is None:
                return
            items = answer.pop("items", ())
            self.wfile.write(encode(answer))
            for start in range(0, len(items), ITEMS_A_LINE):
                self.wfile.write(encode({"items": items[start : start + ITEMS_A_LINE]}))

    def _answer(self, owner: SandboxServer, line: bytes) -> Json | None:
        """What to say to a request, with the items to say after it; None once it was a watch,
        after which nothing is said."""
        try:
            request = decode(line)
            if request.get("op") == "watch":
                self._watch(owner, _arguments(request))
                return None
            if request.get("op") == "pipeline":
                self._pipeline(owner, owner.acting(request))
                return None
            if request.get("op") == "list":
                return _list(owner.acting(request), _arguments(request))
            return {"ok": _perform(owner, request)}
        except ApiError as error:
            return {"error": error_document(error)}
        except _ClientGoneError:
            return None
        except Exception as error:
            log.exception("a request to the sandbox failed")
            return {"error": error_document(ApiError(500, "InternalError", repr(error)))}

    def _watch(self, owner: SandboxServer, arguments: Json) -> None:
        if arguments.get("store") != owner.cluster.identity:
            raise Gone("the sandbox holds another store now")
        events: queue.Queue[StreamEvent] = queue.Queue(owner.backlog)

        def sink(event: StreamEvent) -> None:
            try:
                events.put_nowait(event)
            except queue.Full:
                _shut(self.connection)

        watch = owner.cluster.watch_from(
            _text(arguments, "kind"), int(arguments.get("resource_version", 0)), sink
        )
        packer = Packer()
        try:
            self.connection.settimeout(_SEND_SECONDS)
            self._send(encode({"ok": {}}))
            while True:
                try:
                    burst = [events.get(timeout=owner.heartbeat)]
                except queue.Empty:
                    # A sign of life, and it keeps the client's version young.
                    watch.bookmark()
                    continue
                while len(burst) < _EVENTS_A_LINE_BURST and not events.empty():
                    burst.append(events.get())
                self._send(encode(packer.pack(burst)))
        finally:
            watch.stop()

    def _pipeline(self, owner: SandboxServer, view: ActingView) -> None:
        """Bindings and events, many a line, until the client closes. Nobody waits for a binding
        before the next one is read; answers go back in order, when they are kept."""
        owner.pipelined(self.connection)
        self._send(encode({"ok": {}}))
        waiting: queue.SimpleQueue[list[tuple[int, Future[None]]] | None] = queue.SimpleQueue()
        answers = threading.Thread(
            target=self._answer_bindings, args=(waiting,), name="sandbox-bindings", daemon=True
        )
        answers.start()
        try:
            while (line := self._next_line()).endswith(b"\n"):
                request = decode(line)
                binds = request.get("binds", ())
                waiting.put([(number, view.begin_binding(*bind)) for number, *bind in binds])
                for event in request.get("events", ()):
                    _emit_event(view, event)
        except Exception:
            log.exception("a scheduler's connection to the sandbox failed")
        finally:
            waiting.put(None)
            answers.join()

    def _next_line(self) -> bytes:
        """Empty where there is none: who was killed with answers unread resets the connection."""
        try:
            return self.rfile.readline(LONGEST_LINE)
        except OSError:
            return b""

    def _answer_bindings(
        self, waiting: queue.SimpleQueue[list[tuple[int, Future[None]]] | None]
    ) -> None:
        while (futures := waiting.get()) is not None:
            bound = [[number, _refusal(future)] for number, future in futures]
            try:
                self.wfile.write(encode({"bound": bound}))
            except OSError:
                return  # it asks the sandbox what became of them when it is back

    def _send(self, data: bytes) -> None:
        try:
            self.wfile.write(data)
        except OSError as error:
            raise _ClientGoneError from error


def _refusal(future: Future[None]) -> Json | None:
    """Why a binding was not made; None where it was. Waits until that is certain."""
    failure = future.exception()
    if failure is None:
        return None
    if isinstance(failure, ApiError):
        return error_document(failure)
    log.error("a binding failed", exc_info=failure)
    return error_document(ApiError(500, "InternalError", repr(failure)))


# -- requests ------------------------------------------------------------------------------------


def _arguments(request: Json) -> Json:
    arguments = request.get("args", {})
    if not isinstance(arguments, dict):
        raise bad_request("args is not a JSON object")
    return arguments


def _perform(owner: SandboxServer, request: Json) -> Any:
    arguments = _arguments(request)
    name = str(request.get("op", ""))
    if name == "command":
        command = owner.commands.get(_text(arguments, "name"))
        if command is None:
            raise bad_request(f"unknown command {arguments.get('name')!r}")
        return command(arguments.get("arguments") or {})
    operation = _OPERATIONS.get(name)
    if operation is None:
        raise bad_request(f"unknown operation {name!r}")
    return operation(owner.acting(request), arguments)


def _text(arguments: Json, key: str, default: str | None = None) -> str:
    found = arguments.get(key, default)
    if not isinstance(found, str):
        raise bad_request(f"{key} is not a string")
    return found


def _object(arguments: Json, key: str) -> Json:
    found = arguments.get(key)
    if not isinstance(found, dict):
        raise bad_request(f"{key} is not a JSON object")
    return found


def _name(arguments: Json) -> tuple[str, str]:
    return _text(arguments, "namespace", ""), _text(arguments, "name")


def _list(view: ActingView, arguments: Json) -> Json:
    """An answer: how long the list is and of which store, which is what a client resumes a watch
    with; and the items."""
    found = view.list(
        _text(arguments, "kind"),
        arguments.get("namespace"),
        _text(arguments, "label_selector", ""),
        _text(arguments, "field_selector", ""),
    )
    about = {
        "count": len(found.items),
        "resource_version": found.resource_version,
        "store": view.get("Namespace", "", "kube-system")["metadata"]["uid"],
    }
    return {"ok": about, "items": found.items}


def _create_all(view: ActingView, arguments: Json) -> list[Json]:
    objects = arguments.get("objects")
    if not isinstance(objects, list) or not all(isinstance(obj, dict) for obj in objects):
        raise bad_request("objects is not a list of JSON objects")
    return view.create_all(objects)


def _delete(view: ActingView, arguments: Json) -> None:
    view.delete(
        _text(arguments, "kind"),
        *_name(arguments),
        uid=_text(arguments, "uid", ""),
        grace_period_seconds=arguments.get("grace_period_seconds"),
    )


def _bind(view: ActingView, arguments: Json) -> None:
    view.bind(*_name(arguments), _text(arguments, "uid", ""), _text(arguments, "node"))


def _patch_pod_status(view: ActingView, arguments: Json) -> None:
    condition = arguments.get("condition")
    view.patch_pod_status(
        *_name(arguments),
        _text(arguments, "uid", ""),
        condition=PodCondition(**condition) if condition else None,
        nominated_node_name=arguments.get("nominated_node_name"),
    )


def _emit_event(view: ActingView, arguments: Json) -> None:
    view.emit_event(
        _object(arguments, "regarding"),
        type="Warning" if arguments.get("type") == "Warning" else "Normal",
        reason=_text(arguments, "reason"),
        action=_text(arguments, "action"),
        note=_text(arguments, "note"),
        reporting_controller=_text(arguments, "reporting_controller"),
    )


_OPERATIONS: Final[Mapping[str, Callable[[ActingView, Json], Any]]] = MappingProxyType(
    {
        "get": lambda view, a: view.get(_text(a, "kind"), *_name(a)),
        "create": lambda view, a: view.create(_text(a, "kind"), _object(a, "object")),
        "create_all": _create_all,
        "update": lambda view, a: view.update(
            _text(a, "kind"), _object(a, "object"), subresource=_text(a, "subresource", "")
        ),
        "patch": lambda view, a: view.patch(
            _text(a, "kind"),
            *_name(a),
            _object(a, "patch"),
            subresource=_text(a, "subresource", ""),
        ),
        "delete": _delete,
        "bind": _bind,
        "patch_pod_status": _patch_pod_status,
        "emit_event": _emit_event,
    }
)
