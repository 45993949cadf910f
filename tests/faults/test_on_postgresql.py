"""Some of the rounds once more, on a real PostgreSQL."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.servers import ROOT, clean_environment

ROUNDS = 16


@pytest.mark.postgres
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_rounds_on_postgresql(postgres_server: str) -> None:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q"]
    done = subprocess.run(
        [*command, "tests/faults/test_rounds.py", "--fault-rounds", str(ROUNDS)],
        env=clean_environment(DATABASE_URL=postgres_server), cwd=ROOT,
        capture_output=True, text=True,
    )  # fmt: skip

    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
