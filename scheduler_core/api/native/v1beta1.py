"""scheduling.k8s.io/v1beta1, which is also served as v1alpha3: the names of Kubernetes 1.37."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from ..errors import FieldError
from ..reader import Reader
from .checks import chosen, name_fault, union_fault
from .form import Dialect, DisruptionMode, TemplateRef

__all__ = ["V1BETA1"]

_MODES: Final = ("single", "all")


def _read_template_ref(spec: Reader) -> TemplateRef | None:
    ref = spec.optional_child("workloadRef")
    return None if ref is None else TemplateRef(ref.text("workloadName"), ref.text("templateName"))


def _write_template_ref(ref: TemplateRef) -> dict[str, Any]:
    return {"workloadName": ref.workload, "templateName": ref.template}


def _read_disruption_mode(spec: Reader) -> DisruptionMode:
    mode = spec.optional_child("disruptionMode")
    found = () if mode is None else chosen(mode.raw, _MODES)
    return DisruptionMode(found[0]) if len(found) == 1 else DisruptionMode.UNSET


def _template_ref_faults(ref: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    for field in ("workloadName", "templateName"):
        yield from name_fault(ref.get(field), f"{path}.{field}")


def _disruption_mode_faults(mode: Any, path: str) -> Iterator[FieldError]:
    if isinstance(mode, Mapping):
        yield from union_fault(chosen(mode, _MODES), _MODES, path)


V1BETA1: Final = Dialect(
    versions=("scheduling.k8s.io/v1beta1", "scheduling.k8s.io/v1alpha3"),
    scheduled_condition="PodGroupInitiallyScheduled",
    template_ref_field="workloadRef",
    min_count_may_change=True,
    read_template_ref=_read_template_ref,
    write_template_ref=_write_template_ref,
    read_disruption_mode=_read_disruption_mode,
    template_ref_faults=_template_ref_faults,
    disruption_mode_faults=_disruption_mode_faults,
    template_ref_fields=MappingProxyType({"workloadName": None, "templateName": None}),
    disruption_mode_fields=MappingProxyType({"single": {}, "all": {}}),
    fields="parentCompositePodGroupName preemptionPolicy",
)
