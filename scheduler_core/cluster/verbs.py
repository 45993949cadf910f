"""Create, update, patch and delete of any kind, as kube-apiserver 1.36 does them.

Each function reads and writes through the `Transaction` it is given, and raises ApiError where
the server would refuse; then the transaction is thrown away.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from scheduler_core.api.errors import FieldError
from scheduler_core.api.native import NATIVE_POD_GROUP
from scheduler_core.ports import ApiError, Json

from .admission import PERMANENT_NAMESPACES, admit_pod, admit_pod_group, require_namespace
from .defaults import apply_defaults
from .errors import (
    already_exists,
    bad_request,
    conflict,
    forbidden,
    invalid,
    not_found,
    stale,
)
from .job_selector import give_selector
from .journal import Verb
from .objects import clone, key_of, name_of, namespace_of, uid_of, with_metadata
from .patches import merge_patch
from .pod_rules import deletion_grace
from .resources import RESOURCES, Resource
from .store import Transaction
from .update_rules import update_faults

__all__ = ["NO_HOOKS", "Hooks", "create", "delete", "find", "patch", "require_uid", "update"]

#: metadata that the server alone writes
_SYSTEM_METADATA: Final = (
    "uid",
    "creationTimestamp",
    "generation",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)
_SERVERS_OWN: Final = (*_SYSTEM_METADATA, "resourceVersion", "managedFields")
#: kind -> metadata that a write of the status does not change either (kube-apiserver 1.36)
_KEPT_BY_STATUS: Final = {"Pod": ("ownerReferences",), "Deployment": ("labels",)}
#: where the real server keeps kinds whose place is not called as they are
_REGISTRY: Final = {
    "Node": "minions", "ReplicationController": "controllers", "Service": "services/specs",
}  # fmt: skip
_GROUPED: Final = frozenset({"CustomResourceDefinition", "PodGroup"})
_NAME_TRIES: Final = 8
#: a generated name is at most 63 characters long
_LONGEST_PREFIX: Final = 58


def find(tx: Transaction, resource: Resource, namespace: str, name: str) -> Json:
    """Raises:
    ApiError: 404.
    """
    found = tx.get(resource.kind, key_of(namespace if resource.namespaced else "", name))
    if found is None:
        raise not_found(resource, name)
    return found


def require_uid(resource: Resource, obj: Json, uid: str) -> None:
    """Raises:
    ApiError: 409 where a uid is asked for that is not the object's.
    """
    if not uid or uid == uid_of(obj):
        return
    place = _REGISTRY.get(resource.kind) or resource.plural
    if resource.kind not in RESOURCES or resource.kind in _GROUPED:
        place = f"{resource.group}/{resource.plural}"
    registry = f"/registry/{place}/{key_of(namespace_of(obj), name_of(obj))}"
    why = (
        f"StorageError: invalid object, Code: 4, Key: {registry}, ResourceVersion: 0, "
        f"AdditionalErrorMsg: Precondition failed: UID in precondition: {uid}, "
        f"UID in object meta: {uid_of(obj)}"
    )
    raise conflict(resource.qualified, name_of(obj), why)


# -- create --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Hooks:
    """What a door to the store does besides, with each object that comes through it.

    Attributes:
        created: called with a new object whose defaults are filled in, which it may change.
        admit: called after that and after the store's own admission; it may change the object or
            raise ApiError.
        replaced: called with an object and what is to take its place; returns that.
        faults: called with the object that is there, or None, the new one, and the store's own
            faults of it; returns all faults.
    """

    created: Callable[[Json], None] | None = None
    admit: Callable[[Transaction, Resource, Json], None] | None = None
    replaced: Callable[[Json, Json], Json] | None = None
    faults: Callable[[Json | None, Json, list[FieldError]], list[FieldError]] | None = None


NO_HOOKS: Final = Hooks()


def create(tx: Transaction, resource: Resource, body: Json, hooks: Hooks = NO_HOOKS) -> Json:
    """Store a new object. `body` belongs to this function and is changed."""
    obj = _typed(resource, body)
    metadata = obj["metadata"]
    if metadata.get("resourceVersion"):
        raise ApiError(500, "", "resourceVersion should not be set on objects to be created")
    for field in _SYSTEM_METADATA:
        metadata.pop(field, None)
    _generate_name(tx, resource, metadata)
    if resource.has_status and resource.kind != "Node":
        obj.pop("status", None)
    apply_defaults(resource.kind, obj)
    if hooks.created is not None:
        hooks.created(obj)
    name = str(metadata.get("name") or "")
    _admit(tx, resource, obj, name, hooks)
    _validate(resource, obj, hooks)
    if tx.get(resource.kind, key_of(namespace_of(obj), name)) is not None:
        raise already_exists(resource, name)
    _give_identity(tx, resource, obj)
    return tx.put("create", resource, obj)


def _give_identity(tx: Transaction, resource: Resource, obj: Json) -> None:
    metadata = obj["metadata"]
    metadata["uid"] = tx.new_uid()
    metadata["creationTimestamp"] = tx.timestamp
    if resource.has_generation:
        metadata["generation"] = 1
    if resource.kind == "Job":
        give_selector(obj)


def _admit(tx: Transaction, resource: Resource, obj: Json, name: str, hooks: Hooks) -> None:
    metadata = obj["metadata"]
    if resource.namespaced:
        require_namespace(tx, resource, str(metadata["namespace"]), name)
    if resource.kind == "Pod":
        metadata.setdefault("name", "")
        admit_pod(tx, resource, obj)
    elif resource.kind == NATIVE_POD_GROUP:
        admit_pod_group(tx, resource, obj)
    if hooks.admit is not None:
        hooks.admit(tx, resource, obj)


def _typed(resource: Resource, body: Json) -> Json:
    """The object with kind, apiVersion and namespace filled in, in the usual order of fields.

    Raises:
        ApiError: 400 where it is another kind of thing.
    """
    if not isinstance(body, dict):
        raise bad_request("the object is not a JSON object")
    kind = body.get("kind") or resource.written
    version = body.get("apiVersion") or resource.api_version
    if kind != resource.written or version not in (resource.api_version, *resource.also):
        raise bad_request(
            f'{kind} in version "{version}" cannot be handled as a {resource.written}'
        )
    metadata = body.get("metadata")
    if metadata is None:
        metadata = {}
    if not isinstance(metadata, dict):
        raise bad_request("metadata is not a JSON object")
    metadata.pop("managedFields", None)
    if not resource.namespaced:
        metadata.pop("namespace", None)
    elif not metadata.get("namespace"):
        metadata["namespace"] = "default"
    rest = {k: v for k, v in body.items() if k not in ("apiVersion", "kind", "metadata")}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **rest}


def _generate_name(tx: Transaction, resource: Resource, metadata: Json) -> None:
    prefix = metadata.get("generateName")
    if metadata.get("name") or not isinstance(prefix, str) or not prefix:
        return
    for _ in range(_NAME_TRIES):
        metadata["name"] = prefix[:_LONGEST_PREFIX] + tx.new_suffix()
        key = key_of(namespace_of({"metadata": metadata}), metadata["name"])
        if tx.get(resource.kind, key) is None:
            return


def _validate(resource: Resource, obj: Json, hooks: Hooks) -> None:
    faults = resource.validate(obj)
    if hooks.faults is not None:
        faults = hooks.faults(None, obj, faults)
    if faults:
        raise invalid(resource, str(obj["metadata"].get("name") or ""), faults)


# -- update --------------------------------------------------------------------------------------


def update(
    tx: Transaction,
    resource: Resource,
    body: Json,
    subresource: str = "",
    hooks: Hooks = NO_HOOKS,
) -> Json:
    """Replace an object. `body` belongs to this function and is changed."""
    obj = _typed(resource, body)
    metadata = obj["metadata"]
    current = find(tx, resource, str(metadata.get("namespace", "")), str(metadata.get("name", "")))
    if not subresource:
        _complete(resource, obj, current)
    verb: Verb = "status" if subresource == "status" else "update"
    return _replace(tx, verb, resource, current, obj, subresource, hooks)


def patch(
    tx: Transaction,
    resource: Resource,
    namespace: str,
    name: str,
    body: Json,
    subresource: str = "",
) -> Json:
    """Merge a JSON merge patch into an object."""
    if not isinstance(body, dict):
        raise bad_request("the patch is not a JSON object")
    current = find(tx, resource, namespace, name)
    merged = merge_patch(current, body)
    metadata = merged.get("metadata")
    if not isinstance(metadata, dict):
        raise bad_request("metadata is not a JSON object")
    if metadata.get("name") != name:
        raise bad_request(
            f"the name of the object ({metadata.get('name')}) does not match "
            f"the name on the URL ({name})"
        )
    if namespace_of(merged) != namespace_of(current):
        raise bad_request("the namespace of the provided object does not match the namespace sent")
    if subresource == "status":
        merged = {**merged, "metadata": dict(metadata)}
        return _replace(tx, "status", resource, current, _typed(resource, merged), subresource)
    # The merged object shares its parts with the stored one, which defaulting must not touch.
    obj = _typed(resource, clone(merged))
    _complete(resource, obj, current)
    return _replace(tx, "patch", resource, current, obj, subresource)


def _complete(resource: Resource, obj: Json, current: Json) -> None:
    """Fill in what a client leaves out of a whole object: defaults, and a pod's admitted fields."""
    apply_defaults(resource.kind, obj)
    spec = obj.get("spec")
    if resource.kind == "Pod" and isinstance(spec, dict):
        for field in ("priority", "preemptionPolicy", "priorityClassName"):
            if field in current["spec"]:
                spec.setdefault(field, current["spec"][field])


