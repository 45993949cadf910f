"""Taints, tolerations, and which tolerates which (kube-scheduler 1.36, gates at their defaults)."""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass
from typing import Final

from .reader import Reader

__all__ = [
    "NO_EXECUTE",
    "NO_SCHEDULE",
    "PREFER_NO_SCHEDULE",
    "SCHEDULING_EFFECTS",
    "TAINT_EFFECTS",
    "TAINT_UNSCHEDULABLE",
    "Taint",
    "Toleration",
    "find_untolerated",
    "tolerates",
]

NO_SCHEDULE: Final = "NoSchedule"
PREFER_NO_SCHEDULE: Final = "PreferNoSchedule"
NO_EXECUTE: Final = "NoExecute"
TAINT_EFFECTS: Final = (NO_SCHEDULE, PREFER_NO_SCHEDULE, NO_EXECUTE)

#: effects that keep a pod off a node
SCHEDULING_EFFECTS: Final = frozenset({NO_SCHEDULE, NO_EXECUTE})


@dataclass(frozen=True, slots=True)
class Taint:
    """A taint of a node."""

    key: str
    value: str = ""
    effect: str = ""

    def __str__(self) -> str:
        value = f"={self.value}" if self.value else ""
        return f"{self.key}{value}:{self.effect}"

    @classmethod
    def read(cls, reader: Reader) -> Taint:
        return cls(reader.text("key"), reader.text("value"), reader.text("effect"))


#: what a toleration has to tolerate for a pod to go onto a cordoned node (NodeUnschedulable)
TAINT_UNSCHEDULABLE: Final = Taint("node.kubernetes.io/unschedulable", "", NO_SCHEDULE)


@dataclass(frozen=True, slots=True)
class Toleration:
    """A toleration of a pod; empty key and effect match all, empty operator means Equal."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None

    def tolerates(self, taint: Taint) -> bool:
        """Whether it matches `taint`. Lt and Gt never do while their feature gate is off."""
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        if self.operator == "Exists":
            return True
        return self.operator in ("", "Equal") and self.value == taint.value

    @classmethod
    def read(cls, reader: Reader) -> Toleration:
        return cls(
            reader.text("key"),
            reader.text("operator"),
            reader.text("value"),
            reader.text("effect"),
            reader.optional_integer("tolerationSeconds"),
        )


def tolerates(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    """Whether one of `tolerations` matches `taint`."""
    return any(toleration.tolerates(taint) for toleration in tolerations)


def find_untolerated(
    taints: Iterable[Taint],
    tolerations: Iterable[Toleration],
    effects: Container[str] = SCHEDULING_EFFECTS,
) -> Taint | None:
    """The first taint with one of `effects` that no toleration matches, or None."""
    own = tuple(tolerations)
    for taint in taints:
        if taint.effect in effects and not tolerates(own, taint):
            return taint
    return None
