"""Every channel-layer group name is made here."""

from __future__ import annotations

from typing import Final

OVERVIEW: Final = "overview"
CYCLES: Final = "cycles"
QUEUES: Final = "queues"
HEATMAP: Final = "heatmap"
WAITING: Final = "waiting"
RUN: Final = "run"
OBSERVE: Final = "observe"

#: What a page may subscribe to.
TOPICS: Final = (OVERVIEW, CYCLES, QUEUES, HEATMAP, WAITING, RUN, OBSERVE)


def run_topic(run_id: int, topic: str) -> str:
    """The group of one topic of one run."""
    return f"run.{run_id}.{topic}"


def permit_doorbell(run_id: int) -> str:
    """The Redis channel that wakes a run's permit inbox. Not a channel-layer group."""
    return f"kubesched.permits.{run_id}"