def _replace(
    tx: Transaction,
    verb: Verb,
    resource: Resource,
    current: Json,
    obj: Json,
    subresource: str,
    hooks: Hooks = NO_HOOKS,
) -> Json:
    name = name_of(current)
    require_uid(resource, current, str(obj["metadata"].get("uid") or ""))
    version = obj["metadata"].get("resourceVersion")
    if version and version != current["metadata"]["resourceVersion"]:
        raise stale(resource, name)
    new = _admissible(resource, current, obj, subresource)
    faults = resource.validate(new)
    if not subresource:
        faults += update_faults(resource, current, new)
    if hooks.faults is not None:
        faults = hooks.faults(current, new, faults)
    if faults:
        raise invalid(resource, name, faults)
    if hooks.replaced is not None:
        new = hooks.replaced(current, new)
    if new == current:
        return current
    if _is_released(new):
        return tx.remove(resource, new)
    return tx.put(verb, resource, new)


def _admissible(resource: Resource, current: Json, obj: Json, subresource: str) -> Json:
    """`obj` with all that the request may not change as it was."""
    if subresource not in ("", "status"):
        raise bad_request(f'subresource "{subresource}" is not known')
    if subresource == "status":
        if not resource.has_status:
            raise ApiError(404, "NotFound", "the server could not find the requested resource")
        return _with_field(_beside_status(resource, current, obj), "status", obj.get("status"))
    metadata = _metadata(current, obj, _SERVERS_OWN)
    new = {**obj, "metadata": metadata}
    if resource.has_status:
        new = _with_field(new, "status", current.get("status"))
    if resource.kind == "Pod":
        _drop_empty_gates(new)
    if resource.has_generation and _asked(new) != _asked(current):
        metadata["generation"] = int(current["metadata"].get("generation", 0)) + 1
    return new


