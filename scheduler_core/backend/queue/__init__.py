"""The scheduling queue: activeQ, backoffQ, unschedulable and gated pods, pods in flight."""

from __future__ import annotations

from scheduler_core.backend.queue.nominator import PodNominator
from scheduler_core.backend.queue.scheduling_queue import SchedulingQueue

__all__ = ["PodNominator", "SchedulingQueue"]
