"""The dashboard's tests on PostgreSQL mostly wait for it, for two minutes: they run beside the
rest from the moment that all tests are known, and their own test waits for how they ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import IO

import pytest

from tests.servers import ROOT, clean_environment, find_postgres


class OnPostgresql:
    """One run of `tests.on_postgresql` in a process group of its own."""

    def __init__(self) -> None:
        self._output: IO[str] = tempfile.TemporaryFile("w+")  # noqa: SIM115 -- closed by `end`
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.on_postgresql"],
            env=clean_environment(), cwd=ROOT, stdin=subprocess.DEVNULL,
            stdout=self._output, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip

    def result(self) -> tuple[int, str]:
        """Wait for it; give its exit code and what it printed."""
        code = self._process.wait()
        self._output.seek(0)
        return code, self._output.read()

    def end(self) -> None:
        if self._process.poll() is None:
            # As Ctrl-C does, so that it stops its database before it goes.
            os.killpg(self._process.pid, signal.SIGINT)
            self._process.wait(timeout=30)
        self._output.close()


STARTED = pytest.StashKey[OnPostgresql]()


def pytest_collection_finish(session: pytest.Session) -> None:
    wanted = any("dashboard_on_postgresql" in getattr(i, "fixturenames", ()) for i in session.items)
    if wanted and find_postgres() and not session.config.option.collectonly:
        session.config.stash[STARTED] = OnPostgresql()


def pytest_sessionfinish(session: pytest.Session) -> None:
    started = session.config.stash.get(STARTED, None)
    if started is not None:
        started.end()


@pytest.fixture
def dashboard_on_postgresql(pytestconfig: pytest.Config) -> Callable[[], tuple[int, str]]:
    """Waits for the run that was begun with the session: exit code and output."""
    return pytestconfig.stash[STARTED].result