def _beside_status(resource: Resource, current: Json, obj: Json) -> Json:
    """A write of the status leaves the spec alone; labels and annotations go along with it, save
    those of custom resources (kube-apiserver 1.36)."""
    if resource.group.endswith(".x-k8s.io") or resource.kind not in RESOURCES:
        return current
    kept = _KEPT_BY_STATUS.get(resource.kind, ())
    return {**current, "metadata": _metadata(current, obj, (*_SERVERS_OWN, *kept))}


def _metadata(current: Json, obj: Json, fields: Sequence[str]) -> Json:
    """That of `obj`, with `fields` as they are."""
    metadata = dict(obj["metadata"])
    for field in fields:
        if field in current["metadata"]:
            metadata[field] = current["metadata"][field]
        else:
            metadata.pop(field, None)
    return metadata


def _drop_empty_gates(pod: Json) -> None:
    spec = pod.get("spec")
    if isinstance(spec, dict) and spec.get("schedulingGates") == []:
        pod["spec"] = {k: v for k, v in spec.items() if k != "schedulingGates"}


def _with_field(obj: Json, key: str, value: Any) -> Json:
    rest = {k: v for k, v in obj.items() if k != key}
    return rest if value is None else {**rest, key: value}


def _asked(obj: Json) -> Json:
    """What the object asks for: all but identity, metadata and status."""
    return {k: v for k, v in obj.items() if k not in ("apiVersion", "kind", "metadata", "status")}


