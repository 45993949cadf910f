"""What `make demo` shows: a sandbox where something happens, or the replay of a trace."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from django.core.management.base import CommandError

from dashboard.models import Cluster, Sandbox, SchedulerRun
from dashboard.sandboxes import create_sandbox, create_trace_sandbox
from dashboard.workload_specs import load_trace as load_saved_trace
from scheduler_core.workloads.trace import Trace, TraceError, find_trace, load_trace

DEMO: Final = "demo"


def prepare(trace: Path | None) -> int | None:
    """Make the sandbox on the first start; later starts go on with what is there.

    Returns:
        The run to open: of the trace's sandbox, of the demo's, or None where that one is gone.

    Raises:
        CommandError: the folder does not hold a trace, or the trace is faulty.
    """
    name = DEMO if trace is None else _prepare_trace(trace)
    if trace is None and not Cluster.objects.filter(name=DEMO).exists():
        create_sandbox(name=DEMO, preset="demo")
    newest = SchedulerRun.objects.filter(cluster__name=name).order_by("-pk").first()
    return newest.pk if newest is not None else None


def _prepare_trace(folder: Path) -> str:
    """The name of the sandbox that replays the folder's trace."""
    try:
        trace = load_trace(*find_trace(folder))
    except TraceError as error:
        raise CommandError(str(error)) from error
    for name in _names(trace_name(folder)):
        known = Cluster.objects.filter(name=name).first()
        if known is None:
            create_trace_sandbox(name=name, trace=trace)
            return name
        if _replays(known, trace):
            # A sandbox that a person stopped is wanted again by asking for its trace.
            Sandbox.objects.filter(pk=known.pk).update(desired_state=Sandbox.DesiredState.RUNNING)
            return name
    raise AssertionError("names do not end")


def _names(base: str) -> Iterator[str]:
    yield base
    yield from (f"{base}-{number}" for number in itertools.count(2))


def _replays(cluster: Cluster, trace: Trace) -> bool:
    return hasattr(cluster, "trace") and load_saved_trace(cluster.pk) == trace


def trace_name(folder: Path) -> str:
    """The name of the sandbox for a folder: ``trace-`` and the folder's own name."""
    words = re.sub(r"[^a-z0-9]+", "-", folder.resolve().name.lower()).strip("-")
    return f"trace-{words}"[:58].rstrip("-")
