"""Status codes and the Status value that every extension point answers with."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass, field


class Code(enum.IntEnum):
    """kube-scheduler's status codes, in its numbering (``framework.Code``)."""

    SUCCESS = 0
    ERROR = 1
    UNSCHEDULABLE = 2
    UNSCHEDULABLE_AND_UNRESOLVABLE = 3
    WAIT = 4
    SKIP = 5
    PENDING = 6

    @property
    def label(self) -> str:
        """The reference's spelling, for example ``UnschedulableAndUnresolvable``."""
        return _LABELS[self]


_LABELS = {
    Code.SUCCESS: "Success",
    Code.ERROR: "Error",
    Code.UNSCHEDULABLE: "Unschedulable",
    Code.UNSCHEDULABLE_AND_UNRESOLVABLE: "UnschedulableAndUnresolvable",
    Code.WAIT: "Wait",
    Code.SKIP: "Skip",
    Code.PENDING: "Pending",
}

_REJECTED = frozenset({Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING})


@dataclass(frozen=True, slots=True)
class Status:
    """The outcome of one extension point of one plugin.

    ``reasons`` are what a user reads; ``plugin`` is filled in by the runtime; ``error`` is the
    exception behind an ``ERROR``, kept for the log and never compared.
    """

    code: Code = Code.SUCCESS
    reasons: tuple[str, ...] = ()
    plugin: str = ""
    error: BaseException | None = field(default=None, compare=False, repr=False)

    @property
    def is_success(self) -> bool:
        return self.code is Code.SUCCESS

    @property
    def is_skip(self) -> bool:
        return self.code is Code.SKIP

    @property
    def is_wait(self) -> bool:
        return self.code is Code.WAIT

    @property
    def is_rejected(self) -> bool:
        """Unschedulable, UnschedulableAndUnresolvable or Pending."""
        return self.code in _REJECTED

    @property
    def message(self) -> str:
        """All reasons joined as the reference joins them."""
        return ", ".join(self.reasons)

    def with_plugin(self, name: str) -> Status:
        """The same status with ``plugin`` set, unless a plugin is named already."""
        if self.plugin or self.code is Code.SUCCESS:
            return self
        return Status(self.code, self.reasons, name, self.error)

    def as_dict(self) -> dict[str, object]:
        """``{code, plugin, reasons}`` as in the recorded vectors."""
        answer: dict[str, object] = {"code": self.code.label}
        if self.plugin:
            answer["plugin"] = self.plugin
        answer["reasons"] = list(self.reasons)
        return answer


SUCCESS = Status()
SKIP = Status(Code.SKIP)


def unschedulable(*reasons: str, plugin: str = "") -> Status:
    """Rejected; preemption may help."""
    return Status(Code.UNSCHEDULABLE, reasons, plugin)


def unresolvable(*reasons: str, plugin: str = "") -> Status:
    """Rejected; preemption cannot help."""
    return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reasons, plugin)


def error(reason: str | BaseException, plugin: str = "") -> Status:
    """An unexpected failure; the cycle ends and the pod goes to the error backoff queue."""
    cause = reason if isinstance(reason, BaseException) else None
    text = (str(reason) or type(reason).__name__) if cause is not None else str(reason)
    return Status(Code.ERROR, (text,), plugin, cause)


def wait(*reasons: str) -> Status:
    """Permit only: keep the pod assumed and wait."""
    return Status(Code.WAIT, reasons)


def returned(answer: object) -> Status:
    """What a plugin answered, which is a Status also where nobody checks its types.

    Raises:
        TypeError: it is something else; None is what a forgotten ``return`` gives.
    """
    if isinstance(answer, Status):
        return answer
    raise TypeError(f"returned {type(answer).__name__} in place of a Status")


def first_failure(statuses: Iterable[Status]) -> Status:
    """The first status that is not Success, else Success."""
    return next((s for s in statuses if not s.is_success), SUCCESS)