def _is_released(obj: Json) -> bool:
    """Being deleted, and nothing holds it any more."""
    metadata = obj["metadata"]
    return bool(
        metadata.get("deletionTimestamp")
        and not metadata.get("finalizers")
        and not metadata.get("deletionGracePeriodSeconds")
    )


# -- delete --------------------------------------------------------------------------------------


def delete(
    tx: Transaction,
    resource: Resource,
    namespace: str,
    name: str,
    uid: str = "",
    grace_period_seconds: int | None = None,
) -> Json:
    """Delete an object, or begin to: pods on a node end after their grace period.

    Returns:
        Its state afterwards; the last one if it is gone.
    """
    current = find(tx, resource, namespace, name)
    if uid and uid != uid_of(current):
        why = (
            f"the UID in the precondition ({uid}) does not match the UID in record "
            f"({uid_of(current)}). The object might have been deleted and then recreated"
        )
        raise conflict(resource.qualified_kind, name, why)
    if resource.kind == "Namespace":
        _empty_namespace(tx, resource, name)
    if resource.kind == "Pod":
        return _delete_pod(tx, resource, current, grace_period_seconds)
    if not current["metadata"].get("finalizers"):
        return tx.remove(resource, current)
    if current["metadata"].get("deletionTimestamp"):
        return current
    return tx.put("terminate", resource, _terminating(current, tx.now, 0, tx.timestamp))


def _empty_namespace(tx: Transaction, resource: Resource, name: str) -> None:
    if name in PERMANENT_NAMESPACES:
        raise forbidden(resource, name, "this namespace may not be deleted")
    # The sandbox is its own namespace controller: what is inside goes in the same breath.
    for inner in RESOURCES.values():
        if not inner.namespaced:
            continue
        for obj in tx.objects(inner.kind).values():
            if namespace_of(obj) == name:
                tx.remove(inner, obj)


def _delete_pod(tx: Transaction, resource: Resource, pod: Json, asked: int | None) -> Json:
    metadata = pod["metadata"]
    period = deletion_grace(pod, asked)
    due = int(metadata.get("deletionGracePeriodSeconds") or 0)
    if metadata.get("deletionTimestamp") and (asked is None or period >= due):
        # It ends when it was said to before; it is gone already if only finalizers kept it.
        return tx.remove(resource, pod) if _is_released(pod) else pod
    marked = _terminating(pod, tx.now, period, tx.timestamp_in(period))
    if marked != pod:
        marked = tx.put("terminate", resource, marked)
    if period == 0 and not metadata.get("finalizers"):
        return tx.remove(resource, marked)
    return marked


def _terminating(obj: Json, now: float, period: int, at: str) -> Json:
    first = not obj["metadata"].get("deletionTimestamp")
    generation = int(obj["metadata"].get("generation") or 0)
    return with_metadata(
        obj,
        deletionTimestamp=at,
        deletionGracePeriodSeconds=period,
        # The generation counts the wish to be gone, once; kinds that do not count have none.
        generation=(generation + 1 if first else generation) or None,
    )
