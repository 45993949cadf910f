"""CustomResourceDefinitions are accepted as soon as they are there, as controllers do it."""

from __future__ import annotations

from scheduler_core.ports import ApiError, Json

from .. import verbs
from ..objects import clone, name_of
from ..resources import RESOURCES
from ..sandbox import SandboxCluster
from ..store import Transaction

__all__ = ["establish"]

_CONDITIONS = (
    ("NamesAccepted", "NoConflicts", "no conflicts found"),
    ("Established", "InitialNamesAccepted", "the initial names have been accepted"),
)


def establish(cluster: SandboxCluster, definition: Json, actor: str) -> None:
    """Make it if it is not there, and say in its status that it is in use."""
    resource = RESOURCES["CustomResourceDefinition"]
    name = name_of(definition)

    def work(tx: Transaction) -> None:
        current = tx.get(resource.kind, name)
        if current is None:
            current = verbs.create(tx, resource, clone(definition))
        status = _status(current, tx.timestamp)
        if status != current.get("status"):
            tx.put("status", resource, {**current, "status": status})

    try:
        _, kept = cluster.submit(actor, work)
        kept.result()
    except ApiError:
        return  # it was deleted meanwhile, or the sandbox is ending


def _status(definition: Json, now: str) -> Json:
    old = definition.get("status") or {}
    known = {entry.get("type"): entry for entry in old.get("conditions") or []}
    conditions = [
        known.get(kind)
        or {
            "type": kind,
            "status": "True",
            "lastTransitionTime": now,
            "reason": reason,
            "message": message,
        }
        for kind, reason, message in _CONDITIONS
    ]
    spec = definition["spec"]
    stored = [version["name"] for version in spec["versions"] if version.get("storage")]
    return {
        "conditions": conditions,
        "acceptedNames": spec["names"],
        "storedVersions": list(dict.fromkeys([*(old.get("storedVersions") or []), *stored])),
    }
