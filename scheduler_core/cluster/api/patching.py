"""PATCH in four ways: JSON patch, merge patch, strategic merge patch, and apply."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from scheduler_core.ports import ApiError, Json

from .. import verbs
from ..errors import bad_request, invalid, stale
from ..objects import clone
from ..patches import merge_patch
from ..store import Transaction
from . import bodies
from .applying import APPLY_PATCH, apply_patch
from .catalog import Served
from .decode import Decoder, Undecodable, json_name
from .go_order import as_the_server_writes
from .json_patch import BadPatch, PatchRefused, json_patch
from .messages import JSON
from .metadata_rules import updated_faults
from .negotiation import media_type
from .options import invalid_options, write_options
from .status import generic
from .strategic import BadStrategicPatch, strategic_merge
from .versions import as_served
from .writes import Target, Written, check_name, check_version, rehearsed, store_changed

__all__ = ["JSON_PATCH", "MERGE_PATCH", "STRATEGIC_PATCH", "patch"]

JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_PATCH: Final = "application/strategic-merge-patch+json"


def patch(target: Target) -> Written:
    """PATCH in one of four ways.

    Raises:
        ApiError: as the server refuses it.
    """
    media = media_type(target.request.headers.get("content-type", ""))
    if media == APPLY_PATCH:
        return apply_patch(target)
    change = _CHANGES.get(media)
    if media == STRATEGIC_PATCH and target.served.custom:
        known = ", ".join((JSON_PATCH, MERGE_PATCH, APPLY_PATCH))
        raise ApiError(
            415,
            "UnsupportedMediaType",
            "the body of the request was in an unknown format - accepted media types include: "
            + known,
        )
    if change is None:
        raise generic(415, "415: Unsupported Media Type", "UnsupportedMediaType")
    options = write_options(target.request, "PatchOptions")
    if options.force:
        problem = "Forbidden: may not be specified for non-apply patch"
        raise invalid_options("PatchOptions", "force", problem)
    try:
        body = bodies.parsed(target.request.body, JSON)
    except bodies.Unparsable as error:
        problem = str(error).removeprefix("json parse error: ")
        before = "" if media == STRATEGIC_PATCH else "error decoding patch: "
        raise bad_request(f"{before}{problem}") from error
    warnings: list[str] = []

    def work(tx: Transaction) -> Json:
        current = verbs.find(tx, target.served.resource, target.namespace, target.name)
        shown = as_served(target.served, current)
        obj, unknown, made = _patched(target.served, shown, change, body)
        if unknown and options.validation == "Strict":
            raise _strictly(target.served, made, body, unknown)
        warnings[:] = bodies.refuse_unknown(target.served, unknown, options.validation)
        _same_object(target, shown, obj)
        return store_changed(tx, target, obj, options)

    obj, kept = rehearsed(target, work, options.dry_run)
    return Written(obj, kept, tuple(warnings))


_Change = Callable[[Served, Json, Any], Any]


def _merge(served: Served, current: Json, body: Any) -> Any:
    if body is None:
        raise bad_request("Invalid JSON Patch")
    _require_object(body, "error decoding patch: ")
    return merge_patch(current, body)


def _strategic(served: Served, current: Json, body: Any) -> Any:
    if body is None:
        body = {}
    _require_object(body)
    # What the object is is known; a patch of this kind does not change it.
    body = {key: part for key, part in body.items() if key not in ("kind", "apiVersion")}
    try:
        return strategic_merge(served.struct, current, body)
    except BadStrategicPatch as error:
        raise bad_request(str(error)) from error


def _require_object(body: Any, before: str = "") -> None:
    if not isinstance(body, dict):
        raise bad_request(
            f"{before}json: cannot unmarshal {json_name(body)} into Go value of type "
            "map[string]interface {}"
        )


def _operations(served: Served, current: Json, body: Any) -> Any:
    if body is None:
        body = []
    wrong = (
        body
        if not isinstance(body, list)
        else next((entry for entry in body if not isinstance(entry, dict)), None)
    )
    if wrong is not None:
        many = "[]" if wrong is body else ""
        raise bad_request(
            f"error decoding patch: json: cannot unmarshal {json_name(wrong)} into Go value of "
            f"type {many}handlers.jsonPatchOp"
        )
    try:
        return json_patch(current, body)
    except BadPatch as error:
        raise ApiError(
            413, "RequestEntityTooLarge", f"Request entity too large: {error}"
        ) from error
    except PatchRefused as error:
        raise generic(422) from error


_CHANGES: Final[dict[str, _Change]] = {
    JSON_PATCH: _operations,
    MERGE_PATCH: _merge,
    STRATEGIC_PATCH: _strategic,
}


def _patched(
    served: Served, current: Json, change: _Change, body: Any
) -> tuple[Json, list[str], Json]:
    """The object that a patch makes of `current`, the fields that were dropped, and the object
    with them.

    Raises:
        ApiError: 400 or 422.
    """
    made = clone(change(served, current, body))
    if not isinstance(made, dict):
        raise generic(422)
    decoder = Decoder()
    try:
        obj = decoder.object(served.struct, made)
    except Undecodable as error:
        raise _unreadable(served, made, body, str(error)) from error
    for field in ("kind", "apiVersion"):
        if obj.get(field) != current.get(field):
            problem = bodies.unregistered(served, str(obj.get("kind")), str(obj.get("apiVersion")))
            raise _unreadable(served, made, body, problem)
    return obj, decoder.unknown, made


def _strictly(served: Served, made: Json, body: Any, unknown: list[str]) -> ApiError:
    told = ", ".join(f'unknown field "{path}"' for path in unknown)
    return _unreadable(served, made, body, f"strict decoding error: {told}")


def _unreadable(served: Served, made: Json, body: Any, problem: str) -> ApiError:
    ordered = as_the_server_writes(served.struct, made, body if isinstance(body, dict) else {})
    text = json.dumps(ordered, separators=(",", ":"), ensure_ascii=False)
    shown = f"Invalid value: {json.dumps(text, ensure_ascii=False)}: {problem}"
    return ApiError(422, "Invalid", f' "" is invalid: patch: {shown}', [("patch", shown)])


def _same_object(target: Target, current: Json, obj: Json) -> None:
    """Raises:
    ApiError: 400 where the patch changes the name, 409 where it names another version.
    """
    metadata = obj["metadata"]
    name, namespace = metadata.get("name"), metadata.get("namespace")
    check_name(target, name)
    if target.served.namespaced and namespace != target.namespace:
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    gone = metadata.get("deletionTimestamp")
    was_gone = current["metadata"].get("deletionTimestamp")
    uid = metadata.setdefault("uid", current["metadata"]["uid"])
    if uid != current["metadata"]["uid"] or (gone and gone != was_gone):
        first, own = updated_faults(target.served.kind, current["metadata"], metadata)
        raise invalid(target.served.resource, target.name, [*first, *own])
    check_version(obj)
    version = metadata.get("resourceVersion")
    if version == "0":
        del metadata["resourceVersion"]  # any version
    elif version and version != current["metadata"]["resourceVersion"]:
        raise stale(target.served.resource, target.name)
