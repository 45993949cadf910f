"""Benchmarks of the scheduler: workload files, a cluster without an API server, and the report.

What is measured is the scheduler that people run: ``core`` drives ``Scheduler.run_once`` with the
whole default profile. Nothing imports this package but the command that starts it.
"""
