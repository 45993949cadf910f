"""What every Kubernetes object has: its metadata, and the JSON that it was parsed from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from .errors import required
from .reader import Raw, Reader, nothing

__all__ = [
    "Condition",
    "KubeObject",
    "OwnerReference",
    "read_conditions",
    "read_metadata",
    "subject_of",
]

DEFAULT_NAMESPACE = "default"


@dataclass(frozen=True, slots=True)
class OwnerReference:
    """An entry of metadata.ownerReferences."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool = False


@dataclass(frozen=True, slots=True)
class Condition:
    """A status condition of any kind."""

    type: str
    status: str
    reason: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class KubeObject:
    """Metadata common to all kinds.

    Two objects are equal if they are of the same class and their JSON is equal.

    Attributes:
        key: `namespace/name`, or the name alone for kinds without namespace.
        namespace: "" for kinds without namespace; `default` if a namespaced object names none.
        uid: "" if the object has none yet (it was never stored).
        resource_version: opaque text; "" if the object was never stored.
        creation_timestamp, deletion_timestamp: seconds since 1970 UTC, or None.
        raw: the JSON; it and everything in it is never mutated.
    """

    raw: Raw
    name: str
    namespace: str = ""
    key: str
    uid: str = ""
    labels: Mapping[str, str] = field(default_factory=nothing)
    annotations: Mapping[str, str] = field(default_factory=nothing)
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()
    generation: int = 0
    resource_version: str = ""
    creation_timestamp: float | None = None
    deletion_timestamp: float | None = None

    @property
    def is_terminating(self) -> bool:
        """Whether its deletion has been asked for."""
        return self.deletion_timestamp is not None

    @property
    def controller(self) -> OwnerReference | None:
        """The owner that manages it, if there is one."""
        return next((owner for owner in self.owner_references if owner.controller), None)

    @classmethod
    def from_dict(cls, raw: Raw) -> Self:
        """Parse an object's JSON.

        Raises:
            InvalidObject: a field has the wrong type, or a quantity is malformed or negative; all
                faults at once. What is well-formed but senseless is for `api.validation`.
        """
        reader = Reader(raw)
        found = cls.read(reader)
        if reader.faults:
            reader.finish(subject_of(raw, cls.__name__))
        return found

    @classmethod
    def read(cls, reader: Reader) -> Self:
        """Parse as far as possible; faults stay with the reader."""
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(self) is not type(other) or not isinstance(other, KubeObject):
            return NotImplemented
        return self.key == other.key and self.raw == other.raw

    def __hash__(self) -> int:
        return hash((self.key, self.uid))

    def __reduce__(self) -> tuple[object, ...]:
        # Copies and pickles are made of the JSON alone: the rest follows from it.
        return (_parse_again, (type(self), self.raw))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.key}>"


def _parse_again(cls: type[KubeObject], raw: Raw) -> object:
    return cls.from_dict(raw)


def read_metadata(reader: Reader, *, namespaced: bool) -> dict[str, Any]:
    """The arguments of `KubeObject`, from the object that `reader` stands at."""
    meta = reader.child("metadata")
    name = meta.text("name")
    if not name:
        meta.fault("name", required("name or generateName is required"))
    namespace = meta.text("namespace")
    if not namespaced:
        namespace = ""
    elif not namespace:
        namespace = DEFAULT_NAMESPACE
    return {
        "raw": reader.raw,
        "name": name,
        "namespace": namespace,
        "key": f"{namespace}/{name}" if namespaced else name,
        "uid": meta.text("uid"),
        "labels": meta.text_map("labels"),
        "annotations": meta.text_map("annotations"),
        "owner_references": _owners(meta) if meta.has("ownerReferences") else (),
        "finalizers": meta.texts("finalizers") if meta.has("finalizers") else (),
        "generation": meta.integer("generation"),
        "resource_version": meta.text("resourceVersion"),
        "creation_timestamp": meta.time("creationTimestamp"),
        "deletion_timestamp": meta.time("deletionTimestamp"),
    }


def _owners(meta: Reader) -> tuple[OwnerReference, ...]:
    return tuple(
        OwnerReference(
            entry.text("apiVersion"),
            entry.text("kind"),
            entry.text("name"),
            entry.text("uid"),
            entry.boolean("controller"),
        )
        for entry in meta.items("ownerReferences")
    )


def read_conditions(reader: Reader) -> tuple[Condition, ...]:
    """The list `conditions` of the status that `reader` stands at."""
    return tuple(
        Condition(
            entry.text("type"), entry.text("status"), entry.text("reason"), entry.text("message")
        )
        for entry in reader.items("conditions")
    )


def subject_of(raw: object, kind: str) -> str:
    """How an object is called in messages, as far as it can be told: `Pod default/web`."""
    meta = raw.get("metadata") if isinstance(raw, Mapping) else None
    if not isinstance(meta, Mapping) or not isinstance(meta.get("name"), str):
        return kind
    namespace = meta.get("namespace")
    prefix = f"{namespace}/" if isinstance(namespace, str) and namespace else ""
    return f"{kind} {prefix}{meta['name']}"
