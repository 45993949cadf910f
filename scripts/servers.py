"""Install what the full test suite uses beside Python: redis-server, PostgreSQL, Chromium, kubectl.

Only as root, and only on Debian (all four) or Ubuntu (the servers: its chromium package is a
snap). Elsewhere nothing is touched, and the tests name at the end what they had to leave out.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

POSTGRES_BINARIES = Path("/usr/lib/postgresql")
CHROMIUMS = ("chromium", "chromium-browser", "google-chrome")


def missing_packages(distribution: str) -> list[str]:
    """Return the Debian packages that the suite still needs here."""
    packages = []
    if not (shutil.which("redis-server") or shutil.which("valkey-server")):
        packages.append("redis-server")
    if not (any(POSTGRES_BINARIES.glob("*/bin/initdb")) or shutil.which("initdb")):
        packages.append("postgresql")
    if distribution == "debian" and not any(map(shutil.which, CHROMIUMS)):
        packages += ["chromium", "fonts-liberation"]
    if distribution == "debian" and not shutil.which(os.environ.get("KUBECTL") or "kubectl"):
        packages.append("kubernetes-client")
    return packages


def distribution() -> str:
    try:
        return platform.freedesktop_os_release().get("ID", "")
    except OSError:
        return ""


def main() -> None:
    name = distribution()
    if os.geteuid() != 0 or name not in {"debian", "ubuntu"} or not shutil.which("apt-get"):
        return
    packages = missing_packages(name)
    if not packages:
        return
    print(f"Installing {', '.join(packages)} with apt ...", flush=True)
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (
        ["apt-get", "update", "-qq"],
        ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages],
    ):
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        if done.returncode:
            # Not fatal here: the tests say what is missing, and fail for it where CI=true.
            sys.stderr.write(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}\n")
            return


if __name__ == "__main__":
    main()
