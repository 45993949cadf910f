"""Preemption: which pods could make way for one of higher priority, and how they are evicted.

kube-scheduler 1.36. ``Evaluator`` only looks (dry runs on clones); ``Evictions`` acts.
"""

from __future__ import annotations

from scheduler_core.framework.preemption.evaluator import Evaluator, Preemption
from scheduler_core.framework.preemption.evictions import Evictions

__all__ = ["Evaluator", "Evictions", "Preemption"]
