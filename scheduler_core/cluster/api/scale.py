"""The scale subresource: how many replicas, of whatever it is."""

from __future__ import annotations

from typing import Any, Final

from scheduler_core.api.errors import invalid
from scheduler_core.ports import ApiError, Json

from .. import verbs
from ..errors import bad_request, not_found, stale
from ..objects import clone
from ..patches import merge_patch
from ..store import Transaction
from . import bodies
from .decode import Decoder, Undecodable
from .json_patch import BadPatch, PatchRefused, json_patch
from .label_text import selector_text
from .managers import Author, recorded
from .messages import JSON
from .negotiation import Format, media_type
from .options import WriteOptions, write_options
from .patching import JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH
from .present import in_media
from .schema import struct
from .status import generic
from .strategic import strategic_merge
from .writes import Answered, Target, rehearsed

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
    return in_media(format_, _scale_of(obj)), None


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
        scale = _wanted(target, _scale_of(current), media, body)
        return _resized(tx, target, current, scale, options)

    obj, kept = rehearsed(target, work, options.dry_run)
    return in_media(format_, _scale_of(obj)), kept


def _wanted(target: Target, scale: Json, media: str, body: Any) -> Json:
    if target.request.method == "PUT":
        made = body
    elif media == MERGE_PATCH:
        made = merge_patch(scale, body)
    elif media == STRATEGIC_PATCH:
        made = strategic_merge(_SCALE, scale, body)
    elif media == JSON_PATCH:
        try:
            made = json_patch(scale, body)
        except BadPatch as error:
            raise bad_request(str(error)) from error
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


def _resized(
    tx: Transaction, target: Target, current: Json, scale: Json, options: WriteOptions
) -> Json:
    version = scale["metadata"].get("resourceVersion")
    if version and version != current["metadata"]["resourceVersion"]:
        raise stale(target.served.resource, target.name)
    replicas = scale["spec"].get("replicas", 0)
    if replicas < 0:
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

    wanted = {**current, "spec": {**current["spec"], "replicas": replicas}}
    return verbs.update(
        tx, target.served.resource, clone(wanted), "", verbs.Hooks(None, None, replaced)
    )


def _scale_of(obj: Json) -> Json:
    spec, status = obj.get("spec", {}), obj.get("status", {})
    metadata = {
        key: obj["metadata"][key]
        for key in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
        if key in obj["metadata"]
    }
    found: Json = {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": metadata,
        "spec": {"replicas": spec["replicas"]} if spec.get("replicas") else {},
        "status": {"replicas": status.get("replicas", 0)},
    }
    selector = selector_text(spec.get("selector"))
    if selector:
        found["status"]["selector"] = selector
    return found
