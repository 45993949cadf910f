"""PodGroup of scheduling.x-k8s.io/v1alpha1: the gang of the coscheduling plugin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .metadata import KubeObject, read_metadata
from .reader import Reader
from .resource_names import PODS, is_known_resource, scheduler_amount

__all__ = ["PodGroup"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class PodGroup(KubeObject):
    """A gang: pods of its namespace whose label scheduling.x-k8s.io/pod-group names it.

    Attributes:
        min_member: pods that have to be placed together; 1 if the object says nothing.
        min_resources: {resource: amount} in the scheduler's units, or None.
        schedule_timeout_seconds: how long members wait at Permit, or None.
        phase: "", Pending, Scheduling, Running, Unknown, Finished or Failed.
        schedule_start_time: seconds since 1970, or None.
    """

    min_member: int = 1
    min_resources: Mapping[str, int] | None = None
    schedule_timeout_seconds: int | None = None
    phase: str = ""
    occupied_by: str = ""
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    schedule_start_time: float | None = None

    @classmethod
    def read(cls, reader: Reader) -> PodGroup:
        spec = reader.child("spec")
        status = reader.child("status")
        resources = None
        if spec.has("minResources"):
            resources = {
                name: scheduler_amount(name, nano)
                for name, nano in spec.quantities("minResources").items()
                if name == PODS or is_known_resource(name)
            }
        return cls(
            **read_metadata(reader, namespaced=True),
            min_member=spec.integer("minMember", 1),
            min_resources=resources,
            schedule_timeout_seconds=spec.optional_integer("scheduleTimeoutSeconds"),
            phase=status.text("phase"),
            occupied_by=status.text("occupiedBy"),
            running=status.integer("running"),
            succeeded=status.integer("succeeded"),
            failed=status.integer("failed"),
            schedule_start_time=status.time("scheduleStartTime"),
        )
