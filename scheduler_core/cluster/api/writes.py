"""Create, update, patch and apply, as kube-apiserver 1.36 does them."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from scheduler_core.ports import ApiError, Json

from .. import verbs
from ..errors import bad_request, stale
from ..objects import clone, key_of
from ..patches import merge_patch
from ..sandbox import SandboxCluster
from ..store import Transaction
from . import bodies, schema
from .admission import admit_created, complete
from .catalog import Served
from .decode import Decoder, Undecodable
from .go_order import as_the_server_writes
from .json_patch import BadPatch, PatchRefused, json_patch
from .managers import Author, applied, recorded
from .messages import JSON, Answer, Request
from .negotiation import media_type
from .options import WriteOptions, invalid_options, write_options
from .quantities import BAD_QUANTITY
from .status import generic
from .strategic import BadStrategicPatch, strategic_merge
from .versions import as_served, as_stored

__all__ = ["Answered", "Target", "Written", "create", "patch", "rehearsed", "update"]

JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_PATCH: Final = "application/strategic-merge-patch+json"
APPLY_PATCH: Final = "application/apply-patch+yaml"


@dataclass(frozen=True, slots=True)
class Target:
    """What a request is about."""

    cluster: SandboxCluster
    served: Served
    namespace: str
    name: str
    request: Request
    subresource: str = ""


@dataclass(frozen=True, slots=True)
class Written:
    """`obj` as it is stored; `kept` as in `Answer`."""

    obj: Json
    kept: Future[None] | None
    warnings: tuple[str, ...] = ()
    created: bool = False


#: an answer, and when it is certain
Answered = tuple[Answer, Future[None] | None]


class _Rehearsal(Exception):
    def __init__(self, result: Any) -> None:
        super().__init__()
        self.result = result


def rehearsed(
    target: Target, work: Callable[[Transaction], Any], dry_run: bool
) -> tuple[Any, Future[None] | None]:
    """Run a request, or find out what would come of it."""
    user = target.request.user
    if not dry_run:
        return target.cluster.submit(user, work)

    def rehearse(tx: Transaction) -> None:
        raise _Rehearsal(work(tx))

    try:
        target.cluster.submit(user, rehearse)
    except _Rehearsal as rehearsal:
        return rehearsal.result, None
    raise AssertionError("a rehearsal always ends in an exception")


# -- create --------------------------------------------------------------------------------------


def create(target: Target) -> Written:
    """POST of a whole object.

    Raises:
        ApiError: as the server refuses it.
    """
    served, request = target.served, target.request
    options = write_options(request, "CreateOptions")
    body = bodies.read_object(served, request)
    obj, unknown = bodies.decoded(served, body)
    warnings = bodies.refuse_unknown(served, unknown, options.validation)
    _place(target, obj)
    obj, kept = rehearsed(target, lambda tx: _create(tx, target, obj, options), options.dry_run)
    if options.dry_run:
        obj = _without_version(obj)
    return Written(obj, kept, tuple(warnings), created=True)


def _create(
    tx: Transaction,
    target: Target,
    obj: Json,
    options: WriteOptions,
    managed: list[Json] | None = None,
) -> Json:
    """`managed`: the managedFields, where they are known already."""
    served = target.served
    complete(served, obj)
    given = dict(obj["spec"]) if isinstance(obj.get("spec"), dict) else None

    def created(stored: Json) -> None:
        if managed is not None:
            stored["metadata"]["managedFields"] = managed
            return
        seen = _before_admission(as_served(served, stored), given)
        entries = recorded(
            served.struct, _empty(served), seen, _author(target, options), tx.timestamp, ()
        )
        if entries:
            stored["metadata"]["managedFields"] = entries

    hooks = verbs.Hooks(created, partial(admit_created, served))
    return verbs.create(tx, served.resource, as_stored(served, obj), hooks)


#: what the store fills in with the defaults, and the real server only afterwards
_ADMITTED: Final = {"Pod": "tolerations", "Namespace": "finalizers"}


def _before_admission(obj: Json, given: Any) -> Json:
    """Nobody manages what admission adds. `given`: the spec as it was sent."""
    field = _ADMITTED.get(str(obj.get("kind")))
    if field is None or not isinstance(given, dict):
        return obj
    spec = {key: value for key, value in obj["spec"].items() if key != field}
    if field in given:
        spec[field] = given[field]
    return {**obj, "spec": spec}


def _author(target: Target, options: WriteOptions) -> Author:
    return Author(options.manager, target.served.api_version, target.subresource)


def _empty(served: Served) -> Json:
    found: Json = {"metadata": {}, **schema.zero(served.struct)}
    return found


def _place(target: Target, obj: Json) -> None:
    """Check name and namespace against the path, and fill them in.

    Raises:
        ApiError: 400 where they say something else.
    """
    metadata = obj["metadata"]
    if target.name:
        name = metadata.setdefault("name", target.name)
        if name != target.name:
            raise bad_request(
                f"the name of the object ({name}) does not match the name on the URL "
                f"({target.name})"
            )
    if not target.served.namespaced:
        return
    namespace = metadata.setdefault("namespace", target.namespace)
    if namespace != target.namespace:
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )


def _without_version(obj: Json) -> Json:
    metadata = {k: v for k, v in obj["metadata"].items() if k != "resourceVersion"}
    return {**obj, "metadata": metadata}


# -- update --------------------------------------------------------------------------------------


def update(target: Target) -> Written:
    """PUT of a whole object, or of its status.

    Raises:
        ApiError: as the server refuses it.
    """
    served, request = target.served, target.request
    options = write_options(request, "UpdateOptions")
    obj, unknown = bodies.decoded(served, bodies.read_object(served, request))
    warnings = bodies.refuse_unknown(served, unknown, options.validation)
    _place(target, obj)
    made = False

    def work(tx: Transaction) -> Json:
        nonlocal made
        current = tx.get(served.resource.kind, _key(target))
        if current is None and served.creates_on_update and not target.subresource:
            made = True
            return _create(tx, target, obj, options)
        if not served.unconditional and not obj["metadata"].get("resourceVersion"):
            raise _version_needed(target)
        return _update(tx, target, obj, options)

    found, kept = rehearsed(target, work, options.dry_run)
    return Written(found, kept, tuple(warnings), created=made)


def _version_needed(target: Target) -> ApiError:
    problem = "Invalid value: 0x0: must be specified for an update"
    what, name = target.served.qualified_kind, target.name
    return ApiError(
        422,
        "Invalid",
        f'{what} "{name}" is invalid: metadata.resourceVersion: {problem}',
        [("metadata.resourceVersion", problem)],
        about=(what, name),
    )


def _update(
    tx: Transaction,
    target: Target,
    obj: Json,
    options: WriteOptions,
    managed: list[Json] | None = None,
) -> Json:
    """`obj` in the served version, decoded. `managed` as for `_create`."""
    served = target.served
    complete(served, obj)
    given = obj["metadata"].get("managedFields")
    at_hand = verbs.find(tx, served.resource, target.namespace, target.name)

    def replaced(current: Json, new: Json) -> Json:
        if managed is not None:
            entries = managed
        else:
            entries = _recorded(target, current, new, options, given, tx.timestamp)
        metadata = {k: v for k, v in new["metadata"].items() if k != "managedFields"}
        if entries:
            metadata["managedFields"] = entries
        return {**new, "metadata": metadata}

    stored = verbs.update(
        tx,
        served.resource,
        as_stored(served, obj),
        target.subresource,
        verbs.Hooks(None, None, replaced),
    )
    if not options.dry_run:
        return stored
    version = at_hand["metadata"]["resourceVersion"]
    return {**stored, "metadata": {**stored["metadata"], "resourceVersion": version}}


def _recorded(
    target: Target,
    current: Json,
    new: Json,
    options: WriteOptions,
    given: Any,
    now: str,
) -> list[Json]:
    known = current["metadata"].get("managedFields") or []
    if given == [{}]:
        return []  # how a client takes them away
    if given and given != known:
        known = [entry for entry in given if isinstance(entry, dict) and entry.get("manager")]
    if not known:
        return []  # an object that nobody's fields were recorded of
    served = target.served
    return recorded(
        served.struct,
        as_served(served, current),
        as_served(served, new),
        _author(target, options),
        now,
        known,
    )


def _key(target: Target) -> str:
    return key_of(target.namespace if target.served.namespaced else "", target.name)


# -- patch ---------------------------------------------------------------------------------------


def patch(target: Target) -> Written:
    """PATCH in one of four ways.

    Raises:
        ApiError: as the server refuses it.
    """
    media = media_type(target.request.headers.get("content-type", ""))
    if media == APPLY_PATCH:
        return _apply(target)
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
        return _update(tx, target, obj, options)

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


# -- apply ---------------------------------------------------------------------------------------


def _apply(target: Target) -> Written:
    served, request = target.served, target.request
    options = write_options(request, "PatchOptions")
    if not request.query.get("fieldManager"):
        raise invalid_options(
            "PatchOptions", "fieldManager", "Required value: is required for apply patch"
        )
    config, unknown = _configuration(target)
    warnings = bodies.refuse_unknown(served, unknown, options.validation)
    made = False

    def work(tx: Transaction) -> Json:
        nonlocal made
        current = tx.get(served.resource.kind, _key(target))
        if current is None and target.subresource:
            return verbs.find(tx, served.resource, target.namespace, target.name)
        if current is None and config["metadata"].get("uid"):
            raise _uid_mismatch(target)
        live = _empty(served) if current is None else as_served(served, current)
        known = [] if current is None else current["metadata"].get("managedFields") or []
        author = _author(target, options)
        merged, entries = applied(
            served.struct, live, config, author, tx.timestamp, known, options.force
        )
        obj = Decoder().object(served.struct, clone(merged))
        if current is None:
            made = True
            obj["kind"], obj["apiVersion"] = served.kind, served.api_version
            return _create(tx, target, obj, options, entries)
        return _update(tx, target, obj, options, entries)

    obj, kept = rehearsed(target, work, options.dry_run)
    return Written(obj, kept, tuple(warnings), created=made)


def _configuration(target: Target) -> tuple[Json, list[str]]:
    """What the applier says, with nothing filled in."""
    try:
        body = bodies.parsed(target.request.body, APPLY_PATCH)
    except bodies.Unparsable as error:
        raise bad_request(f"error decoding YAML: {error}") from error
    if not isinstance(body, dict):
        raise bad_request("error decoding YAML: the body is not an object")
    bodies.check_kind(target.served, body)
    if (body.get("metadata") or {}).get("managedFields"):
        raise bad_request("metadata.managedFields must be nil")
    decoder = Decoder(fill=False)
    try:
        config = decoder.object(target.served.struct, body)
    except Undecodable as error:
        problem = str(error).replace(BAD_QUANTITY, f"unable to parse quantity: {BAD_QUANTITY}")
        raise bad_request(f"failed to create typed patch object: {problem}") from error
    _place(target, config)
    return config, decoder.unknown


def _uid_mismatch(target: Target) -> ApiError:
    what = target.served.qualified
    return ApiError(
        409,
        "Conflict",
        f'Operation cannot be fulfilled on {what} "{target.name}": uid mismatch: the provided '
        "object specified a uid, and no existing object was found",
        about=(what, target.name),
    )
