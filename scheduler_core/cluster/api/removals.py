"""Delete, of one object and of a selection."""

from __future__ import annotations

from typing import Any, Final

from scheduler_core.ports import ApiError, Json

from .. import verbs
from ..errors import bad_request, conflict, forbidden
from ..objects import name_of, namespace_of, uid_of
from ..resources import RESOURCES
from ..store import Transaction
from . import bodies
from .custom import resource_of_definition
from .lists import list_objects
from .negotiation import Format, media_type
from .options import DeleteOptions, delete_options
from .present import in_media, one, several
from .status import success
from .versions import as_served
from .writes import Answered, Target, rehearsed

__all__ = ["delete", "delete_collection", "options_of", "remove"]

_FINALIZERS: Final = {"Orphan": "orphan", "Foreground": "foregroundDeletion"}


def options_of(target: Target) -> DeleteOptions:
    """The options of a delete, from body and query.

    Raises:
        ApiError: 400, 415 or 422.
    """
    request, body = target.request, {}
    if request.body.strip():
        media = media_type(request.headers.get("content-type", ""))
        try:
            found: Any = bodies.parsed(request.body, media)
        except bodies.Unparsable as error:
            raise bad_request(f"couldn't get version/kind; {error}") from error
        if not isinstance(found, dict):
            raise bad_request("the options of a delete are an object")
        if found.get("kind", "DeleteOptions") != "DeleteOptions":
            scheme = "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27"
            raise bad_request(
                f'no kind "{found["kind"]}" is registered for version '
                f'"{found.get("apiVersion", "")}" in scheme "{scheme}"'
            )
        body = bodies.decoded_as("DeleteOptions", found)
    return delete_options(request, body)


def delete(target: Target, format_: Format) -> Answered:
    """DELETE of one object.

    Raises:
        ApiError: 404, 409 where a precondition does not hold, 403 for namespaces that stay.
    """
    options, served = options_of(target), target.served

    def work(tx: Transaction) -> tuple[Json, bool]:
        before = verbs.find(tx, served.resource, target.namespace, target.name)
        after = remove(tx, target, before, options)
        return after, _is_gone(tx, target, before)

    (obj, gone), kept = rehearsed(target, work, options.dry_run)
    if gone and not served.returns_deleted:
        return in_media(format_, success(_details(target, obj))), kept
    shown = as_served(served, obj)
    if served.resource.kind == "Namespace":
        shown = _going(shown)
    if format_.form:
        shown = one(served, obj, format_, target.cluster.clock.now())
    return in_media(format_, shown), kept


def _is_gone(tx: Transaction, target: Target, before: Json) -> bool:
    key = f"{namespace_of(before)}/{name_of(before)}" if namespace_of(before) else name_of(before)
    return tx.get(target.served.resource.kind, key) is None


def _details(target: Target, obj: Json) -> Json:
    served = target.served
    found = {"name": name_of(obj), "group": served.group, "kind": served.plural, "uid": uid_of(obj)}
    return {key: value for key, value in found.items() if value}


def _going(namespace: Json) -> Json:
    status = {**namespace.get("status", {}), "phase": "Terminating"}
    return {**namespace, "status": status}


def remove(tx: Transaction, target: Target, before: Json, options: DeleteOptions) -> Json:
    """Delete one object within a transaction; returns its last state, or the state it is in."""
    served = target.served
    resource, name = served.resource, name_of(before)
    version = options.resource_version
    if version and version != before["metadata"]["resourceVersion"]:
        raise conflict(
            resource.qualified_kind,
            name,
            f"the ResourceVersion in the precondition ({version}) does not match the "
            f"ResourceVersion in record ({before['metadata']['resourceVersion']}). The object "
            "might have been modified",
        )
    if resource.kind == "PriorityClass" and name.startswith("system-"):
        raise forbidden(resource, name, "this is a system priority class and cannot be deleted")
    finalizer = _FINALIZERS.get(options.policy)
    if finalizer and not before["metadata"].get("deletionTimestamp"):
        held = list(before["metadata"].get("finalizers") or [])
        if finalizer not in held:
            metadata = {**before["metadata"], "finalizers": [*held, finalizer]}
            tx.put("update", resource, {**before, "metadata": metadata})
    if resource.kind == "CustomResourceDefinition":
        _remove_instances(tx, before)
    return verbs.delete(
        tx, resource, namespace_of(before), name, options.uid, options.grace_period_seconds
    )


def _remove_instances(tx: Transaction, definition: Json) -> None:
    """What a definition describes goes with it."""
    resource = resource_of_definition(definition)
    if resource.kind in RESOURCES:
        raise ApiError(
            403,
            "Forbidden",
            f'customresourcedefinitions.apiextensions.k8s.io "{name_of(definition)}" is forbidden: '
            "the sandbox's own kind cannot be deleted",
            about=("customresourcedefinitions.apiextensions.k8s.io", name_of(definition)),
        )
    for obj in tx.objects(resource.kind).values():
        tx.remove(resource, obj)


def delete_collection(target: Target, format_: Format) -> Answered:
    """DELETE of all that selectors select; answers with what it found.

    Raises:
        ApiError: as `list_objects`, and as the first delete that is refused.
    """
    options = options_of(target)
    found = list_objects(target.cluster, target.served, target.namespace, target.request)

    def work(tx: Transaction) -> None:
        for obj in found.items:
            key = f"{namespace_of(obj)}/{name_of(obj)}" if namespace_of(obj) else name_of(obj)
            current = tx.get(target.served.resource.kind, key)
            if current is not None:
                remove(tx, target, current, options)

    _, kept = rehearsed(target, work, options.dry_run)
    body = several(target.served, found, format_, target.cluster.clock.now())
    return in_media(format_, body), kept
