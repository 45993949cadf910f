"""What a scheduler counts about itself: kube-scheduler's metrics, as plain numbers.

``catalog`` says what there is, ``store`` keeps the numbers, ``SchedulerMetrics`` fills them in. How
they are written down for Prometheus is not this package's business.
"""

from __future__ import annotations

from scheduler_core.metrics.catalog import CATALOG, Metric
from scheduler_core.metrics.scheduler_metrics import SchedulerMetrics
from scheduler_core.metrics.store import HistogramValue, Samples, Store, add_up

__all__ = ["CATALOG", "HistogramValue", "Metric", "Samples", "SchedulerMetrics", "Store", "add_up"]
