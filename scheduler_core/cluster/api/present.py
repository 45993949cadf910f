"""Objects in the form that the client asked for: themselves, a Table, their metadata, YAML."""

from __future__ import annotations

from typing import Any, Final

import yaml

from scheduler_core.ports import ApiError, Json

from ..errors import bad_request
from .catalog import Served
from .lists import Listing
from .messages import JSON, YAML, Answer
from .negotiation import Format
from .tables import columns_of, rows_of
from .versions import as_served

__all__ = ["in_media", "one", "partial", "several", "table_of"]

_IDENTITY: Final = ("kind", "apiVersion")
_INCLUDED: Final = ("", "Metadata", "Object", "None")
_NO_WRAP: Final = 1 << 30


def in_media(format_: Format, body: Any, status: int = 200) -> Answer:
    """A JSON body in the media type asked for."""
    if format_.media == YAML:
        return Answer(status, yaml.dump(body, Dumper=_Dumper, width=_NO_WRAP), YAML)
    return Answer(status, body, JSON)


class _Dumper(yaml.SafeDumper):
    """No anchors: the parts of stored objects are shared."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def partial(obj: Json, version: str = "v1") -> Json:
    """Its metadata alone."""
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": obj["metadata"],
    }


def one(served: Served, obj: Json, format_: Format, now: float, include: str = "") -> Json:
    """One stored object."""
    shown = as_served(served, obj)
    if not format_.form:
        return shown
    if format_.form == "PartialObjectMetadata":
        return partial(shown, format_.version)
    if format_.form == "Table":
        metadata = {"resourceVersion": shown["metadata"].get("resourceVersion", "")}
        return table_of(served, [shown], format_, now, metadata, include)
    if served.custom:
        raise ApiError(500, "", "content is not a list")
    package = served.group.partition(".")[0] or "core"
    package = "core" if served.kind == "Event" else package
    raise ApiError(
        406,
        "NotAcceptable",
        f"you requested {format_.form}, but the requested object is not a list "
        f"(*{package}.{served.kind})",
    )


def several(served: Served, found: Listing, format_: Format, now: float, include: str = "") -> Json:
    """A list of stored objects."""
    shown = [as_served(served, obj) for obj in found.items]
    if format_.form == "Table":
        return table_of(served, shown, format_, now, found.metadata, include)
    if format_.form:
        return {
            "kind": "PartialObjectMetadataList",
            "apiVersion": f"meta.k8s.io/{format_.version}",
            "metadata": found.metadata,
            "items": [partial(obj, format_.version) for obj in shown],
        }
    if not served.custom:
        # Entries of built-in lists do not say what they are, those of custom ones do.
        shown = [{key: obj[key] for key in obj if key not in _IDENTITY} for obj in shown]
    return {
        "kind": served.list_name,
        "apiVersion": served.api_version,
        "metadata": found.metadata,
        "items": shown,
    }


_ENDED: Final = {
    "Succeeded": "The pod has completed successfully.", "Failed": "The pod failed.",
}  # fmt: skip


def _ended(pod: Json) -> Json:
    """What a row says of a pod that has ended, so that clients may leave it out."""
    phase = pod.get("status", {}).get("phase")
    if phase not in _ENDED:
        return {}
    completed = {
        "type": "Completed", "status": "True", "reason": phase, "message": _ENDED[phase],
    }  # fmt: skip
    return {"conditions": [completed]}


def table_of(
    served: Served,
    objects: list[Json],
    format_: Format,
    now: float,
    metadata: Json,
    include: str = "",
    *,
    with_columns: bool = True,
) -> Json:
    """`include`: what of each object goes with its row: Metadata (or ""), Object or None."""
    if include not in _INCLUDED:
        raise bad_request(
            f'Unable to convert to Table as requested: includeObject: Invalid value: "{include}": '
            "must be 'Metadata', 'Object', 'None', or empty"
        )
    rows = []
    for obj, cells in zip(objects, rows_of(served, objects, now), strict=True):
        row: Json = {"cells": cells}
        if include == "Object":
            row["object"] = obj
        else:
            row["object"] = None if include == "None" else partial(obj, format_.version)
        if obj.get("kind") == "Pod" and obj.get("apiVersion") == "v1":
            row.update(_ended(obj))
        rows.append(row)
    return {
        "kind": "Table",
        "apiVersion": f"meta.k8s.io/{format_.version}",
        "metadata": metadata,
        "columnDefinitions": columns_of(served) if with_columns else [],
        "rows": rows,
    }
