"""The journal's thread outlives whatever goes wrong with telling of what was kept."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import pytest

from scheduler_core.cluster.commit import GroupCommit
from scheduler_core.cluster.journal import MemoryJournal, Write

LONGEST = 10.0


class Sandbox:
    """What a GroupCommit tells of; ``fail`` raises in the place of a watcher."""

    def __init__(self, fail: Callable[[], None] = lambda: None) -> None:
        self.shown = 0
        self.lock = threading.RLock()
        self.fail = fail
        self.commit = GroupCommit(
            MemoryJournal(), self.show, lambda: None, lambda: None, self.lock, pace=0.0
        )

    def show(self, writes: Sequence[Write]) -> None:
        self.shown += 1
        self.fail()


def test_what_is_kept_counts_although_telling_of_it_fails(caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> None:
        raise RuntimeError("a watcher is broken")

    sandbox = Sandbox(fail)
    for _ in range(2):
        with sandbox.lock:
            kept = sandbox.commit.add([])
        assert kept.result(LONGEST) is None
    sandbox.commit.close()
    assert sandbox.shown == 2
    assert "a watcher is broken" in caplog.text


def test_nobody_can_take_a_write_back() -> None:
    sandbox = Sandbox()
    with sandbox.lock:
        kept = sandbox.commit.add([])
        assert not kept.cancel()
    assert kept.result(LONGEST) is None
    sandbox.commit.close()
