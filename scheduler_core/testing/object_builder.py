"""What the builders of all kinds share: metadata, and how they turn into objects."""

from __future__ import annotations

import copy
import hashlib
import uuid
from collections.abc import Mapping
from typing import Any, Generic, Self, TypeVar, cast

from scheduler_core.api import KINDS, KubeObject, format_time

__all__ = ["CREATED", "ObjectBuilder", "resource_list", "uid_for"]

T = TypeVar("T", bound=KubeObject)

#: when built objects were created, unless they say otherwise: 2026-01-01T00:00:00Z
CREATED = 1767225600.0


def uid_for(kind: str, namespace: str, name: str) -> str:
    """The uid of a built object: the same for the same kind, namespace and name."""
    digest = hashlib.sha256(f"{kind}/{namespace}/{name}".encode()).digest()
    return str(uuid.UUID(bytes=digest[:16], version=4))


class ObjectBuilder(Generic[T]):
    """What all kinds share: metadata."""

    kind = ""

    def __init__(self, name: str) -> None:
        kind = KINDS[self.kind]
        self._meta: dict[str, Any] = {"name": name}
        if kind.namespaced:
            self._meta["namespace"] = "default"
        self._raw: dict[str, Any] = {
            "apiVersion": kind.api_version,
            "kind": kind.written,
            "metadata": self._meta,
        }

    def namespace(self, namespace: str) -> Self:
        self._meta["namespace"] = namespace
        return self

    def uid(self, uid: str) -> Self:
        self._meta["uid"] = uid
        return self

    def label(self, labels: Mapping[str, str] | None = None, /, **more: str) -> Self:
        self._meta.setdefault("labels", {}).update({**(labels or {}), **more})
        return self

    def annotation(self, annotations: Mapping[str, str] | None = None, /, **more: str) -> Self:
        self._meta.setdefault("annotations", {}).update({**(annotations or {}), **more})
        return self

    def owner(self, kind: str, name: str, api_version: str = "apps/v1", uid: str = "") -> Self:
        """A controlling owner."""
        namespace = self._meta.get("namespace", "")
        self._meta.setdefault("ownerReferences", []).append(
            {
                "apiVersion": api_version,
                "kind": kind,
                "name": name,
                "uid": uid or uid_for(kind, namespace, name),
                "controller": True,
            }
        )
        return self

    def created(self, seconds: float) -> Self:
        """When it was created, in seconds since 1970."""
        self._meta["creationTimestamp"] = format_time(seconds)
        return self

    def terminating(self, seconds: float = CREATED) -> Self:
        """Deletion has been asked for."""
        self._meta["deletionTimestamp"] = format_time(seconds)
        return self

    def resource_version(self, version: str) -> Self:
        self._meta["resourceVersion"] = version
        return self

    def raw(self) -> dict[str, Any]:
        """The object's JSON, a copy of its own."""
        raw = copy.deepcopy(self._raw)
        meta = raw["metadata"]
        meta.setdefault("uid", uid_for(self.kind, meta.get("namespace", ""), meta["name"]))
        meta.setdefault("creationTimestamp", format_time(CREATED))
        return raw

    def obj(self) -> T:
        """The parsed object.

        Raises:
            InvalidObject: what was put in is malformed.
        """
        return cast(T, KINDS[self.kind].parse(self.raw()))

    def _spec(self) -> dict[str, Any]:
        spec: dict[str, Any] = self._raw.setdefault("spec", {})
        return spec

    def _status(self) -> dict[str, Any]:
        status: dict[str, Any] = self._raw.setdefault("status", {})
        return status


def resource_list(amounts: Mapping[str, Any] | None, more: Mapping[str, Any]) -> dict[str, str]:
    """A Kubernetes resource list; `_` in the names of `more` stands for `-`."""
    named = {name.replace("_", "-"): amount for name, amount in more.items()}
    return {name: str(amount) for name, amount in {**(amounts or {}), **named}.items()}
