"""What the server demands of a new Event (kube-apiserver 1.36, ValidateEventCreate)."""

from __future__ import annotations

from scheduler_core.api.errors import FieldError, invalid
from scheduler_core.ports import Json

__all__ = ["event_faults"]

_LONGEST = 128
_LONGEST_NOTE = 1024
_UNSET = (
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
    ("deprecatedSource", "source"),
)


def event_faults(event: Json, *, core: bool) -> list[FieldError]:
    """`event` as it is stored; `core`: it was sent in the version of the core group."""
    faults = _namespace_faults(event)
    if event.get("eventTime"):
        faults += _new_faults(event, core=core)
    if core:
        return faults
    return faults + _strict_faults(event)


def _namespace_faults(event: Json) -> list[FieldError]:
    own = event["metadata"].get("namespace") or ""
    about = (event.get("regarding") or {}).get("namespace") or ""
    if event.get("eventTime"):
        wrong = not about and own not in ("default", "kube-system")
    elif not about:
        wrong = own not in ("", "default")
    else:
        wrong = own != about
    if not wrong:
        return []
    return [("involvedObject.namespace", invalid(about, "does not match event.namespace"))]


def _new_faults(event: Json, *, core: bool) -> list[FieldError]:
    controller = "reportingComponent" if core else "reportingController"
    faults: list[FieldError] = []
    for field, name in (
        ("reportingController", controller),
        ("reportingInstance", "reportingInstance"),
        ("action", "action"),
        ("reason", "reason"),
    ):
        value = str(event.get(field) or "")
        if not value:
            faults.append((name, "Required value"))
        elif len(value) > _LONGEST and field != "reportingController":
            faults.append((name, invalid("", f"can have at most {_LONGEST} characters")))
    if len(str(event.get("note") or "").encode()) > _LONGEST_NOTE:
        faults.append(("message", invalid("", "can have at most 1024 characters")))
    return faults


def _strict_faults(event: Json) -> list[FieldError]:
    faults: list[FieldError] = []
    if not event.get("eventTime"):
        faults.append(("eventTime", "Required value"))
    kind = event.get("type") or ""
    if kind not in ("Normal", "Warning"):
        faults.append(("type", invalid("", f"has invalid value: {kind}")))
    faults.extend(
        (name, invalid("", "needs to be unset")) for key, name in _UNSET if event.get(key)
    )
    return faults
