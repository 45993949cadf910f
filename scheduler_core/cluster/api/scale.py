"""The scale subresource: how many replicas, of whatever it is."""

from __future__ import annotations

from typing import Any, Final

from scheduler_core.api.errors import invalid
from scheduler_core.ports import ApiError, Json

from .. import verbs
from ..errors import bad_request, not_found, stale
from ..objects import clone
from ..patches import merge_patch
from ..resources import RESOURCES
from ..store import Transaction
from . import bodies
from .catalog import Served
from .decode import Decoder, Undecodable
from .json_patch import BadPatch, PatchRefused, json_patch
from .json_paths import find_path
from .label_text import selector_text
from .managers import Author, recorded
from .messages import JSON, Answer
from .negotiation import Format, media_type
from .options import WriteOptions, write_options
from .patching import JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH
from .present import in_media, one
from .schema import struct
from .status import generic
from .strategic import strategic_merge
from .writes import Answered, Target, check_name, rehearsed

__all__ = ["read_scale", "write_scale"]

_SCALE: Final = struct("Scale")


def read_scale(target: Target, format_: Format) -> Answered:
    """Raises:
    ApiError: 404.
    """
    obj = target.cluster.list_at(target.served.resource, None)[0].get(
        f"{target.namespace}/{target.name}"
    )
    if obj is None:
        raise not_found(target.served.resource, target.name)
    return _shown(target, format_, obj), None


def write_scale(target: Target, format_: Format) -> Answered:
    """PUT or PATCH.

    Raises:
        ApiError: as the server refuses it.
    """
    kind = "UpdateOptions" if target.request.method == "PUT" else "PatchOptions"
    options = write_options(target.request, kind)
    media = media_type(target.request.headers.get("content-type", ""))
    try:
        body = bodies.parsed(target.request.body, media if target.request.method == "PUT" else JSON)
    except bodies.Unparsable as error:
        raise bad_request(str(error)) from error

    def work(tx: Transaction) -> Json:
        current = verbs.find(tx, target.served.resource, target.namespace, target.name)
        scale = _wanted(target, _scale_of(target, current), media, body)
        return _resized(tx, target, current, scale, options)

    obj, kept = rehearsed(target, work, options.dry_run)
    return _shown(target, format_, obj), kept


def _shown(target: Target, format_: Format, obj: Json) -> Answer:
    return in_media(
        format_, one(_SERVED, _scale_of(target, obj), format_, target.cluster.clock.now())
    )


def _wanted(target: Target, scale: Json, media: str, body: Any) -> Json:
    if target.request.method == "PUT":
        made = _whole(target, body)
    elif media == MERGE_PATCH:
        made = merge_patch(scale, body)
    elif media == STRATEGIC_PATCH:
        made = strategic_merge(_SCALE, scale, body)
    elif media == JSON_PATCH:
        try:
            made = json_patch(scale, body)
        except BadPatch as error:
            raise ApiError(413, "RequestEntityTooLarge", str(error)) from error
        except PatchRefused as error:
            raise generic(422) from error
    else:
        raise generic(415, "415: Unsupported Media Type", "UnsupportedMediaType")
    if not isinstance(made, dict):
        raise bad_request("the scale is not an object")
    try:
        return Decoder().object(_SCALE, clone(made))
    except Undecodable as error:
        raise bad_request(f'Scale in version "v1" cannot be handled as a Scale: {error}') from error


def _whole(target: Target, body: Any) -> Any:
    """A Scale that is put, which has to be one, and of this object."""
    if not isinstance(body, dict):
        return body
    kind, version = body.get("kind") or "Scale", str(body.get("apiVersion") or "v1")
    if kind != "Scale":
        short = version.rpartition("/")[2]
        raise bad_request(
            f'{kind} in version "{short}" cannot be handled as a Scale: converting '
            f"({short}.{kind}) to (autoscaling.Scale): unknown conversion"
        )
    metadata = body.get("metadata")
    check_name(target, metadata.get("name") if isinstance(metadata, dict) else None)
    return body


def _resized(
    tx: Transaction, target: Target, current: Json, scale: Json, options: WriteOptions
) -> Json:
    version = scale["metadata"].get("resourceVersion")
    if version and version != current["metadata"]["resourceVersion"]:
        raise stale(target.served.resource, target.name)
    replicas = scale["spec"].get("replicas", 0)
    if replicas < 0 and not target.served.custom:
        problem = invalid(replicas, "must be greater than or equal to 0")
        raise ApiError(
            422,
            "Invalid",
            f'Scale.autoscaling "{target.name}" is invalid: spec.replicas: {problem}',
            [("spec.replicas", problem)],
            about=("Scale.autoscaling", target.name),
        )
    author = Author(options.manager, target.served.api_version, "scale")

    def replaced(old: Json, new: Json) -> Json:
        known = old["metadata"].get("managedFields") or []
        if not known:
            return new
        # A change through this door has no time: who scaled last is all that is recorded.
        entries = recorded(target.served.struct, old, new, author, "", known)
        return {**new, "metadata": {**new["metadata"], "managedFields": entries}}

    wanted = clone(current)
    _set(wanted, _paths(target)[0], replicas)
    return verbs.update(tx, target.served.resource, wanted, "", verbs.Hooks(None, None, replaced))


_BUILT_IN_PATHS: Final = (".spec.replicas", ".status.replicas", "")
_SERVED: Final = Served(
    RESOURCES["Deployment"], "autoscaling", "v1", "scales", "Scale", "scale", True, _SCALE
)


def _paths(target: Target) -> tuple[str, str, str]:
    return target.served.scale_paths or _BUILT_IN_PATHS


def _set(obj: Json, path: str, value: int) -> None:
    *way, last = path.strip(".").split(".")
    for step in way:
        obj = obj.setdefault(step, {})
    obj[last] = value


def _scale_of(target: Target, obj: Json) -> Json:
    wanted, there, selector_path = _paths(target)
    replicas = find_path(obj, wanted)
    metadata = {
        key: obj["metadata"][key]
        for key in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
        if key in obj["metadata"]
    }
    found: Json = {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": metadata,
        "spec": {"replicas": replicas} if replicas else {},
        "status": {"replicas": find_path(obj, there) or 0},
    }
    if target.served.custom:
        selector = str(find_path(obj, selector_path) or "") if selector_path else ""
    else:
        selector = selector_text(obj.get("spec", {}).get("selector"))
    if selector:
        found["status"]["selector"] = selector
    return found
