"""The JavaScript unit tests (tests/js/*.test.js), run in Chromium: one result per JS test."""

from __future__ import annotations

import mimetypes
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route

ROOT = Path(__file__).resolve().parents[2]
ORIGIN = "http://js-tests.test"
SERVED = ("static/js/", "tests/js/")
NAME = re.compile(r'^\s*test\((?:"((?:[^"\\]|\\.)*)"|`([^`]*)`)', re.MULTILINE)
FILES = sorted((ROOT / "tests" / "js").glob("*.test.js"))

# The name of each test, and what went wrong in it or nothing.
Results = dict[str, str]


def declared(file: Path) -> list[str]:
    """Names of the tests in a file; one with ``${...}`` stands for several."""
    found = NAME.findall(file.read_text(encoding="utf-8"))
    return [plain.replace('\\"', '"') or template for plain, template in found]


CASES = [
    pytest.param(file.name, name, id=f"{file.stem.removesuffix('.test')}: {name}")
    for file in FILES
    for name in declared(file)
]


@pytest.fixture(scope="module")
def js(browser: Browser) -> Iterator[Callable[[str], Results]]:
    """Runs a file's tests, once: a page of its own for each file, none for each test."""
    context = browser.new_context()
    known: dict[str, Results] = {}

    def run(file: str) -> Results:
        if file not in known:
            known[file] = run_file(context.new_page(), file)
        return known[file]

    yield run
    context.close()


@pytest.mark.parametrize(("file", "name"), CASES)
def test_js(js: Callable[[str], Results], file: str, name: str) -> None:
    said = {ran: error for ran, error in js(file).items() if re.fullmatch(pattern(name), ran)}
    assert said, f"{file} did not run a test named {name!r}"
    failures = "\n\n".join(f"{ran}\n{error}" for ran, error in said.items() if error)
    assert not failures, failures


def pattern(name: str) -> str:
    return ".*".join(re.escape(part) for part in re.split(r"\$\{[^}]*\}", name))


def run_file(page: Page, file: str) -> Results:
    """Import a test file in a blank page and run what it registers."""
    page.route(f"{ORIGIN}/**", serve)
    page.goto(f"{ORIGIN}/")
    ran = page.evaluate(
        """async (file) => {
            const { run } = await import("/tests/js/harness.js");
            await import(`/tests/js/${file}`);
            return run();
        }""",
        file,
    )
    return {result["name"]: result["error"] for result in ran}


def serve(route: Route) -> None:
    path = route.request.url.removeprefix(f"{ORIGIN}/")
    if not path:
        route.fulfill(body="<!doctype html><title>tests</title><body>", content_type="text/html")
        return
    file = ROOT / path
    if not path.startswith(SERVED) or not file.is_file():
        route.fulfill(status=404, body=f"no {path}")
        return
    kind = mimetypes.guess_type(file.name)[0] or "text/javascript"
    route.fulfill(body=file.read_bytes(), content_type=kind)


def test_every_file_is_run() -> None:
    assert FILES, "no JavaScript tests were found"
    assert all(declared(file) for file in FILES)
