"""The clock that tests drive by hand."""

from __future__ import annotations

from scheduler_core.clock import VirtualClock

__all__ = ["VirtualClock"]
