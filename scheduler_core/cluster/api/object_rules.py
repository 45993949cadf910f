"""All that is wrong with an object that comes in by HTTP: what the store finds, and more."""

from __future__ import annotations

from scheduler_core.api.errors import FieldError
from scheduler_core.ports import Json

from .catalog import Served
from .metadata_rules import created_faults, updated_faults

__all__ = ["faults_of"]

#: the store's word for taints, which are not metadata
_TAINTS = "metadata.taints"


def faults_of(
    served: Served, old: Json | None, new: Json, found: list[FieldError]
) -> list[FieldError]:
    """Every fault, in the server's order.

    Args:
        old: the object that is there; None where a new one is made.
        found: the store's own faults. What they say of metadata is said here again, and better.
    """
    kind = "Event v1" if served.kind == "Event" and not served.group else served.kind
    if served.custom:
        kind = served.qualified_kind  # not to be taken for a built-in kind of that name
    rest = [fault for fault in found if not _is_said_again(fault)]
    metadata = new["metadata"]
    if old is None:
        return [*created_faults(kind, metadata), *rest]
    first, own = updated_faults(kind, old["metadata"], metadata)
    return [*first, *own, *rest]


def _is_said_again(fault: FieldError) -> bool:
    path, why = fault
    if path != "metadata.name":
        return path.startswith("metadata") and not path.startswith(_TAINTS)
    # Beside the syntax of names a kind may have a rule of its own for them.
    return any(words in why for words in ("Required value", "RFC 1123", "must be no more"))
