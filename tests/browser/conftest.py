"""Fixtures of the browser tests."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def base_url() -> None:
    """Stands in for pytest-base-url's own, whose form pytest 9 warns about; addresses are whole."""
