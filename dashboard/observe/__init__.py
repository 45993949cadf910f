"""Runs that only look on: what another scheduler decides beside what we would. docs/observe.md."""
