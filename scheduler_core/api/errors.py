"""How a malformed object is reported.

`InvalidObject` names the field and the reason; one exception carries every fault of its object.
The message helpers below use the wording of kube-apiserver's field errors, so that a person who
knows Kubernetes recognises them (`Invalid value: "x": must be ...`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

__all__ = [
    "FieldError",
    "InvalidObject",
    "duplicate",
    "forbidden",
    "invalid",
    "not_found",
    "required",
    "show",
    "unsupported",
]

#: (field path such as `spec.containers[0].name`, reason in kube-apiserver's wording)
FieldError = tuple[str, str]

_LONGEST_SHOWN = 200


class InvalidObject(ValueError):
    """An object, or one field of it, that cannot be accepted.

    Attributes:
        field_path: the first faulty field (`""` when the object as a whole is at fault).
        message: what is wrong with it.
        value: the offending value, as it was given.
        subject: what the object is (`Pod default/web`, `nodes.yaml, document 2 (line 14)`), or "".
        causes: every fault, one InvalidObject each; the exception itself if it is the only one.
    """

    def __init__(
        self,
        field_path: str,
        message: str,
        value: object = None,
        *,
        subject: str = "",
        causes: Sequence[InvalidObject] = (),
    ) -> None:
        super().__init__(field_path, message, value)
        self.field_path = field_path
        self.message = message
        self.value = value
        self.subject = subject
        self.causes: tuple[InvalidObject, ...] = tuple(causes) or (self,)

    def __str__(self) -> str:
        text = "; ".join(self.line() if cause is self else str(cause) for cause in self.causes)
        return f"{self.subject}: {text}" if self.subject else text

    def line(self) -> str:
        """The first fault as `path: reason`, without the others and without the subject."""
        return f"{self.field_path}: {self.message}" if self.field_path else self.message

    def about(self, subject: str) -> InvalidObject:
        """The same faults, said of `subject`."""
        return InvalidObject(
            self.field_path,
            self.message,
            self.value,
            subject=subject,
            causes=() if self.causes == (self,) else self.causes,
        )

    @classmethod
    def of(cls, faults: Sequence[InvalidObject], subject: str = "") -> InvalidObject:
        """One exception for all `faults` (at least one)."""
        first = faults[0]
        return cls(first.field_path, first.message, first.value, subject=subject, causes=faults)

    def __reduce__(self) -> tuple[object, ...]:
        alone = self.causes == (self,)
        return (
            _rebuild,
            (
                self.field_path,
                self.message,
                self.value,
                self.subject,
                () if alone else self.causes,
            ),
        )


def _rebuild(
    field_path: str,
    message: str,
    value: object,
    subject: str,
    causes: Sequence[InvalidObject],
) -> InvalidObject:
    return InvalidObject(field_path, message, value, subject=subject, causes=causes)


def show(value: object) -> str:
    """A value as JSON on one line, shortened when long; never raises."""
    try:
        text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError):
        text = f"<{type(value).__name__}>"
    return text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 4] + " ..."


def invalid(value: object, detail: str) -> str:
    """`Invalid value: "x": detail`."""
    return f"Invalid value: {show(value)}: {detail}"


def required(detail: str = "") -> str:
    """`Required value`, with a detail when there is one."""
    return f"Required value: {detail}" if detail else "Required value"


def unsupported(value: object, supported: Iterable[str]) -> str:
    """`Unsupported value: "x": supported values: "A", "B"`."""
    choices = ", ".join(show(choice) for choice in supported)
    return f"Unsupported value: {show(value)}: supported values: {choices}"


def duplicate(value: object) -> str:
    """`Duplicate value: "x"`."""
    return f"Duplicate value: {show(value)}"


def forbidden(detail: str) -> str:
    """`Forbidden: detail`."""
    return f"Forbidden: {detail}"


def not_found(value: object) -> str:
    """`Not found: "x"`."""
    return f"Not found: {show(value)}"
