"""One supervisor per folder, and processes that an earlier one left behind."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from dashboard.supervisor.data_folder import STATE_FILE, DataFolder, FolderInUseError

SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]


def test_a_second_one_is_told_who_holds_it_and_where(tmp_path: Path) -> None:
    first = DataFolder(tmp_path)
    first.note(url="http://127.0.0.1:8000/")

    with pytest.raises(FolderInUseError, match=r"process \d+, http://127.0.0.1:8000/"):
        DataFolder(tmp_path)

    first.release()
    DataFolder(tmp_path).release()


def test_the_folder_is_made_private(tmp_path: Path) -> None:
    DataFolder(tmp_path / "data").release()

    assert (tmp_path / "data").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    "state",
    [
        pytest.param("", id="empty"),
        pytest.param("{half", id="cut off"),
        pytest.param("[]", id="of another shape"),
    ],
)
def test_a_damaged_note_is_no_obstacle(tmp_path: Path, state: str) -> None:
    (tmp_path / STATE_FILE).write_text(state)
    folder = DataFolder(tmp_path)

    assert folder.kill_leftovers() == []
    folder.release()


def test_a_process_left_over_is_killed(tmp_path: Path) -> None:
    left = subprocess.Popen(SLEEP, start_new_session=True)
    note(tmp_path, ["beat", left.pid, SLEEP])
    folder = DataFolder(tmp_path)

    assert folder.kill_leftovers() == ["beat"]
    assert left.wait(timeout=5) == -9
    folder.release()


def test_a_stranger_with_the_same_number_is_left_alone(tmp_path: Path) -> None:
    stranger = subprocess.Popen(SLEEP, start_new_session=True)
    try:
        note(tmp_path, ["beat", stranger.pid, [sys.executable, "-m", "celery", "beat"]])
        folder = DataFolder(tmp_path)

        assert folder.kill_leftovers() == []
        assert stranger.poll() is None
        folder.release()
    finally:
        stranger.kill()
        stranger.wait()


def note(folder: Path, *children: list) -> None:
    (folder / STATE_FILE).write_text(json.dumps({"pid": 1, "children": list(children)}))
