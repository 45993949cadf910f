"""The sandbox's time, and the thread that keeps its parts going."""

from __future__ import annotations

import math
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler_core.clock import RealClock, VirtualClock
from scheduler_core.cluster.driver import Driver
from scheduler_core.cluster.sandbox_clock import AS_FAST_AS_POSSIBLE, ScaledClock


def test_time_passes_faster() -> None:
    real = VirtualClock(100.0)
    clock = ScaledClock(real, speed=60.0, start=1000.0)
    real.advance(2)
    assert clock.now() == 1120.0
    assert clock.real_seconds(30.0) == 0.5


def test_without_a_start_it_shows_the_other_clock() -> None:
    real = VirtualClock(100.0)
    clock = ScaledClock(real)
    real.advance(5)
    assert clock.now() == 105.0


def test_the_speed_can_be_changed_on_the_way() -> None:
    real = VirtualClock()
    clock = ScaledClock(real, start=0.0)
    real.advance(10)
    clock.set_speed(10)
    real.advance(10)
    clock.set_speed(0)
    real.advance(1000)
    assert clock.now() == 110.0
    assert clock.real_seconds(1.0) == math.inf


def test_as_fast_as_possible_moves_by_jumps_alone() -> None:
    real = VirtualClock()
    clock = ScaledClock(real, AS_FAST_AS_POSSIBLE, start=5.0)
    real.advance(1000)
    assert clock.now() == 5.0
    clock.jump_to(77.0)
    clock.jump_to(50.0)
    assert clock.now() == 77.0


@pytest.mark.parametrize("speed", [-1.0, math.nan])
def test_a_speed_that_is_none(speed: float) -> None:
    with pytest.raises(ValueError, match="a clock's speed is 0 or more"):
        ScaledClock(VirtualClock(), speed)


class Wandering:
    """A clock that is set now and then."""

    def __init__(self) -> None:
        self.time = 1000.0

    def now(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += seconds


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("real"), st.floats(-100, 100)),
            st.tuples(st.just("speed"), st.sampled_from([0.0, 0.5, 1.0, 60.0, math.inf])),
            st.tuples(st.just("jump"), st.floats(0, 10_000)),
        )
    )
)
def test_it_never_goes_back(steps: list[tuple[str, float]]) -> None:
    real = Wandering()
    clock = ScaledClock(real)
    latest = clock.now()
    for what, value in steps:
        if what == "real":
            real.time += value
        elif what == "speed":
            clock.set_speed(value)
        else:
            clock.jump_to(value)
        assert clock.now() >= latest
        latest = clock.now()


class Alarm:
    """Due at given times."""

    def __init__(self, *times: float) -> None:
        self.times = list(times)
        self.rung: list[float] = []

    def next_deadline(self) -> float | None:
        return self.times[0] if self.times else None

    def tick(self, now: float) -> None:
        self.rung.append(self.times.pop(0))


def driver_of(clock: ScaledClock, *parts: Alarm, may_jump: bool = True) -> Driver:
    driver = Driver(clock, may_jump=lambda: may_jump)
    driver._parts = parts
    return driver


def test_parts_are_ticked_when_they_are_due() -> None:
    real = VirtualClock()
    alarm = Alarm(10.0, 30.0)
    driver = driver_of(ScaledClock(real, speed=2.0, start=0.0), alarm)
    assert driver.run_once() == 5.0
    real.advance(5)
    assert driver.run_once() == 10.0
    assert alarm.rung == [10.0]


def test_as_fast_as_possible_jumps_from_deadline_to_deadline() -> None:
    clock = ScaledClock(VirtualClock(), AS_FAST_AS_POSSIBLE, start=0.0)
    one, other = Alarm(10.0, 500.0), Alarm(20.0)
    driver = driver_of(clock, one, other)
    while driver.run_once() != math.inf:
        pass
    assert (one.rung, other.rung, clock.now()) == ([10.0, 500.0], [20.0], 500.0)


def test_no_jump_while_somebody_is_at_work() -> None:
    clock = ScaledClock(VirtualClock(), AS_FAST_AS_POSSIBLE, start=0.0)
    driver = driver_of(clock, Alarm(10.0), may_jump=False)
    assert 0 < driver.run_once() < 1
    assert clock.now() == 0.0


def test_a_part_that_raises_does_not_stop_the_thread(caplog: pytest.LogCaptureFixture) -> None:
    raised = threading.Event()

    class Broken:
        def next_deadline(self) -> float | None:
            return None if raised.is_set() else 0.0

        def tick(self, now: float) -> None:
            raised.set()
            raise RuntimeError("broken")

    rung = threading.Event()

    class Bell:
        wanted = False

        def next_deadline(self) -> float | None:
            return 0.0 if self.wanted else None

        def tick(self, now: float) -> None:
            self.wanted = False
            rung.set()

    bell = Bell()
    driver = Driver(ScaledClock(RealClock()))
    driver.start([Broken(), bell])
    try:
        assert raised.wait(10)
        bell.wanted = True
        driver.wake()
        assert rung.wait(10)
    finally:
        driver.stop()
    assert "a part of the sandbox raised" in caplog.text


@pytest.mark.parametrize("speed", [0.5, 1.0, 60.0, math.inf])
def test_sleeping_takes_as_long_as_the_clock_says(speed: float) -> None:
    real = VirtualClock(1000.0)
    clock = ScaledClock(real, speed, 77.0)
    clock.sleep(3.0)
    assert clock.now() == pytest.approx(80.0)
    if not math.isinf(speed):
        assert real.now() == pytest.approx(1000.0 + 3.0 / speed)
