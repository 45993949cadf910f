"""The dashboard's own tests once more, on a real PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable

import pytest


@pytest.mark.postgres
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_dashboard_tests_pass_on_postgresql(
    dashboard_on_postgresql: Callable[[], tuple[int, str]],
) -> None:
    code, output = dashboard_on_postgresql()

    assert code == 0, output[-8000:]
    assert " passed" in output
