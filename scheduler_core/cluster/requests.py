"""The writing half of the `Cluster` port, spelled once for everything that has it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from scheduler_core.ports import ApiError, Json, PodCondition

from . import pod_verbs, verbs
from .errors import unknown_kind
from .event_log import Emission, reference_to
from .objects import clone, name_of, namespace_of, uid_of
from .resources import RESOURCES, Resource, kind_name
from .store import Transaction

__all__ = ["Patch", "Requests", "resource_of"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Patch:
    """A merge patch of one object, which must still be the one with this uid."""

    kind: str
    of: Json
    body: Json
    subresource: str = ""


def resource_of(kind: str | Resource) -> Resource:
    """The resource of a kind; a custom one, which has no fixed name, is given as it is.

    Raises:
        ApiError: 404 for a kind that the sandbox does not store.
    """
    if isinstance(kind, Resource):
        return kind
    found = RESOURCES.get(kind)
    if found is None:
        raise unknown_kind(kind)
    return found


class Requests(ABC):
    """Turns each request into a function of one transaction, and has `_request` run it."""

    @abstractmethod
    def _request(self, work: Callable[[Transaction], T]) -> T:
        """Run one request; whether to wait until it is kept is the subclass's business."""

    @abstractmethod
    def _emit(self, emission: Emission) -> None:
        """Write an Event without waiting for it."""

    def create(self, kind: str, obj: Json) -> Json:
        resource, body = resource_of(kind), clone(obj)
        return self._request(lambda tx: verbs.create(tx, resource, body))

    def create_all(self, objects: Sequence[Json]) -> list[Json]:
        """Create objects of any kinds, all or none: they are kept, and seen, together.

        Raises:
            ApiError: what `create` says of the first that is refused; none is created then.
        """
        bodies = [(resource_of(kind_name(obj)), clone(obj)) for obj in objects]
        return self._request(lambda tx: [verbs.create(tx, of, body) for of, body in bodies])

    def update(self, kind: str, obj: Json, *, subresource: str = "") -> Json:
        resource, body = resource_of(kind), clone(obj)
        return self._request(lambda tx: verbs.update(tx, resource, body, subresource))

    def patch(
        self, kind: str, namespace: str, name: str, patch: Json, *, subresource: str = ""
    ) -> Json:
        resource, body = resource_of(kind), clone(patch)
        return self._request(
            lambda tx: verbs.patch(tx, resource, namespace, name, body, subresource)
        )

    def patch_all(self, patches: Sequence[Patch]) -> list[Json]:
        """Apply merge patches, all or none: they are kept, and seen, together.

        Raises:
            ApiError: what `patch` says of the first that is refused, 409 where it is another
                object of that name by now; nothing is changed then.
        """
        bodies = [(resource_of(p.kind), p.of, _for_uid(p), p.subresource) for p in patches]
        return self._request(
            lambda tx: [
                verbs.patch(tx, resource, namespace_of(of), name_of(of), body, subresource)
                for resource, of, body, subresource in bodies
            ]
        )

    def delete(
        self,
        kind: str,
        namespace: str,
        name: str,
        *,
        uid: str = "",
        grace_period_seconds: int | None = None,
    ) -> None:
        resource = resource_of(kind)
        self._request(
            lambda tx: verbs.delete(tx, resource, namespace, name, uid, grace_period_seconds)
        )

    def bind(self, namespace: str, name: str, uid: str, node: str) -> None:
        self._request(lambda tx: pod_verbs.bind(tx, namespace, name, uid, node))

    def patch_pod_status(
        self,
        namespace: str,
        name: str,
        uid: str,
        *,
        condition: PodCondition | None = None,
        nominated_node_name: str | None = None,
    ) -> None:
        self._request(
            lambda tx: pod_verbs.patch_status(
                tx, namespace, name, uid, condition, nominated_node_name
            )
        )

    def emit_event(
        self,
        regarding: Mapping[str, Any],
        *,
        type: Literal["Normal", "Warning"],
        reason: str,
        action: str,
        note: str,
        reporting_controller: str,
    ) -> None:
        try:
            about = clone(reference_to(regarding))
        except ApiError:
            return
        self._emit(Emission(about, type, reason, action, note, reporting_controller))


def _for_uid(patch: Patch) -> Json:
    body: Json = clone(patch.body)
    body.setdefault("metadata", {})["uid"] = uid_of(patch.of)
    return body
