"""All that is wrong with an object that comes in by HTTP: what the store finds, and more."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from scheduler_core.api.errors import FieldError
from scheduler_core.ports import Json

from .catalog import Served
from .metadata_rules import created_faults, updated_faults
from .pod_node_rules import node_faults, pod_faults
from .small_rules import SMALL_RULES
from .workload_rules import (
    deployment_faults,
    job_faults,
    replica_set_faults,
    stateful_set_faults,
)

__all__ = ["faults_of"]

_Workload = Callable[[Json | None, Json, Sequence[FieldError]], Iterator[FieldError]]

#: the store's word for taints, which are not metadata
_TAINTS: Final = "metadata.taints"
#: kinds of which some of the store's faults, those of pods above all, are taken over
_WORKLOADS: Final[Mapping[str, _Workload]] = MappingProxyType(
    {
        "Deployment": deployment_faults,
        "Job": job_faults,
        "Node": node_faults,
        "Pod": pod_faults,
        "ReplicaSet": replica_set_faults,
        "StatefulSet": stateful_set_faults,
    }
)
#: kinds of which the store's own faults go before those of this door
_ALSO_BY_STORE: Final = frozenset({"CustomResourceDefinition", "PriorityClass"})


def faults_of(
    served: Served, old: Json | None, new: Json, found: list[FieldError]
) -> list[FieldError]:
    """Every fault, in the server's order.

    Args:
        old: the object that is there; None where a new one is made.
        found: the store's own faults. What they say of metadata is said here again, and better.
    """
    kind = "Event v1" if served.kind == "Event" and not served.group else served.kind
    if served.custom:
        kind = served.qualified_kind  # not to be taken for a built-in kind of that name
    metadata = new["metadata"]
    rest = _of_the_kind(kind, old, new, found)
    if old is None:
        return [*created_faults(kind, metadata), *rest]
    first, own = updated_faults(kind, old["metadata"], metadata)
    return [*first, *own, *rest]


def _of_the_kind(
    kind: str, old: Json | None, new: Json, found: list[FieldError]
) -> list[FieldError]:
    known = [fault for fault in found if not _is_said_again(fault)]
    if kind in _WORKLOADS:
        return list(_WORKLOADS[kind](old, new, known))
    if kind in SMALL_RULES:
        first = known if kind in _ALSO_BY_STORE else []
        return [*first, *SMALL_RULES[kind](old, new)]
    return known


def _is_said_again(fault: FieldError) -> bool:
    path, why = fault
    if path != "metadata.name":
        return path.startswith("metadata") and not path.startswith(_TAINTS)
    # Beside the syntax of names a kind may have a rule of its own for them.
    return any(words in why for words in ("Required value", "RFC 1123", "must be no more"))
