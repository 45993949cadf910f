"""Where each kind lives: paths, and which of several versions a server has."""

from __future__ import annotations

from urllib.parse import quote

from scheduler_core.api.kinds import KINDS, Kind
from scheduler_core.ports import ApiError, Json

__all__ = ["kind_named", "not_served", "object_path", "path_of", "typed", "versions_of"]


def kind_named(name: str) -> Kind:
    """Raises:
    NotFound: this program does not know the kind.
    """
    kind = KINDS.get(name)
    if kind is None:
        raise not_served(name)
    return kind


def not_served(kind: str) -> ApiError:
    """The server has no such API."""
    text = f'the server could not find the requested resource (kind "{kind}")'
    return ApiError(404, "NotFound", text)


def versions_of(kind: Kind) -> tuple[str, ...]:
    """apiVersions to ask for, the wished one first. Other groups hold the same objects again."""
    return tuple(v for v in kind.versions if v.rpartition("/")[0] == kind.group)


def path_of(kind: Kind, version: str, namespace: str = "") -> str:
    """Of the collection: of one namespace, or of all where it is ""."""
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    if not kind.namespaced or not namespace:
        return f"{root}/{kind.plural}"
    return f"{root}/namespaces/{quote(namespace, safe='')}/{kind.plural}"


def object_path(kind: Kind, version: str, namespace: str, name: str, subresource: str = "") -> str:
    """Of one object; an empty namespace is ``default``."""
    path = f"{path_of(kind, version, namespace or 'default')}/{quote(name, safe='')}"
    return f"{path}/{subresource}" if subresource else path


def typed(kind: Kind, version: str, obj: Json) -> Json:
    """The object with its kind and apiVersion, which the items of a list lack."""
    if "kind" in obj and "apiVersion" in obj:
        return obj
    rest = {k: v for k, v in obj.items() if k not in ("kind", "apiVersion")}
    head = {"kind": obj.get("kind") or kind.written, "apiVersion": obj.get("apiVersion") or version}
    return {**head, **rest}
