"""Fixtures of the tests of the whole product."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page

from tests.e2e.product import PATIENCE, Product
from tests.servers import Demo

FAILED = pytest.StashKey[bool]()
TRACEBACK = re.compile(r"^Traceback \(most recent call last\)", re.MULTILINE)


@pytest.fixture(scope="session")
def base_url() -> None:
    """Stands in for pytest-base-url's own, whose form pytest 9 warns about; addresses are whole."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    report = yield
    if report.failed:
        item.stash[FAILED] = True
    return report


@pytest.fixture(scope="session")
def whole_product(demo_stack: Demo) -> Iterator[Product]:
    """The demo of the whole test run; tests make sandboxes of their own in it."""
    product = Product(demo_stack)
    yield product
    product.close()


@pytest.fixture
def product(whole_product: Product) -> Iterator[Product]:
    """The same; a traceback or a locked database in any log meanwhile fails the test."""
    before = whole_product.log_sizes()
    yield whole_product
    found = troubles(whole_product, before)
    assert not found, "\n".join(found[:5])


def troubles(product: Product, before: dict[str, int]) -> list[str]:
    """What the processes have logged since ``before`` that should not be there."""
    found = []
    for name, size in before.items():
        added = product.log(name)[size:]
        found += [
            f"{name}: {added[m.start() : m.start() + 3000]}" for m in TRACEBACK.finditer(added)
        ]
        found += [f"{name}: {line}" for line in added.splitlines() if "database is locked" in line]
    return found


@pytest.fixture
def visit(
    browser: Browser, request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[Callable[..., Page]]:
    """``visit(product, user)``: a browser of its own, logged in with the form, at the start page.

    Errors in the console fail the test; where it fails, what every page shows is kept.
    """
    contexts: list[BrowserContext] = []
    problems: list[str] = []

    def open_page(product: Product, user: str, tolerant: bool = False) -> Page:
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        context.set_default_timeout(PATIENCE * 1000)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: problems.append(f"{user}: {error}"))
        if not tolerant:
            page.on("console", lambda told: _note(problems, user, told))
        page.goto(product.demo.base_url + "/")
        page.get_by_label("User name").fill(user)
        page.get_by_label("Password").fill(product.passwords[user])
        page.get_by_role("button", name="Log in").click()
        page.wait_for_url(product.demo.base_url + "/")
        return page

    yield open_page
    for number, context in enumerate(contexts):
        if request.node.stash.get(FAILED, False):
            for page in context.pages:
                page.screenshot(path=tmp_path / f"failed-{number}.png", full_page=True)
        context.close()
    assert problems == []


def _note(problems: list[str], user: str, told: Any) -> None:
    if told.type == "error":
        problems.append(f"{user}: {told.text} ({told.location.get('url', '')})")
