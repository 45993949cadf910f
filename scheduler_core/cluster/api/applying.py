"""Server-side apply: a PATCH that says what the applier wants, and what it owns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from scheduler_core.ports import ApiError, Json

from .. import verbs
from ..errors import bad_request
from ..objects import clone
from ..store import Transaction
from . import bodies
from .decode import Decoder, Undecodable, json_name
from .managers import applied
from .options import invalid_options, write_options
from .quantities import BAD_QUANTITY
from .versions import as_served
from .writes import (
    Target,
    Written,
    author_of,
    empty_of,
    key_of_target,
    place,
    rehearsed,
    store_changed,
    store_new,
)

__all__ = ["APPLY_PATCH", "apply_patch"]

APPLY_PATCH: Final = "application/apply-patch+yaml"


def apply_patch(target: Target) -> Written:
    served, request = target.served, target.request
    options = write_options(request, "PatchOptions")
    if not request.query.get("fieldManager"):
        raise invalid_options(
            "PatchOptions", "fieldManager", "Required value: is required for apply patch"
        )
    config = _configuration(target)
    made = False

    def work(tx: Transaction) -> Json:
        nonlocal made
        current = tx.get(served.resource.kind, key_of_target(target))
        if current is None and target.subresource:
            return verbs.find(tx, served.resource, target.namespace, target.name)
        if current is None and config["metadata"].get("uid"):
            raise _uid_mismatch(target)
        live = empty_of(served) if current is None else as_served(served, current)
        known = [] if current is None else current["metadata"].get("managedFields") or []
        author = author_of(target, options)
        merged, entries = applied(
            served.struct, live, config, author, tx.timestamp, known, options.force
        )
        obj = Decoder().object(served.struct, clone(merged))
        if current is None:
            made = True
            obj["kind"], obj["apiVersion"] = served.kind, served.api_version
            return store_new(tx, target, obj, options, entries)
        return store_changed(tx, target, obj, options, entries)

    obj, kept = rehearsed(target, work, options.dry_run)
    return Written(obj, kept, created=made)


def _configuration(target: Target) -> Json:
    """What the applier says, with nothing filled in.

    Raises:
        ApiError: 400 for what is no object of this version, 500 (the server's own word for it)
            for fields that the kind does not have: who applies means every field.
    """
    try:
        body = bodies.parsed(target.request.body, APPLY_PATCH)
    except bodies.Unparsable as error:
        raise bad_request(f"error decoding YAML: {error}") from error
    if body is None:
        body = {}
    if not isinstance(body, dict):
        raise bad_request(
            "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot "
            f"unmarshal {json_name(body)} into Go value of type map[string]interface {{}}"
        )
    version, kind = str(body.get("apiVersion") or ""), str(body.get("kind") or "")
    if (version, kind) != (target.served.api_version, target.served.kind):
        raise bad_request(f"invalid object type: {_group_version(version)}, Kind={kind}")
    metadata = body.get("metadata")
    if isinstance(metadata, dict) and metadata.get("managedFields") is not None:
        raise bad_request("metadata.managedFields must be nil")
    decoder = Decoder(fill=False)
    try:
        config = decoder.object(target.served.struct, body)
    except Undecodable as error:
        problem = str(error).replace(BAD_QUANTITY, f"unable to parse quantity: {BAD_QUANTITY}")
        if problem != str(error):
            raise bad_request(f"failed to create typed patch object: {problem}") from error
        raise _untyped(target, body, problem) from error
    if decoder.unknown:
        raise _undeclared(target, body, decoder.unknown)
    config["metadata"].setdefault("name", target.name)
    place(target, config)
    return config


def _group_version(version: str) -> str:
    return version if "/" in version else f"/{version}"


def _untyped(target: Target, body: Json, problem: str) -> ApiError:
    metadata = body.get("metadata")
    said = metadata if isinstance(metadata, dict) else {}
    what = f"{_group_version(target.served.api_version)}, Kind={target.served.kind}"
    where = f"{said.get('namespace') or ''}/{said.get('name') or ''}; {what}"
    return ApiError(500, "", f"failed to create typed patch object ({where}): {problem}")


def _undeclared(target: Target, body: Json, unknown: Sequence[str]) -> ApiError:
    told = [f".{path}: field not declared in schema" for path in unknown]
    text = told[0] if len(told) == 1 else "\n  ".join(["errors:", *told])
    return _untyped(target, body, text)


def _uid_mismatch(target: Target) -> ApiError:
    what = target.served.qualified
    return ApiError(
        409,
        "Conflict",
        f'Operation cannot be fulfilled on {what} "{target.name}": uid mismatch: the provided '
        "object specified a uid, and no existing object was found",
        about=(what, target.name),
    )
