"""What happens in a sandbox, as JSON on its row, and the workload that such a specification makes.

``{"kind": "demo"}``, ``{"kind": "synthetic", "preset": "small"}`` (instead of a name also an object
with the fields of ``synthetic.Preset``: ``{"name": "mine", "nodes": 50, "arrivals": 200}``),
``{"kind": "trace", "fit": 300}`` (the trace itself is in ``SandboxTrace``), or ``{}`` for nothing.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final

import orjson

from dashboard.models import SandboxTrace
from scheduler_core.workloads.base import Workload
from scheduler_core.workloads.demo import DemoWorkload
from scheduler_core.workloads.synthetic import Preset, SyntheticWorkload
from scheduler_core.workloads.trace import Trace, TraceNode, TracePod, TraceWorkload

Spec = Mapping[str, Any]

#: The kind, and the preset's name, of a sandbox that replays a trace.
TRACE: Final = "trace"

#: What a person may choose for a new sandbox: name -> specification.
PRESETS: Final[dict[str, dict[str, Any]]] = {
    "demo": {"kind": "demo"},
    "empty": {},
    "small": {"kind": "synthetic", "preset": "small"},
    "large": {"kind": "synthetic", "preset": "large"},
}


class InvalidWorkload(ValueError):
    """The specification on a sandbox's row does not make a workload."""


def make_workload(cluster_id: int, spec: Spec, state: Spec) -> Workload | None:
    """The workload of a sandbox, going on from ``state``; None where nothing shall happen.

    Raises:
        InvalidWorkload: unknown kind or option, or a state of another workload.
    """
    if not spec:
        return None
    options = {key: value for key, value in spec.items() if key != "kind"}
    try:
        workload = _make(cluster_id, spec.get("kind"), options)
        if state:
            workload.load(dict(state))
    except (TypeError, ValueError, SandboxTrace.DoesNotExist) as error:
        raise InvalidWorkload(f"{dict(spec)}: {error}") from error
    return workload


def _make(cluster_id: int, kind: Any, options: dict[str, Any]) -> Workload:
    if kind == "demo":
        return DemoWorkload(**options)
    if kind == "synthetic":
        return _synthetic(**options)
    if kind == TRACE:
        trace = load_trace(cluster_id)
        return TraceWorkload(trace.nodes, trace.pods, **options)
    raise ValueError(f"unknown kind of workload {kind!r}")


def _synthetic(preset: Any, **options: Any) -> Workload:
    """A preset by its name, or one of one's own by its fields."""
    own = Preset(**preset) if isinstance(preset, Mapping) else preset
    return SyntheticWorkload(own, **options)


def save_trace(cluster_id: int, trace: Trace) -> None:
    """Keep a trace with its sandbox, so that it needs no files any more."""
    data = {
        "nodes": [asdict(node) for node in trace.nodes],
        "pods": [asdict(pod) for pod in trace.pods],
    }
    SandboxTrace.objects.create(cluster_id=cluster_id, blob=zlib.compress(orjson.dumps(data)))


def load_trace(cluster_id: int) -> Trace:
    """The trace of a sandbox.

    Raises:
        SandboxTrace.DoesNotExist: it has none.
    """
    row = SandboxTrace.objects.get(cluster=cluster_id)
    data = orjson.loads(zlib.decompress(bytes(row.blob)))
    nodes = tuple(TraceNode(**node) for node in data["nodes"])
    pods = tuple(TracePod(**{**pod, "models": tuple(pod["models"])}) for pod in data["pods"])
    return Trace(nodes, pods)
