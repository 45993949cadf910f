"""An object as it is stored, and as one of its API versions writes it.

Events are stored in the form of events.k8s.io/v1; the core group has other names for the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from scheduler_core.ports import Json

from .catalog import Served

__all__ = ["as_served", "as_stored"]

#: field of events.k8s.io/v1 -> field of v1
_CORE_NAMES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "deprecatedCount": "count",
        "deprecatedFirstTimestamp": "firstTimestamp",
        "deprecatedLastTimestamp": "lastTimestamp",
        "deprecatedSource": "source",
        "note": "message",
        "regarding": "involvedObject",
        "reportingController": "reportingComponent",
    }
)
_NEW_NAMES: Final[Mapping[str, str]] = MappingProxyType(
    {core: new for new, core in _CORE_NAMES.items()}
)


def as_served(served: Served, obj: Json) -> Json:
    """A stored object as this version writes it; the object itself where it is the same."""
    if served.resource.kind != "Event" or obj.get("apiVersion") == served.api_version:
        if not served.group and served.resource.kind == "Event":
            return _renamed(obj, _CORE_NAMES, served.api_version)
        return obj
    if not served.group:
        return _renamed(obj, _CORE_NAMES, served.api_version)
    found = {**obj, "apiVersion": served.api_version}
    for field, empty in (
        ("deprecatedFirstTimestamp", None),
        ("deprecatedLastTimestamp", None),
        ("deprecatedSource", {}),
        ("eventTime", None),
    ):
        found.setdefault(field, empty)
    return found


def as_stored(served: Served, obj: Json) -> Json:
    """What this version writes, as it is stored."""
    if served.resource.kind != "Event" or served.group:
        return obj
    return _renamed(obj, _NEW_NAMES, served.resource.api_version)


def _renamed(obj: Json, names: Mapping[str, str], version: str) -> Json:
    found = {names.get(key, key): value for key, value in obj.items()}
    found["apiVersion"] = version
    if version == "v1":
        for field, empty in (
            ("involvedObject", {}),
            ("source", {}),
            ("firstTimestamp", None),
            ("lastTimestamp", None),
            ("eventTime", None),
            ("reportingComponent", ""),
            ("reportingInstance", ""),
        ):
            found.setdefault(field, empty)
    return found
