"""What every test may use, and the one rule about what is missing.

A test that needs a server, a browser or the trace's files says so by a marker (`redis`,
`postgres`, `browser`, `traces`) or by a fixture that implies it. Where the thing is missing the
test is left out, and the end of the run says so by name; with CI=true it fails instead.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from django.conf import settings

from tests import servers

# Playwright's sync API leaves a running loop in the thread, which Django takes for a mistake.
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"

# Slow machines are no failures.
hypothesis.settings.register_profile("kubesched", deadline=None, print_blob=True)
hypothesis.settings.load_profile("kubesched")

# Fixtures that imply a marker.
IMPLIES = {
    "redis_server": "redis",
    "postgres_server": "postgres",
    "chromium": "browser",
    "kubectl": "kubectl",
    "browser": "browser",
    "context": "browser",
    "page": "browser",
    "demo_stack": "e2e",
    "trace_folder": "traces",
}
CHROMIUM_ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
LEFT_OUT = pytest.StashKey[dict[str, int]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Here, not in tests/faults: options must be known before that folder is looked into."""
    group = parser.getgroup("faults", "rounds of faults (tests/faults)")
    group.addoption("--fault-rounds", type=int, help="how many seeded rounds; default 200")
    group.addoption("--fault-seed", type=int, help="run this one round again")


# --- what is missing ---------------------------------------------------------------------------
def _traces() -> Path:
    return Path(settings.KUBESCHED_TRACES)


NEEDS: dict[str, tuple[Callable[[], object], str]] = {
    "redis": (servers.find_redis, "no redis-server or valkey-server on PATH"),
    "postgres": (servers.find_postgres, "no PostgreSQL server programs (initdb, postgres)"),
    "browser": (servers.find_chromium, "no Chromium on PATH"),
    "kubectl": (servers.find_kubectl, "no kubectl on PATH, and none named by KUBECTL"),
    "traces": (
        lambda: any(_traces().glob("*nodes*.csv")) or None,
        "no trace files in ../shared/traces or KUBESCHED_TRACES",
    ),
}


def in_ci() -> bool:
    return os.environ.get("CI", "").lower() in {"1", "true", "yes"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for fixture in getattr(item, "fixturenames", ()):
            if fixture in IMPLIES:
                item.add_marker(IMPLIES[fixture])
    # Playwright's loop would break async tests that come after it in the same process.
    items.sort(key=lambda item: item.get_closest_marker("browser") is not None)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker, (find, reason) in NEEDS.items():
        if item.get_closest_marker(marker) is None or find():
            continue
        if in_ci():
            pytest.fail(f"{reason}; with CI=true that is a failure", pytrace=False)
        left_out = item.config.stash.setdefault(LEFT_OUT, {})
        left_out[reason] = left_out.get(reason, 0) + 1
        pytest.skip(reason)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    left_out = config.stash.get(LEFT_OUT, {})
    if not left_out:
        return
    terminalreporter.section("left out on this machine")
    for reason, count in left_out.items():
        terminalreporter.line(f"{count} test{'s' if count > 1 else ''}: {reason}")
    terminalreporter.line("`make test` as root on Debian installs the servers and the browser.")


# --- servers -----------------------------------------------------------------------------------
@pytest.fixture(scope="session")
def redis_server() -> Iterator[str]:
    """The URL of a real Redis of this test run."""
    with servers.running_redis() as url:
        yield url


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The DATABASE_URL of a real, empty PostgreSQL database of this test run."""
    with servers.running_postgres() as url:
        yield url


@pytest.fixture(scope="session")
def trace_folder() -> Path:
    """The folder with the public trace's files."""
    return _traces()


# --- browser -----------------------------------------------------------------------------------
@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of Chromium."""
    found = servers.find_chromium()
    assert found is not None
    return found


@pytest.fixture(scope="session")
def browser_type_launch_args(
    browser_type_launch_args: dict[str, Any], chromium: str
) -> dict[str, Any]:
    return {
        **browser_type_launch_args,
        "executable_path": chromium,
        "args": [*browser_type_launch_args.get("args", []), *CHROMIUM_ARGUMENTS],
    }


# --- the product -------------------------------------------------------------------------------
@pytest.fixture(scope="session")
def demo_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[servers.Demo]:
    """The whole product as `make demo` starts it, with data of its own; stopped by Ctrl-C.

    One for the whole run: a test that kills or stops something starts its own with
    `servers.start_demo`.
    """
    # Sandboxes of tests stay to the end, and each takes two places.
    folder = tmp_path_factory.mktemp("demo") / "data"
    demo = servers.start_demo(folder, KUBESCHED_LOOP_CONCURRENCY="64")
    try:
        yield demo
    finally:
        code = demo.stop()
    assert code == 0, f"Ctrl-C ended the demo with {code}:\n{demo.output}"
