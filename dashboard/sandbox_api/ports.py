"""The port that the sandboxes' API had before: a kubeconfig outlives a restart with it."""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Final

from dashboard.sandbox_api.serving import ApiThread

__all__ = ["on_the_same_port"]

log = logging.getLogger(__name__)

_FILE: Final = "port"
_HIGHEST_PORT: Final = 65535


def on_the_same_port(folder: Path, make: Callable[[int], ApiThread]) -> tuple[ApiThread, str]:
    """A server on the port that ``folder`` remembers, or else on a free one.

    Args:
        folder: exists; a first port is written down in it.
        make: a server on this port, 0 for any free one.

    Returns:
        The server, not started, and what people have to know: empty, or that the port is another
        one than before. The old one stays remembered then, for the next start.

    Raises:
        OSError: no port can be served.
    """
    port = _remembered(folder)
    try:
        server = make(port)
    except OSError as error:
        if not port or error.errno not in (errno.EADDRINUSE, errno.EACCES):
            raise
        server = make(0)
        return server, (
            f"Port {port}, which was used before, is taken by another program, so this is port "
            f"{server.address[1]}: kubeconfigs from before do not reach it. Download a new one."
        )
    if not port:
        _remember(folder, server.address[1])
    return server, ""


def _remembered(folder: Path) -> int:
    """0: none, or nothing that is a port."""
    try:
        text = (folder / _FILE).read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return 0
    port = int(text) if text.isdecimal() and len(text) <= 5 else 0
    return port if port <= _HIGHEST_PORT else 0


def _remember(folder: Path, port: int) -> None:
    """As good as it gets: without it the next start has another port."""
    temporary = folder / f"{_FILE}.new"
    try:
        temporary.write_text(f"{port}\n", encoding="ascii")
        temporary.replace(folder / _FILE)
    except OSError as error:
        log.warning("the port of the sandboxes' API is not kept for the next start: %s", error)
