"""What a request asks for besides: dry run, field manager, what to do with unknown fields."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

from scheduler_core.api.errors import invalid, unsupported
from scheduler_core.ports import ApiError, Json

from .messages import Request

__all__ = ["DeleteOptions", "WriteOptions", "delete_options", "invalid_options", "write_options"]

FieldValidation = Literal["Ignore", "Warn", "Strict"]
_VALIDATIONS: Final = ("Ignore", "Strict", "Warn")
_POLICIES: Final = ("Foreground", "Background", "Orphan")
_LONGEST_MANAGER: Final = 128


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """`manager`: who owns the fields that are written."""

    manager: str
    dry_run: bool
    validation: str
    force: bool


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """How an object is to go. `policy`: what becomes of what it owns."""

    dry_run: bool = False
    grace_period_seconds: int | None = None
    uid: str = ""
    resource_version: str = ""
    policy: str = ""


def invalid_options(kind: str, field: str, problem: str) -> ApiError:
    what = f"{kind}.meta.k8s.io"
    message = f'{what} "" is invalid: {field}: {problem}'
    return ApiError(422, "Invalid", message, [(field, problem)], about=(what, ""))


def write_options(request: Request, kind: str) -> WriteOptions:
    """`kind`: CreateOptions, UpdateOptions or PatchOptions, for what is said of faults.

    Raises:
        ApiError: 422 for a value that is not known.
    """
    validation = request.query.get("fieldValidation") or "Warn"
    if validation not in _VALIDATIONS:
        raise invalid_options(kind, "fieldValidation", unsupported(validation, ("", *_VALIDATIONS)))
    manager = request.query.get("fieldManager", "")
    if len(manager) > _LONGEST_MANAGER:
        problem = f"Too long: may not be more than {_LONGEST_MANAGER} bytes"
        raise invalid_options(kind, "fieldManager", problem)
    for place, sign in enumerate(manager):
        if not sign.isprintable():
            why = f"invalid character U+{ord(sign):04X} (at position {place})"
            raise invalid_options(kind, "fieldManager", invalid(manager, why))
    agent = request.headers.get("user-agent", "").partition("/")[0][:_LONGEST_MANAGER]
    return WriteOptions(
        manager or "".join(c for c in agent if c.isprintable()) or "unknown",
        _dry_run(request.query.get("dryRun"), kind),
        validation,
        request.flag("force"),
    )


def _dry_run(text: Any, kind: str) -> bool:
    values = [text] if isinstance(text, str) else list(text or ())
    wrong = next((value for value in values if value not in ("", "All")), None)
    if wrong is not None:
        raise invalid_options(kind, "dryRun", unsupported(values, ("All",)))
    return "All" in values


def delete_options(request: Request, body: Json) -> DeleteOptions:
    """From the body, and from the query where there is no body.

    Raises:
        ApiError: 400 or 422 for a value that makes no sense.
    """
    preconditions = body.get("preconditions") or {}
    grace = body.get("gracePeriodSeconds", request.query.get("gracePeriodSeconds"))
    policy = str(body.get("propagationPolicy") or request.query.get("propagationPolicy") or "")
    orphan = body.get("orphanDependents", request.query.get("orphanDependents"))
    if isinstance(orphan, str):
        orphan = orphan in ("", "1", "true")
    if policy and orphan is not None:
        why = "orphanDependents and deletionPropagation cannot be both set"
        raise invalid_options("DeleteOptions", "propagationPolicy", invalid(policy, why))
    if policy and policy not in _POLICIES:
        problem = unsupported(policy, (*_POLICIES, "nil"))
        raise invalid_options("DeleteOptions", "propagationPolicy", problem)
    if orphan is not None and not policy:
        policy = "Orphan" if orphan else "Background"
    return DeleteOptions(
        _dry_run(body.get("dryRun") or request.query.get("dryRun"), "DeleteOptions"),
        _seconds(grace),
        str(preconditions.get("uid") or ""),
        str(preconditions.get("resourceVersion") or ""),
        policy,
    )


def _seconds(value: Any) -> int | None:
    if value is None or value == "":
        return None
    try:
        return int(value)
    except (TypeError, ValueError):
        raise ApiError(
            400, "BadRequest", f'strconv.ParseInt: parsing "{value}": invalid syntax'
        ) from None
