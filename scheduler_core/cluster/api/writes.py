"""Create and update, as kube-apiserver 1.36 does them, and what patches build on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from scheduler_core.ports import ApiError, Json

from .. import verbs
from ..errors import bad_request
from ..objects import key_of
from ..sandbox import SandboxCluster
from ..store import Transaction
from . import bodies, schema
from .admission import admit_created, admit_default_class, complete
from .catalog import Served
from .managers import Author, recorded
from .messages import Answer, Request
from .object_rules import faults_of
from .options import WriteOptions, write_options
from .status import WarnedRefusal
from .versions import as_served, as_stored

__all__ = [
    "Answered",
    "Target",
    "Written",
    "author_of",
    "check_name",
    "check_version",
    "create",
    "empty_of",
    "key_of_target",
    "place",
    "rehearsed",
    "store_changed",
    "store_new",
    "update",
]


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


def warned(
    target: Target, work: Callable[[Transaction], Any], dry_run: bool, warnings: Sequence[str]
) -> tuple[Any, Future[None] | None]:
    """`rehearsed`; a refusal carries the warnings too."""
    try:
        return rehearsed(target, work, dry_run)
    except ApiError as error:
        if not warnings:
            raise
        raise WarnedRefusal(error, warnings) from error


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
    warnings = bodies.refuse_unknown(
        served, unknown, options.validation, bodies.said_twice(request)
    )
    place(target, obj)
    obj, kept = warned(
        target, lambda tx: store_new(tx, target, obj, options), options.dry_run, warnings
    )
    if options.dry_run:
        obj = _without_version(obj)
    return Written(obj, kept, tuple(warnings), created=True)


def store_new(
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
            served.struct, empty_of(served), seen, author_of(target, options), tx.timestamp, ()
        )
        if entries:
            stored["metadata"]["managedFields"] = entries

    hooks = verbs.Hooks(created, partial(admit_created, served), None, partial(faults_of, served))
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


def author_of(target: Target, options: WriteOptions) -> Author:
    return Author(options.manager, target.served.api_version, target.subresource)


def empty_of(served: Served) -> Json:
    found: Json = {"metadata": {}, **schema.zero(served.struct)}
    return found


def place(target: Target, obj: Json) -> None:
    """Check name and namespace against the path, and fill them in.

    Raises:
        ApiError: 400 where they say something else.
    """
    metadata = obj["metadata"]
    if target.name:
        check_name(target, metadata.get("name"))
    if not target.served.namespaced:
        return
    namespace = metadata.setdefault("namespace", target.namespace)
    if namespace != target.namespace:
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )


def check_name(target: Target, name: object) -> None:
    """Raises:
    ApiError: 400, the object has no name, or another one than the path.
    """
    if not name:
        raise bad_request(
            f"the name of the object ({target.name} based on URL) was undeterminable: name must "
            "be provided"
        )
    if name != target.name:
        raise bad_request(
            f"the name of the object ({name}) does not match the name on the URL ({target.name})"
        )


def check_version(obj: Json) -> None:
    """Raises:
    ApiError: 500, as the real one says it, where the resourceVersion is no number.
    """
    version = obj["metadata"].get("resourceVersion") or "0"
    if not (version.isascii() and version.isdigit()):
        raise ApiError(500, "", f'strconv.ParseUint: parsing "{version}": invalid syntax')


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
    warnings = bodies.refuse_unknown(
        served, unknown, options.validation, bodies.said_twice(request)
    )
    made = False

    def work(tx: Transaction) -> Json:
        nonlocal made
        current = tx.get(served.resource.kind, key_of_target(target))
        if current is None and served.creates_on_update and not target.subresource:
            made = True
            obj["metadata"].pop("resourceVersion", None)
            return store_new(tx, target, obj, options)
        if (
            current is not None
            and not served.unconditional
            and not obj["metadata"].get("resourceVersion")
        ):
            raise _version_needed(target)
        return store_changed(tx, target, obj, options)

    def checked(tx: Transaction) -> Json:
        place(target, obj)
        check_version(obj)
        return work(tx)

    found, kept = warned(target, checked, options.dry_run, warnings)
    return Written(found, kept, tuple(warnings), created=made)


def _version_needed(target: Target) -> ApiError:
    problem = "Invalid value: 0: must be specified for an update"
    what, name = target.served.qualified, target.name
    return ApiError(
        422,
        "Invalid",
        f'{what} "{name}" is invalid: metadata.resourceVersion: {problem}',
        [("metadata.resourceVersion", problem)],
        about=(what, name),
    )


def store_changed(
    tx: Transaction,
    target: Target,
    obj: Json,
    options: WriteOptions,
    managed: list[Json] | None = None,
) -> Json:
    """`obj` in the served version, decoded. `managed` as for `store_new`."""
    served = target.served
    complete(served, obj)
    given = obj["metadata"].get("managedFields")
    at_hand = verbs.find(tx, served.resource, target.namespace, target.name)
    if served.resource.kind == "PriorityClass":
        admit_default_class(tx, served.resource, obj)

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
        verbs.Hooks(None, None, replaced, partial(faults_of, served)),
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
        author_of(target, options),
        now,
        known,
    )


def key_of_target(target: Target) -> str:
    return key_of(target.namespace if target.served.namespaced else "", target.name)
