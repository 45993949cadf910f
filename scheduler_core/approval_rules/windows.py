"""Times of the week at which nobody has to be asked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

__all__ = ["DAYS", "WeeklyWindow", "next_opening"]

#: In the order of ``date.weekday``.
DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")

_DAY: Final = 24 * 60


@dataclass(frozen=True, slots=True)
class WeeklyWindow:
    """Open from ``start`` to ``end`` on some days of the week, by the clocks of a time zone.

    Attributes:
        days: weekdays (0: Monday) on which it opens.
        start, end: minutes after midnight, 0..1440; one that ends before it starts ends on the
            next day.
        zone: whose clocks. Where they are put forward, a time that does not exist counts as the
            one an hour later; where they are put back, the first of two equal times counts.
    """

    days: frozenset[int]
    start: int
    end: int
    zone: ZoneInfo

    def openings(self, now: float) -> Iterator[tuple[float, float]]:
        """(opens, closes), as times of day in seconds, of every opening that is not over by
        ``now``, for a week to come."""
        today = datetime.fromtimestamp(now, tz=self.zone).date()
        for ahead in range(-2, 9):
            day = today + timedelta(days=ahead)
            if day.weekday() not in self.days:
                continue
            midnight = datetime(day.year, day.month, day.day, tzinfo=self.zone)
            length = self.end if self.end > self.start else self.end + _DAY
            opens, closes = self._at(midnight, self.start), self._at(midnight, length)
            if closes > now:
                yield opens, closes

    def _at(self, midnight: datetime, minutes: int) -> float:
        """Clock time, not elapsed time: 08:00 stays 08:00 on the day of a change."""
        return (midnight + timedelta(minutes=minutes)).astimezone(UTC).timestamp()


def next_opening(windows: Iterable[WeeklyWindow], now: float) -> float | None:
    """When the first window opens; ``now`` or before where one is open; None without windows."""
    return min((opens for w in windows for opens, _ in w.openings(now)), default=None)
