"""The folder of the unix sockets (settings.KUBESCHED_RUNTIME_DIR)."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path


class UnsafeFolderError(Exception):
    """The folder is not this user's own; the message is for people."""


def private_dir(path: Path) -> Path:
    """Make ``path`` a folder that only this user can enter, and return it.

    Raises:
        UnsafeFolderError: it belongs to someone else or is a link. Another user of the machine
            could have put it there first, to listen in.
        OSError: it cannot be made.
    """
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise UnsafeFolderError(
            f"{path} is not a folder that belongs to this user; set KUBESCHED_RUNTIME_DIR."
        )
    if stat.S_IMODE(found.st_mode) & 0o077:
        path.chmod(0o700)
    return path


def remove_sockets(path: Path) -> None:
    """Remove the sockets in ``path``, and the folder itself where nothing else is in it."""
    with suppress(OSError):
        for entry in path.iterdir():
            if entry.is_socket():
                entry.unlink()
        path.rmdir()
