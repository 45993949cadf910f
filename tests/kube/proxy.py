"""A TCP proxy in front of an API server that knows where requests begin, and has faults."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, Literal

#: forward: as it is. lose: carried out, the answer never comes back. drop: not carried out, the
#: connection is cut. silent: not carried out, and nothing happens any more. Anything else is the
#: answer itself.
Deed = Literal["forward", "lose", "drop", "silent"] | bytes
#: from the request line ("POST /api/... HTTP/1.1")
Rule = Callable[[str], Deed]


def refusal(code: int, reason: str, retry_after: int | None = None) -> bytes:
    """A whole HTTP answer."""
    body = b'{"kind":"Status","code":%d,"reason":"%b"}' % (code, reason.encode())
    head = f"HTTP/1.1 {code} {reason}\r\ncontent-length: {len(body)}\r\n"
    if retry_after is not None:
        head += f"retry-after: {retry_after}\r\n"
    return f"{head}content-type: application/json\r\n\r\n".encode() + body


def forward(line: str) -> Deed:
    return "forward"


class FaultyProxy:
    """Listens on a port of its own; ``rule`` says what becomes of each request."""

    def __init__(self, target: tuple[str, int]) -> None:
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.rule: Rule = forward
        self.requests: list[str] = []
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._watches: set[socket.socket] = set()
        self._stopped = False
        self._thread = threading.Thread(target=self._accept, daemon=True)

    def __enter__(self) -> FaultyProxy:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self._stopped = True
        # An accept that is under way keeps the port open: wake it.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()
        self._thread.join(5)

    def cut(self) -> None:
        """Cut every connection that is open now."""
        with self._lock:
            found = tuple(self._open)
        for connection in found:
            _close(connection)

    def cut_watches(self) -> None:
        with self._lock:
            found = tuple(self._watches)
        for connection in found:
            _close(connection)

    def _accept(self) -> None:
        while not self._stopped:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        try:
            server = socket.create_connection(self._target)
        except OSError:
            _close(client)
            return
        with self._lock:
            self._open |= {client, server}
        losing = threading.Event()
        back = threading.Thread(target=self._relay, args=(server, client, losing), daemon=True)
        back.start()
        with contextlib.suppress(OSError):
            self._requests(client, server, losing)
        if not losing.is_set():
            _close(client)
            _close(server)
        back.join()
        with self._lock:
            self._open -= {client, server}
            self._watches.discard(client)
        client.close()
        server.close()

    def _requests(
        self, client: socket.socket, server: socket.socket, losing: threading.Event
    ) -> None:
        reader = client.makefile("rb")
        while True:
            found = _request(reader)
            if found is None:
                return
            line, raw = found
            self.requests.append(line)
            deed = self.rule(line)
            if isinstance(deed, bytes):
                client.sendall(deed)
                continue
            if deed == "drop":
                return
            if deed == "silent":
                while reader.read(1):  # until the client gives it up
                    pass
                return
            if deed == "lose":
                losing.set()
            if "watch=true" in line:
                with self._lock:
                    self._watches.add(client)
            server.sendall(raw)
            if deed == "lose":
                return

    def _relay(self, server: socket.socket, client: socket.socket, losing: threading.Event) -> None:
        with contextlib.suppress(OSError):
            while chunk := server.recv(1 << 16):
                if losing.is_set():
                    break
                client.sendall(chunk)
        _close(client)
        _close(server)


def _request(reader: Any) -> tuple[str, bytes] | None:
    line = reader.readline()
    if not line:
        return None
    raw, length = line, 0
    while True:
        header = reader.readline()
        raw += header
        if header in (b"\r\n", b""):
            break
        name, _, value = header.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    raw += reader.read(length)
    return line.decode().strip(), raw


def _close(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
