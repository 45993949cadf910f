"""The internal form of a pod group's fields, and what an API version has to say about them."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import FieldError
from ..reader import Reader

__all__ = ["Dialect", "DisruptionMode", "GroupSpec", "TemplateRef"]


class DisruptionMode(enum.Enum):
    """What may be preempted or evicted: one pod of the group, or the group as a whole."""

    UNSET = ""
    SINGLE = "single"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class TemplateRef:
    """Where a PodGroup comes from: a template of a Workload in its namespace."""

    workload: str
    template: str


@dataclass(frozen=True, slots=True)
class GroupSpec:
    """What a PodGroup, or the template of one, asks for.

    Attributes:
        min_count: pods that have to be placed together; 0 for the basic policy, whose pods are
            scheduled like any others.
        topology_keys: node labels that all members have to agree in.
        priority: None where the object says nothing.
    """

    min_count: int = 0
    topology_keys: tuple[str, ...] = ()
    disruption_mode: DisruptionMode = DisruptionMode.UNSET
    priority_class_name: str = ""
    priority: int | None = None

    @property
    def is_gang(self) -> bool:
        return self.min_count > 0


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one API version spells what others spell differently.

    Attributes:
        versions: the apiVersions that are read and written this way.
        scheduled_condition: the condition that says whether the group has been scheduled.
        template_ref_field: the field of a PodGroup's spec that names its template.
        min_count_may_change: whether a gang's minCount may be changed after creation.
        fields: names of further fields of a group's spec, for the search of misspelt ones.
        template_ref_fields: what the field that names the template may contain.
        disruption_mode_fields: what disruptionMode may contain; None: it is plain text.
    """

    versions: tuple[str, ...]
    scheduled_condition: str
    template_ref_field: str
    min_count_may_change: bool
    read_template_ref: Callable[[Reader], TemplateRef | None]
    write_template_ref: Callable[[TemplateRef], dict[str, Any]]
    read_disruption_mode: Callable[[Reader], DisruptionMode]
    template_ref_faults: Callable[[Mapping[str, Any], str], Iterator[FieldError]]
    disruption_mode_faults: Callable[[Any, str], Iterator[FieldError]]
    template_ref_fields: Mapping[str, Any]
    disruption_mode_fields: Mapping[str, Any] | None
    fields: str = ""
