"""PodGroup and Workload of scheduling.k8s.io, parsed once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ..metadata import Condition, KubeObject, read_conditions, read_metadata
from ..reader import Reader
from .dialects import dialect_of
from .form import Dialect, GroupSpec, TemplateRef

__all__ = ["NATIVE_POD_GROUP", "NativePodGroup", "PodGroupTemplate", "Workload"]

#: the kind's name in here; "PodGroup" alone is that of scheduling.x-k8s.io (coscheduling)
NATIVE_POD_GROUP: Final = "PodGroup.scheduling.k8s.io"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class NativePodGroup(KubeObject):
    """A group of pods of its namespace, which name it in spec.schedulingGroup.podGroupName.

    Attributes:
        api_version: as the object is written.
        spec: what it asks for, whatever the version calls it.
        template: the Workload's template that it was made from, or None.
        scheduled: the condition that says whether it has been scheduled, or None.
    """

    api_version: str
    spec: GroupSpec
    template: TemplateRef | None = None
    conditions: tuple[Condition, ...] = ()
    scheduled: Condition | None = None

    @property
    def dialect(self) -> Dialect:
        """The names that its API version uses."""
        return dialect_of(self.api_version)

    @property
    def min_count(self) -> int:
        """Pods that have to be placed together; 0 where it is no gang."""
        return self.spec.min_count

    @classmethod
    def read(cls, reader: Reader) -> NativePodGroup:
        """Parse as far as possible; faults stay with the reader."""
        version = reader.text("apiVersion")
        dialect = dialect_of(version)
        spec = reader.child("spec")
        conditions = read_conditions(reader.child("status"))
        return cls(
            **read_metadata(reader, namespaced=True),
            api_version=version or dialect.versions[0],
            spec=_read_group(spec, dialect),
            template=dialect.read_template_ref(spec),
            conditions=conditions,
            scheduled=next((c for c in conditions if c.type == dialect.scheduled_condition), None),
        )


@dataclass(frozen=True, slots=True)
class PodGroupTemplate:
    """One kind of pod group that a Workload consists of."""

    name: str
    spec: GroupSpec


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Workload(KubeObject):
    """What the controller of a workload makes its PodGroups from. The scheduler does not need it.

    Attributes:
        controller_ref: kind and name of the object behind it (`Job`, `train`), or None.
    """

    api_version: str
    templates: tuple[PodGroupTemplate, ...] = ()
    controller_ref: tuple[str, str] | None = None

    @classmethod
    def read(cls, reader: Reader) -> Workload:
        """Parse as far as possible; faults stay with the reader."""
        version = reader.text("apiVersion")
        dialect = dialect_of(version)
        spec = reader.child("spec")
        owner = spec.optional_child("controllerRef")
        return cls(
            **read_metadata(reader, namespaced=True),
            api_version=version or dialect.versions[0],
            templates=tuple(
                PodGroupTemplate(entry.text("name"), _read_group(entry, dialect))
                for entry in spec.items("podGroupTemplates")
            ),
            controller_ref=None if owner is None else (owner.text("kind"), owner.text("name")),
        )


def _read_group(spec: Reader, dialect: Dialect) -> GroupSpec:
    gang = spec.child("schedulingPolicy").optional_child("gang")
    constraints = spec.child("schedulingConstraints")
    return GroupSpec(
        min_count=0 if gang is None else gang.integer("minCount"),
        topology_keys=tuple(entry.text("key") for entry in constraints.items("topology")),
        disruption_mode=dialect.read_disruption_mode(spec),
        priority_class_name=spec.text("priorityClassName"),
        priority=spec.optional_integer("priority"),
    )
