"""Set-up and the test run's own rules."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.servers import ROOT, clean_environment

LOCKS = ("runtime", "dev", "installer")


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_pins_every_package_with_hashes(name: str) -> None:
    text = (ROOT / "requirements" / f"{name}.txt").read_text()
    packages = re.findall(r"^([a-z0-9][^\s]*)(.*(?:\n    .*)*)", text, re.M)

    assert packages
    for requirement, rest in packages:
        assert "==" in requirement, requirement
        assert "--hash=sha256:" in rest, requirement


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_names_no_index_and_no_path(name: str) -> None:
    text = (ROOT / "requirements" / f"{name}.txt").read_text()

    assert not re.search(r"://|file:|^\s*--(?!hash)|(^|\s)/", text, re.M)


def test_the_locks_hold_what_pyproject_declares() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    runtime = locked("runtime")

    assert names(project["project"]["dependencies"]) <= set(runtime)
    assert names(project["dependency-groups"]["dev"]) <= set(locked("dev"))
    assert {n: v for n, v in locked("dev").items() if n in runtime} == runtime


def locked(name: str) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    text = (ROOT / "requirements" / f"{name}.txt").read_text()
    for package, version in re.findall(r"^([a-z0-9-]+)==(\S+)", text, re.M):
        found.setdefault(package, set()).add(version)
    return found


def names(requirements: list[str]) -> set[str]:
    found = (re.match(r"[A-Za-z0-9._-]+", requirement) for requirement in requirements)
    return {re.sub(r"[._]", "-", match[0].lower()) for match in found if match}


def test_without_a_python_the_set_up_says_so_in_one_line(tmp_path: Path) -> None:
    # A copy: the repository's own .venv would be found.
    (tmp_path / "scripts").mkdir()
    script = tmp_path / "scripts" / "setup.sh"
    script.write_text((ROOT / "scripts" / "setup.sh").read_text())

    done = subprocess.run(
        ["/bin/sh", str(script), "runtime"],
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )

    assert done.returncode == 1
    assert done.stderr.startswith("KubeSched needs Python 3.11 or newer")
    assert len(done.stderr.splitlines()) == 1


def test_ci_runs_exactly_make_test() -> None:
    assert (ROOT / ".ci" / "run").read_text().splitlines()[-1] == "exec make test"


NEEDY = """
import pytest
@pytest.mark.{marker}
def test_needs_it():
    pass
"""


@pytest.mark.parametrize(
    ("marker", "words"),
    [
        pytest.param("redis", "no redis-server", id="redis"),
        pytest.param("browser", "no Chromium", id="browser"),
        pytest.param("traces", "no trace files", id="traces"),
    ],
)
@pytest.mark.parametrize("ci", [True, False], ids=["CI", "elsewhere"])
def test_what_is_missing_fails_in_ci_and_is_named_elsewhere(
    tmp_path: Path, marker: str, words: str, ci: bool
) -> None:
    test = ROOT / "tests" / "site" / f"test_generated_{tmp_path.name.replace('-', '_')}.py"
    test.write_text(NEEDY.format(marker=marker))
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", str(test)],
            env=clean_environment(
                PATH=str(tmp_path), KUBESCHED_TRACES=str(tmp_path), CI="true" if ci else ""
            ),
            cwd=ROOT, capture_output=True, text=True,
        )  # fmt: skip
    finally:
        test.unlink()

    if ci:
        assert done.returncode == 1
        assert f"{words}" in done.stdout
        assert "with CI=true that is a failure" in done.stdout
    else:
        assert done.returncode == 0
        assert "left out on this machine" in done.stdout
        assert f"1 test: {words}" in done.stdout


def test_the_core_is_importable_without_django() -> None:
    code = (
        "import sys\n"
        "class Refuse:\n"
        "    def find_spec(self, name, *rest):\n"
        "        if name.partition('.')[0] in {'django', 'celery', 'channels', 'redis'}:\n"
        "            raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Refuse())\n"
        "import pkgutil, scheduler_core\n"
        "for module in pkgutil.walk_packages(scheduler_core.__path__, 'scheduler_core.'):\n"
        "    __import__(module.name)\n"
    )

    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
