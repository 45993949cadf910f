"""Numbers by metric and label values.

One thread writes, any thread may read: values are only ever replaced whole or grow, and copies of a
dict are made in one step of the interpreter. A reader may see a histogram's sum one observation
behind its counts; the next reading has it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from scheduler_core.metrics.catalog import CATALOG, Metric

__all__ = ["Count", "Histogram", "HistogramValue", "Labels", "Samples", "Store", "Value", "add_up"]

Labels = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HistogramValue:
    """``counts``: observations per bucket, not added up; the last one is beyond all bounds."""

    counts: tuple[int, ...]
    sum: float


Value = float | HistogramValue
#: metric -> label values -> value
Samples = dict[str, dict[Labels, Value]]


class Histogram:
    """One series: observations by bucket."""

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    def value(self) -> HistogramValue:
        return HistogramValue(tuple(self.counts), self.sum)


class Count:
    """One series of a counter."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0.0


class Store:
    """Series of the catalogue's metrics, made when they are first used. Those without labels are
    there from the beginning, as in the reference."""

    def __init__(self, catalog: Mapping[str, Metric] = CATALOG) -> None:
        self._catalog = catalog
        self._counts: dict[str, dict[Labels, Count]] = {}
        self._histograms: dict[str, dict[Labels, Histogram]] = {}
        self._gauges: dict[str, Mapping[Labels, float]] = {}
        for metric in catalog.values():
            has_one = not metric.labels and not metric.reserved
            if metric.type == "histogram":
                self._histograms[metric.name] = {(): Histogram(metric.buckets)} if has_one else {}
            elif metric.type == "counter":
                self._counts[metric.name] = {(): Count()} if has_one else {}
            else:
                self._gauges[metric.name] = {(): 0.0} if has_one else {}

    def histogram(self, name: str, *labels: str) -> Histogram:
        """A series to observe into; the same one for the same labels."""
        series = self._histograms[name]
        found = series.get(labels)
        if found is None:
            found = series[labels] = Histogram(self._catalog[name].buckets)
        return found

    def count(self, name: str, *labels: str) -> Count:
        """A series of a counter, to let it grow; the same one for the same labels."""
        series = self._counts[name]
        found = series.get(labels)
        if found is None:
            found = series[labels] = Count()
        return found

    def add(self, name: str, *labels: str) -> None:
        """One more."""
        self.count(name, *labels).value += 1

    def replace(self, name: str, values: Mapping[Labels, float]) -> None:
        """All values of a gauge."""
        self._gauges[name] = values

    def samples(self) -> Samples:
        """What there is now."""
        found: Samples = {}
        for name in self._catalog:
            if name in self._histograms:
                histograms = self._histograms[name].copy()
                found[name] = {labels: each.value() for labels, each in histograms.items()}
            elif name in self._counts:
                counts = self._counts[name].copy()
                found[name] = {labels: each.value for labels, each in counts.items()}
            else:
                found[name] = dict(self._gauges[name])
        return found


def add_up(all_samples: Iterable[Samples]) -> Samples:
    """The samples of several schedulers as one would have them: everything is a number of things,
    of seconds or of observations, and adds up."""
    total: Samples = {}
    for samples in all_samples:
        for name, series in samples.items():
            into = total.setdefault(name, {})
            for labels, value in series.items():
                known = into.get(labels)
                into[labels] = value if known is None else _sum(known, value)
    return total


def _sum(one: Value, other: Value) -> Value:
    if isinstance(one, HistogramValue) and isinstance(other, HistogramValue):
        counts = tuple(a + b for a, b in zip(one.counts, other.counts, strict=True))
        return HistogramValue(counts, one.sum + other.sum)
    if isinstance(one, HistogramValue) or isinstance(other, HistogramValue):
        raise TypeError("a histogram and a number do not add up")
    return one + other
