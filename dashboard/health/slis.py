"""``/metrics/slis``: how checks ended, as component-base 1.36 counts it for kube-scheduler.

Counted when a probe asks for all of its checks; one check that is asked alone, and one that is left
out, are not.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Final

from scheduler_core.metrics import Metric, Samples, Store
from scheduler_core.metrics.store import Labels

__all__ = ["CATALOG", "Slis"]

_NOW: Final = "kubernetes_healthcheck"
_TOTAL: Final = "kubernetes_healthchecks_total"

CATALOG: Final[Mapping[str, Metric]] = {
    _NOW: Metric(
        _NOW,
        "gauge",
        "1 where the check has passed the last time, else 0.",
        ("name", "type"),
        stability="STABLE",
    ),
    _TOTAL: Metric(
        _TOTAL,
        "counter",
        "How often the check has passed (success) or failed (error).",
        ("name", "status", "type"),
        stability="STABLE",
    ),
}


class Slis:
    """Of one process; from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._store = Store(CATALOG)
        self._now: dict[Labels, float] = {}

    def note(self, name: str, probe: str, passed: bool) -> None:
        """``probe``: livez, readyz or healthz."""
        with self._lock:
            self._now[name, probe] = float(passed)
            self._store.add(_TOTAL, name, "success" if passed else "error", probe)

    def samples(self) -> Samples:
        with self._lock:
            self._store.replace(_NOW, dict(self._now))
            return self._store.samples()
