"""What the API server answers when it refuses, in the words of kube-apiserver 1.36."""

from __future__ import annotations

from collections.abc import Sequence

from scheduler_core.api.errors import FieldError
from scheduler_core.ports import AlreadyExists, ApiError, Conflict, Gone, NotFound

from .resources import Resource

__all__ = [
    "already_exists",
    "bad_request",
    "conflict",
    "expired",
    "forbidden",
    "invalid",
    "not_found",
    "stale",
    "too_large_version",
    "unavailable",
    "unknown_kind",
]


def not_found(resource: Resource, name: str) -> ApiError:
    return NotFound(resource.qualified, name)


def already_exists(resource: Resource, name: str) -> ApiError:
    return AlreadyExists(resource.qualified, name)


def conflict(what: str, name: str, why: str) -> ApiError:
    """`what` is the resource as the server names it: `pods`, `pods/binding`, `leases.x.io`."""
    return Conflict(f'Operation cannot be fulfilled on {what} "{name}": {why}', about=(what, name))


def stale(resource: Resource, name: str) -> ApiError:
    return conflict(
        resource.qualified,
        name,
        "the object has been modified; please apply your changes to the latest version "
        "and try again",
    )


def forbidden(resource: Resource, name: str, why: str) -> ApiError:
    what = resource.qualified
    return ApiError(403, "Forbidden", f'{what} "{name}" is forbidden: {why}', about=(what, name))


def bad_request(message: str) -> ApiError:
    return ApiError(400, "BadRequest", message)


def invalid(resource: Resource, name: str, causes: Sequence[FieldError]) -> ApiError:
    """422 with every fault, each as (field path, message)."""
    lines = [f"{path}: {message}" if path else message for path, message in causes]
    # The server names the same fault once in the sentence, however often it is among the causes.
    distinct = list(dict.fromkeys(lines))
    text = distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"
    what = resource.qualified_kind
    return ApiError(
        422, "Invalid", f'{what} "{name}" is invalid: {text}', causes, about=(what, name)
    )


def unknown_kind(kind: str) -> ApiError:
    return ApiError(
        404, "NotFound", f'the server could not find the requested resource (kind "{kind}")'
    )


def expired(asked: int, oldest: int) -> ApiError:
    return Gone(f"too old resource version: {asked} ({oldest})")


def too_large_version(asked: int, current: int) -> ApiError:
    return ApiError(
        504, "Timeout", f"Timeout: Too large resource version: {asked}, current: {current}"
    )


def unavailable(message: str) -> ApiError:
    return ApiError(503, "ServiceUnavailable", message)
