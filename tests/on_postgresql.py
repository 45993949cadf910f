"""`python -m tests.on_postgresql`: the dashboard's own tests once more, on a real PostgreSQL."""

from __future__ import annotations

import subprocess
import sys

from tests.servers import ROOT, clean_environment, running_postgres

# What starts its own product, or drives a browser, does not look at this database.
SELECTION = "not browser and not e2e and not redis and not postgres"


def main() -> int:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "-m", SELECTION]
    with running_postgres() as url:
        environment = clean_environment(DATABASE_URL=url)
        return subprocess.run([*command, "tests/dashboard"], env=environment, cwd=ROOT).returncode


if __name__ == "__main__":
    sys.exit(main())
