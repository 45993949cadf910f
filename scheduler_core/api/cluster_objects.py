"""Namespace, PriorityClass, Event, Service, PodDisruptionBudget, and the
controllers of pods."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .metadata import KubeObject, read_metadata
from .reader import Reader
from .selectors import LabelSelector, label_selector

__all__ = [
    "Deployment",
    "Event",
    "Job",
    "Namespace",
    "ObjectReference",
    "PodDisruptionBudget",
    "PriorityClass",
    "ReplicaSet",
    "ReplicationController",
    "Service",
    "StatefulSet",
]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Namespace(KubeObject):
    """A namespace; its labels are what namespace selectors look at."""

    phase: str = "Active"

    @classmethod
    def read(cls, reader: Reader) -> Namespace:
        phase = reader.child("status").text("phase") or "Active"
        return cls(**read_metadata(reader, namespaced=False), phase=phase)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class PriorityClass(KubeObject):
    """A named priority."""

    value: int = 0
    global_default: bool = False
    preemption_policy: str = "PreemptLowerPriority"
    description: str = ""

    @classmethod
    def read(cls, reader: Reader) -> PriorityClass:
        return cls(
            **read_metadata(reader, namespaced=False),
            value=reader.integer("value"),
            global_default=reader.boolean("globalDefault"),
            preemption_policy=reader.text("preemptionPolicy") or "PreemptLowerPriority",
            description=reader.text("description"),
        )


@dataclass(frozen=True, slots=True)
class ObjectReference:
    """What an event is about."""

    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Event(KubeObject):
    """An event, of events.k8s.io/v1 or of the core group; times are seconds since 1970."""

    type: str = "Normal"
    reason: str = ""
    action: str = ""
    note: str = ""
    regarding: ObjectReference = ObjectReference()
    reporting_controller: str = ""
    event_time: float | None = None
    count: int = 1

    @classmethod
    def read(cls, reader: Reader) -> Event:
        about = reader.child("regarding" if reader.has("regarding") else "involvedObject")
        series = reader.child("series")
        source = reader.child("source").text("component")
        return cls(
            **read_metadata(reader, namespaced=True),
            type=reader.text("type") or "Normal",
            reason=reader.text("reason"),
            action=reader.text("action"),
            note=reader.text("note") or reader.text("message"),
            regarding=ObjectReference(
                about.text("kind"), about.text("namespace"), about.text("name"), about.text("uid")
            ),
            reporting_controller=reader.text("reportingController")
            or reader.text("reportingComponent")
            or source,
            event_time=reader.time("eventTime") or reader.time("lastTimestamp"),
            count=series.integer("count") or reader.integer("count") or 1,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Service(KubeObject):
    """A service; None as selector selects no pod."""

    selector: Mapping[str, str] | None = None

    def selects(self, labels: Mapping[str, str]) -> bool:
        """Whether it selects pods with these labels."""
        if self.selector is None:
            return False
        return all(labels.get(key) == value for key, value in self.selector.items())

    @classmethod
    def read(cls, reader: Reader) -> Service:
        spec = reader.child("spec")
        selector = spec.text_map("selector") if spec.has("selector") else None
        return cls(**read_metadata(reader, namespaced=True), selector=selector)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class PodDisruptionBudget(KubeObject):
    """How many pods of a set may be disrupted now.

    Attributes:
        selector: None selects no pod.
        disrupted_pods: names of pods whose eviction is under way.
    """

    selector: LabelSelector | None = None
    disruptions_allowed: int = 0
    disrupted_pods: frozenset[str] = frozenset()

    @classmethod
    def read(cls, reader: Reader) -> PodDisruptionBudget:
        status = reader.child("status")
        return cls(
            **read_metadata(reader, namespaced=True),
            selector=label_selector(reader.child("spec"), "selector"),
            disruptions_allowed=status.integer("disruptionsAllowed"),
            disrupted_pods=frozenset(status.child("disruptedPods").raw),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class ReplicationController(KubeObject):
    """A controller of pods with a plain label selector; None selects nothing."""

    selector: LabelSelector | None = None

    @classmethod
    def read(cls, reader: Reader) -> ReplicationController:
        spec = reader.child("spec")
        selector = None
        if spec.has("selector"):
            selector = LabelSelector.from_labels(spec.text_map("selector"))
        return cls(**read_metadata(reader, namespaced=True), selector=selector)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class ReplicaSet(KubeObject):
    """A controller of interchangeable pods."""

    selector: LabelSelector | None = None

    @classmethod
    def read(cls, reader: Reader) -> ReplicaSet:
        selector = label_selector(reader.child("spec"), "selector")
        return cls(**read_metadata(reader, namespaced=True), selector=selector)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class StatefulSet(KubeObject):
    """A controller of pods with identity."""

    selector: LabelSelector | None = None

    @classmethod
    def read(cls, reader: Reader) -> StatefulSet:
        selector = label_selector(reader.child("spec"), "selector")
        return cls(**read_metadata(reader, namespaced=True), selector=selector)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Deployment(KubeObject):
    """A controller of ReplicaSets."""

    selector: LabelSelector | None = None

    @classmethod
    def read(cls, reader: Reader) -> Deployment:
        selector = label_selector(reader.child("spec"), "selector")
        return cls(**read_metadata(reader, namespaced=True), selector=selector)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Job(KubeObject):
    """A controller of pods that end."""

    selector: LabelSelector | None = None

    @classmethod
    def read(cls, reader: Reader) -> Job:
        selector = label_selector(reader.child("spec"), "selector")
        return cls(**read_metadata(reader, namespaced=True), selector=selector)
