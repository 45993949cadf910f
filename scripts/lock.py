#!/usr/bin/env python3
"""Write requirements/*.txt: every version and hash, and the address of no package index.

One file per purpose, each valid for Python 3.11 and newer on every platform:

    runtime.txt    what `make demo` and production install
    dev.txt        runtime.txt and what `make test` and `make check` need on top
    installer.txt  uv, which installs the other two quickly

Run it as `make lock`; `make lock UPGRADE=1` takes the newest versions that pyproject.toml allows.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = ROOT / "requirements"
OLDEST_PYTHON = "3.11"
HEADER = """\
# Locked versions and hashes, for Python {python} and newer. Made from pyproject.toml by
# `make lock`; do not edit. It names no package index on purpose: yours is used.
"""
# What must never get into a lock file: it would tie the repository to one place.
FOREIGN = re.compile(r"^\s*-(-index|-extra-index|-find|-trusted|i |f )|://|file:|(^|\s)/", re.M)


def compile_lock(source: list[str], target: Path, *, upgrade: bool) -> None:
    """Resolve ``source`` into ``target``; raises SystemExit when the result is not portable."""
    uv = Path(sys.executable).with_name("uv")
    with tempfile.TemporaryDirectory() as folder:
        # uv keeps the versions of an output file that exists.
        output = Path(folder) / target.name
        if target.exists() and not upgrade:
            output.write_text(target.read_text())
        command = [
            str(uv), "pip", "compile", *source,
            "--universal", "--python-version", OLDEST_PYTHON, "--generate-hashes",
            "--no-emit-index-url", "--no-emit-find-links", "--no-header",
            "--quiet", "--output-file", str(output),
        ]  # fmt: skip
        clean = {
            name: value
            for name, value in os.environ.items()
            if name not in {"PIP_FIND_LINKS", "UV_FIND_LINKS"}
        }
        subprocess.run(command, check=True, cwd=ROOT, env=clean)
        locked = output.read_text()
    # Annotations may mention the temporary output file or a constraint's path; requirements do not.
    if FOREIGN.search(locked):
        raise SystemExit(f"{target.name}: an index address or a path got into the lock file")
    target.write_text(HEADER.format(python=OLDEST_PYTHON) + locked)
    print(f"{target.relative_to(ROOT)}: {len(re.findall(r'^[a-z0-9]', locked, re.M))} packages")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--upgrade", action="store_true", help="take the newest allowed versions")
    upgrade: bool = parser.parse_args().upgrade
    REQUIREMENTS.mkdir(exist_ok=True)
    runtime = REQUIREMENTS / "runtime.txt"
    compile_lock(["pyproject.toml"], runtime, upgrade=upgrade)
    same = ["--constraint", "requirements/runtime.txt"]
    compile_lock(
        ["pyproject.toml", "--group", "dev", *same], REQUIREMENTS / "dev.txt", upgrade=upgrade
    )
    compile_lock(["requirements/installer.in"], REQUIREMENTS / "installer.txt", upgrade=upgrade)


if __name__ == "__main__":
    main()
