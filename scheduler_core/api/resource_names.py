"""Which resources the scheduler counts, and in which unit (kube-scheduler 1.36)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from .quantity import nano_to_milli, nano_to_value

__all__ = [
    "CPU",
    "EPHEMERAL_STORAGE",
    "MEMORY",
    "PODS",
    "is_attachable_volume_resource",
    "is_extended_resource",
    "is_hugepages_resource",
    "is_known_resource",
    "is_pod_level_resource",
    "is_scalar_resource",
    "scheduler_amount",
    "scheduler_amounts",
]

CPU: Final = "cpu"
MEMORY: Final = "memory"
EPHEMERAL_STORAGE: Final = "ephemeral-storage"

#: how many pods a node takes; only nodes have it, a request for it is ignored
PODS: Final = "pods"

_BASE: Final = frozenset({CPU, MEMORY, EPHEMERAL_STORAGE})


def is_extended_resource(name: str) -> bool:
    """A vendor's resource, such as `nvidia.com/gpu`."""
    return "/" in name and "kubernetes.io/" not in name and not name.startswith("requests.")


def is_hugepages_resource(name: str) -> bool:
    return name.startswith("hugepages-")


def is_attachable_volume_resource(name: str) -> bool:
    return name.startswith("attachable-volumes-")


@lru_cache(maxsize=4096)
def is_scalar_resource(name: str) -> bool:
    """Counted beside cpu, memory, ephemeral-storage and pods."""
    return (
        is_extended_resource(name)
        or is_hugepages_resource(name)
        or "kubernetes.io/" in name
        or is_attachable_volume_resource(name)
    )


def is_known_resource(name: str) -> bool:
    """Whether a pod's request for it counts at all."""
    return name in _BASE or is_scalar_resource(name)


def is_pod_level_resource(name: str) -> bool:
    """Whether spec.resources of a pod may replace what its containers ask of it."""
    return name in (CPU, MEMORY) or is_hugepages_resource(name)


def scheduler_amount(name: str, nano: int) -> int:
    """Nano-units in the scheduler's unit, rounded up: cpu in millicores, the rest in base units."""
    return nano_to_milli(nano) if name == CPU else nano_to_value(nano)


def scheduler_amounts(nanos: Mapping[str, int]) -> dict[str, int]:
    """A node's resource list in the scheduler's units; resources it does not know are left out."""
    return {
        name: scheduler_amount(name, nano)
        for name, nano in nanos.items()
        if name == PODS or is_known_resource(name)
    }
