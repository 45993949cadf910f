from __future__ import annotations

import time

import pytest

from scheduler_core.clock import RealClock
from scheduler_core.testing.clock import VirtualClock


def test_virtual_time_passes_only_when_told() -> None:
    clock = VirtualClock(10.0)
    clock.advance(2.5)
    clock.set(20.0)
    assert clock.now() == 20.0


@pytest.mark.parametrize(
    "back",
    [
        pytest.param(lambda clock: clock.set(9.0), id="set"),
        pytest.param(lambda clock: clock.advance(-1.0), id="advance"),
    ],
)
def test_virtual_time_never_goes_back(back) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match=r"cannot go back from 10.0 to 9.0"):
        back(VirtualClock(10.0))


def test_the_real_clock_is_the_time_of_day() -> None:
    clock = RealClock()
    assert abs(clock.now() - time.time()) < 60


def test_sleeping_lets_virtual_time_pass() -> None:
    clock = VirtualClock(10.0)
    clock.sleep(2.5)
    assert clock.now() == 12.5
