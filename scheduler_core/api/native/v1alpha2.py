"""scheduling.k8s.io/v1alpha2, the names of Kubernetes 1.36."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from ..errors import FieldError, unsupported
from ..reader import Reader
from .checks import chosen, name_fault, union_fault
from .form import Dialect, DisruptionMode, TemplateRef

__all__ = ["V1ALPHA2"]

_MODES: Final[Mapping[str, DisruptionMode]] = MappingProxyType(
    {"Pod": DisruptionMode.SINGLE, "PodGroup": DisruptionMode.ALL}
)


def _read_template_ref(spec: Reader) -> TemplateRef | None:
    ref = spec.optional_child("podGroupTemplateRef")
    workload = None if ref is None else ref.optional_child("workload")
    if workload is None:
        return None
    return TemplateRef(workload.text("workloadName"), workload.text("podGroupTemplateName"))


def _write_template_ref(ref: TemplateRef) -> dict[str, Any]:
    return {"workload": {"workloadName": ref.workload, "podGroupTemplateName": ref.template}}


def _read_disruption_mode(spec: Reader) -> DisruptionMode:
    return _MODES.get(spec.text("disruptionMode"), DisruptionMode.UNSET)


def _template_ref_faults(ref: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    yield from union_fault(chosen(ref, ("workload",)), ("workload",), path)
    workload = ref.get("workload")
    if isinstance(workload, Mapping):
        for field in ("workloadName", "podGroupTemplateName"):
            yield from name_fault(workload.get(field), f"{path}.workload.{field}")


def _disruption_mode_faults(mode: Any, path: str) -> Iterator[FieldError]:
    if isinstance(mode, str) and mode not in _MODES:
        yield path, unsupported(mode, _MODES)


V1ALPHA2: Final = Dialect(
    versions=("scheduling.k8s.io/v1alpha2",),
    scheduled_condition="PodGroupScheduled",
    template_ref_field="podGroupTemplateRef",
    min_count_may_change=False,
    read_template_ref=_read_template_ref,
    write_template_ref=_write_template_ref,
    read_disruption_mode=_read_disruption_mode,
    template_ref_faults=_template_ref_faults,
    disruption_mode_faults=_disruption_mode_faults,
    template_ref_fields=MappingProxyType(
        {"workload": {"workloadName": None, "podGroupTemplateName": None}}
    ),
    disruption_mode_fields=None,
)
