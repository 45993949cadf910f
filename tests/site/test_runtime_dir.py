"""The folder of the unix sockets is this user's alone."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from dashboard.runtime_dir import UnsafeFolderError, private_dir, remove_sockets


def test_it_is_made_private(tmp_path: Path) -> None:
    made = private_dir(tmp_path / "run" / "kubesched")

    assert made.stat().st_mode & 0o777 == 0o700


def test_an_open_folder_is_closed(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)

    assert private_dir(tmp_path).stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("kind", ["link", "file"])
def test_what_is_no_folder_of_ours_is_refused(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "run"
    if kind == "link":
        path.symlink_to(tmp_path)
    else:
        path.touch()

    with pytest.raises((UnsafeFolderError, FileExistsError)):
        private_dir(path)


def test_sockets_are_removed_and_nothing_else(tmp_path: Path) -> None:
    folder = private_dir(tmp_path / "run")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(folder / "a.sock"))
    (folder / "notes").touch()

    remove_sockets(folder)
    assert [entry.name for entry in folder.iterdir()] == ["notes"]

    (folder / "notes").unlink()
    remove_sockets(folder)
    assert not folder.exists()
