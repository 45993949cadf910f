"""What a workload does: a list of operations over object templates, read from YAML.

In the spirit of kube-scheduler's scheduler_perf; the format is described in docs/performance.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from scheduler_core.ports import Json

__all__ = [
    "PARAMETERS",
    "Barrier",
    "Churn",
    "Count",
    "CreateNodes",
    "CreateObjects",
    "CreatePods",
    "InvalidWorkload",
    "Op",
    "Workload",
]

#: What ``--nodes`` and ``--pods`` replace; each workload gives both a default.
PARAMETERS: Final = ("nodes", "pods")


class InvalidWorkload(ValueError):
    """A workload file is faulty; the text names file, operation and field."""

    def __init__(self, source: str, field_path: str, message: str) -> None:
        where = f"{source}: {field_path}" if field_path else source
        super().__init__(f"{where}: {message}")
        self.source = source
        self.field_path = field_path
        self.message = message


@dataclass(frozen=True, slots=True)
class Count:
    """``times`` x a parameter, or ``times`` alone (``parameter`` is "")."""

    times: int
    parameter: str = ""

    def value(self, parameters: Mapping[str, int]) -> int:
        return self.times * (parameters[self.parameter] if self.parameter else 1)


@dataclass(frozen=True, slots=True)
class CreateNodes:
    """Nodes; the hostname label is set as a kubelet sets it.

    Attributes:
        templates: names of templates, used in turn.
        labels: label -> values that nodes get in turn (zones).
        prefix: names are this and a number.
    """

    count: Count
    templates: tuple[str, ...]
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    prefix: str = "node-"


@dataclass(frozen=True, slots=True)
class CreatePods:
    """Pods of one namespace.

    Attributes:
        templates: names of templates, used in turn.
        measured: these are what the run is about (``collectMetrics``).
        bound: they run already, on the nodes in turn (``assign: inTurn``).
        wait_for: the operation ends when each pod has had an attempt, or has got a node.
    """

    count: Count
    templates: tuple[str, ...]
    namespace: str = "default"
    measured: bool = False
    bound: bool = False
    wait_for: Literal["attempt", "node"] = "attempt"
    prefix: str = "pod-"


@dataclass(frozen=True, slots=True)
class CreateObjects:
    """Objects of any other kind, of one template."""

    count: Count
    template: str


@dataclass(frozen=True, slots=True)
class Churn:
    """Objects that come and go while pods are scheduled, until the end of the run.

    After every ``every_pods`` scheduling cycles one object of each template is created, in turn
    nodes and pods; ``keep`` of each stay, the oldest is deleted first. Measured in cycles and not
    in seconds, so that a faster machine does the same work.
    """

    templates: tuple[str, ...]
    every_pods: int
    keep: int = 1


@dataclass(frozen=True, slots=True)
class Barrier:
    """Schedule until every pod so far has had an attempt."""


Op = CreateNodes | CreatePods | CreateObjects | Churn | Barrier


@dataclass(frozen=True, slots=True)
class Workload:
    """One workload file.

    Attributes:
        parameters: "nodes" and "pods" with their defaults.
        templates: name -> Kubernetes object.
    """

    name: str
    description: str
    parameters: Mapping[str, int]
    templates: Mapping[str, Json]
    ops: tuple[Op, ...]

    def kind(self, template: str) -> str:
        return str(self.templates[template]["kind"])
