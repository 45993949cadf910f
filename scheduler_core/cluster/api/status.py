"""`kind: Status`, in which the server says what became of a request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from scheduler_core.ports import ApiError, Json

from .managers import ApplyConflict

__all__ = ["WarnedRefusal", "error_status", "generic", "status_of", "success"]

_CAUSES: Final = (
    ("Required value", "FieldValueRequired"),
    ("Duplicate value", "FieldValueDuplicate"),
    ("Forbidden", "FieldValueForbidden"),
    ("Unsupported value", "FieldValueNotSupported"),
    ("Not found", "FieldValueNotFound"),
    ("Too long", "FieldValueTooLong"),
    ("Too many", "FieldValueTooMany"),
    ("Internal error", "InternalError"),
)

_GENERIC: Final[dict[int, tuple[str, str]]] = {
    404: ("NotFound", "the server could not find the requested resource"),
    405: ("MethodNotAllowed", "the server does not allow this method on the requested resource"),
    422: ("Invalid", "the server rejected our request due to an error in our request"),
}


class WarnedRefusal(Exception):
    """A refusal of a body that there was also something to warn of."""

    def __init__(self, error: ApiError, warnings: Sequence[str]) -> None:
        super().__init__(error, warnings)
        self.error = error
        self.warnings = tuple(warnings)


class Generic(ApiError):
    """An answer that the server gives without looking at an object: its details are empty."""


def generic(code: int, message: str = "", reason: str = "") -> ApiError:
    """404, 405 and the like, in the server's words where none are given."""
    known_reason, known_message = _GENERIC.get(code, ("", ""))
    return Generic(code, reason or known_reason, message or known_message)


def success(details: Json | None = None, code: int = 0) -> Json:
    """What a delete or a binding is answered with."""
    found: Json = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    if details:
        found["details"] = details
    if code:
        found["code"] = code
    return found


def status_of(error: ApiError) -> Json:
    """The Status of a refusal."""
    found = error_status(error.code, error.reason, error.message)
    details = _details(error)
    if details or isinstance(error, Generic):
        found["details"] = details
    return found


def error_status(code: int, reason: str, message: str) -> Json:
    found: Json = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "code": code,
    }
    if reason:
        found["reason"] = reason
    return found


def _details(error: ApiError) -> Json:
    what, name = error.about
    kind, _, group = what.partition(".")
    found: dict[str, Any] = {"name": name, "group": group, "kind": kind}
    found = {key: value for key, value in found.items() if value}
    if error.causes:
        found["causes"] = [_cause(error, path, message) for path, message in error.causes]
    if error.retry_after:
        found["retryAfterSeconds"] = error.retry_after
    return found


def _cause(error: ApiError, path: str, message: str) -> Json:
    if isinstance(error, ApplyConflict):
        return {"reason": "FieldManagerConflict", "message": message, "field": path}
    if error.code != 422:
        # Causes that no field has: the path is the reason.
        return {"reason": path, "message": message}
    if " in body must be of type " in message:
        return {"reason": "FieldValueTypeInvalid", "message": message, "field": path}
    reason = next((name for start, name in _CAUSES if message.startswith(start)), "")
    found = {"reason": reason or "FieldValueInvalid", "message": message}
    return {**found, "field": path} if path else found
