"""Controllers take over objects that match their selector and belong to nobody."""

from __future__ import annotations

from collections.abc import Iterator

from scheduler_core.api.reader import Reader
from scheduler_core.api.selectors import label_selector
from scheduler_core.ports import Json

from ..objects import labels_of, name_of, namespace_of, uid_of
from ..sandbox import ActingView
from .index import Index, controller_of, owners_of
from .pods import controller_reference, is_leaving

__all__ = ["adopt", "orphans"]


def orphans(index: Index, owner: Json, kind: str) -> Iterator[Json]:
    """Objects of the owner's namespace that its selector selects and that nobody controls.

    An owner whose selector says nothing selects nothing here.
    """
    selector = label_selector(Reader(owner).child("spec"), "selector")
    if selector is None or selector.is_empty:
        return
    for obj in index.in_namespace(kind, namespace_of(owner)):
        free = controller_of(obj) is None and not is_leaving(obj)
        if free and selector.matches(labels_of(obj)):
            yield obj


def adopt(view: ActingView, owner: Json, obj: Json) -> None:
    """Make `owner` the controller of `obj`.

    Raises:
        ApiError: 404 or 409 where it has gone or changed meanwhile.
    """
    metadata = {
        "uid": uid_of(obj),
        "resourceVersion": obj["metadata"]["resourceVersion"],
        "ownerReferences": [*owners_of(obj), controller_reference(owner)],
    }
    view.patch(str(obj["kind"]), namespace_of(obj), name_of(obj), {"metadata": metadata})
