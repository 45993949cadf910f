"""Native gangs: PodGroup and Workload of scheduling.k8s.io, in one internal form.

`v1alpha2` (Kubernetes 1.36) and `v1beta1` (1.37, also served as v1alpha3) each know the names that
their API version gives to fields and conditions. Everybody else speaks of `NativePodGroup`.
"""

from __future__ import annotations

from .dialects import dialect_of
from .form import Dialect, DisruptionMode, GroupSpec, TemplateRef
from .objects import NATIVE_POD_GROUP, NativePodGroup, PodGroupTemplate, Workload

__all__ = [
    "NATIVE_POD_GROUP",
    "Dialect",
    "DisruptionMode",
    "GroupSpec",
    "NativePodGroup",
    "PodGroupTemplate",
    "TemplateRef",
    "Workload",
    "dialect_of",
]
