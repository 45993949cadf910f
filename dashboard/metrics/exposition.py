"""Samples as Prometheus reads them, and as processes hand them to each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import accumulate
from typing import Any, Final

from prometheus_client import CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from dashboard.metrics.catalog import CATALOG
from scheduler_core.metrics import HistogramValue, Metric, Samples

__all__ = ["as_json", "from_json", "page"]

_TOTAL: Final = "_total"


def page(
    samples: Samples,
    accept: str = "",
    *,
    catalog: Mapping[str, Metric] = CATALOG,
    process: bool = False,
) -> tuple[bytes, str]:
    """The text and its media type, as ``accept`` wants it: Prometheus' format or OpenMetrics.

    Args:
        process: with memory, CPU and file descriptors of this process.
    """
    encode, media_type = choose_encoder(accept)
    registry = CollectorRegistry(auto_describe=False)
    # OpenMetrics wants 1.0 where kube-scheduler, and so everybody's queries, have 1.
    write = floatToGoString if "openmetrics" in media_type else _as_go
    registry.register(_Samples(samples, catalog, write))
    if process:
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)
    return encode(registry), media_type


def _as_go(bound: float) -> str:
    """As Go's client writes a bucket's bound."""
    return floatToGoString(bound).removesuffix(".0")


class _Samples(Collector):
    def __init__(
        self, samples: Samples, catalog: Mapping[str, Metric], write: Callable[[float], str]
    ) -> None:
        self._samples = samples
        self._catalog = catalog
        self._write = write

    def describe(self) -> Iterable[Family]:
        return ()

    def collect(self) -> Iterable[Family]:
        for metric in self._catalog.values():
            series = self._samples.get(metric.name, {})
            if metric.type == "histogram":
                yield _histogram(metric, series, self._write)
            else:
                yield _family(metric, series)


def _help(metric: Metric) -> str:
    return f"[{metric.stability}] {metric.help}"


def _family(metric: Metric, series: Mapping[tuple[str, ...], object]) -> Family:
    text = _help(metric)
    family: CounterMetricFamily | GaugeMetricFamily
    if metric.type == "counter":
        family = CounterMetricFamily(metric.name.removesuffix(_TOTAL), text, labels=metric.labels)
    else:
        family = GaugeMetricFamily(metric.name, text, labels=metric.labels)
    for labels, value in sorted(series.items()):
        assert isinstance(value, int | float)
        family.add_metric(labels, value)
    return family


def _histogram(
    metric: Metric, series: Mapping[tuple[str, ...], object], write: Callable[[float], str]
) -> Family:
    family = HistogramMetricFamily(metric.name, _help(metric), labels=metric.labels)
    bounds = [*map(write, metric.buckets), "+Inf"]
    for labels, value in sorted(series.items()):
        assert isinstance(value, HistogramValue)
        buckets = zip(bounds, accumulate(value.counts), strict=True)
        family.add_metric(labels, [(bound, float(n)) for bound, n in buckets], value.sum)
    return family


def as_json(samples: Samples) -> dict[str, Any]:
    """Plain lists, for another process."""
    return {
        name: [[list(labels), _plain(value)] for labels, value in series.items()]
        for name, series in samples.items()
    }


def _plain(value: object) -> object:
    return [list(value.counts), value.sum] if isinstance(value, HistogramValue) else value


def from_json(document: Mapping[str, Any]) -> Samples:
    """The samples of another process."""
    return {
        name: {tuple(labels): _value(value) for labels, value in series}
        for name, series in document.items()
    }


def _value(value: Any) -> float | HistogramValue:
    if isinstance(value, list):
        counts, total = value
        return HistogramValue(tuple(counts), total)
    return float(value)
