"""PATCH in four ways: JSON patch, merge patch, strategic merge patch, and apply."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from scheduler_core.ports import ApiError, Json

from .. import verbs
from ..errors import bad_request, stale
from ..objects import clone
from ..patches import merge_patch
from ..store import Transaction
from . import bodies
from .applying import APPLY_PATCH, apply_patch
from .catalog import Served
from .decode import Decoder, Undecodable
from .go_order import as_the_server_writes
from .json_patch import BadPatch, PatchRefused, json_patch
from .messages import JSON
from .negotiation import media_type
from .options import invalid_options, write_options
from .status import generic
from .strategic import BadStrategicPatch, strategic_merge
from .versions import as_served
from .writes import Target, Written, rehearsed, store_changed

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
    if change is None or (media == STRATEGIC_PATCH and target.served.custom):
        raise generic(415, "415: Unsupported Media Type", "UnsupportedMediaType")
    options = write_options(target.request, "PatchOptions")
    if options.force:
        problem = "Forbidden: may not be specified for non-apply patch"
        raise invalid_options("PatchOptions", "force", problem)
    try:
        body = bodies.parsed(target.request.body, JSON)
    except bodies.Unparsable as error:
        raise bad_request(str(error).removeprefix("json parse error: ")) from error
    warnings: list[str] = []

    def work(tx: Transaction) -> Json:
        current = verbs.find(tx, target.served.resource, target.namespace, target.name)
        shown = as_served(target.served, current)
        obj, unknown = _patched(target.served, shown, change, body)
        warnings[:] = bodies.refuse_unknown(target.served, unknown, options.validation)
        _same_object(target, shown, obj)
        return store_changed(tx, target, obj, options)

    obj, kept = rehearsed(target, work, options.dry_run)
    return Written(obj, kept, tuple(warnings))


_Change = Callable[[Served, Json, Any], Any]


def _merge(served: Served, current: Json, body: Any) -> Any:
    if not isinstance(body, dict):
        raise bad_request(
            "json: cannot unmarshal array into Go value of type map[string]interface {}"
        )
    return merge_patch(current, body)


def _strategic(served: Served, current: Json, body: Any) -> Any:
    if not isinstance(body, dict):
        raise bad_request(
            "json: cannot unmarshal array into Go value of type map[string]interface {}"
        )
    try:
        return strategic_merge(served.struct, current, body)
    except BadStrategicPatch as error:
        raise bad_request(str(error)) from error


def _operations(served: Served, current: Json, body: Any) -> Any:
    try:
        return json_patch(current, body)
    except BadPatch as error:
        raise bad_request(str(error)) from error
    except PatchRefused as error:
        raise generic(422) from error


_CHANGES: Final[dict[str, _Change]] = {
    JSON_PATCH: _operations,
    MERGE_PATCH: _merge,
    STRATEGIC_PATCH: _strategic,
}


def _patched(served: Served, current: Json, change: _Change, body: Any) -> tuple[Json, list[str]]:
    """The object that a patch makes of `current`, and the fields that were dropped.

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
            bodies.check_kind(served, obj)
    return obj, decoder.unknown


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
    if name != target.name:
        raise bad_request(
            f"the name of the object ({name or ''}) does not match the name on the URL "
            f"({target.name})"
        )
    if target.served.namespaced and namespace != target.namespace:
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    version = metadata.get("resourceVersion")
    if version and version != current["metadata"]["resourceVersion"]:
        raise stale(target.served.resource, target.name)
