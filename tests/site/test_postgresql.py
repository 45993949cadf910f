"""The dashboard's own tests once more, on a real PostgreSQL."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.servers import ROOT, clean_environment

# What starts its own product, or drives a browser, does not look at this database.
SELECTION = "not browser and not e2e and not redis and not postgres"


@pytest.mark.postgres
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_dashboard_tests_pass_on_postgresql(postgres_server: str) -> None:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "-m", SELECTION]
    done = subprocess.run(
        [*command, "tests/dashboard"],
        env=clean_environment(DATABASE_URL=postgres_server), cwd=ROOT,
        capture_output=True, text=True,
    )  # fmt: skip

    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
