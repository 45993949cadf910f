"""Metrics for Prometheus: what the schedulers of this process count, and how it is written down.

See docs/design/013-metrics.md.
"""
