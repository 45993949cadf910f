"""ApiServer: one request in, one answer or one watch out. Sockets and tokens are elsewhere."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Final

from scheduler_core.ports import ApiError, Json

from ..errors import not_found
from ..objects import key_of
from ..resources import RESOURCES
from ..sandbox import SandboxCluster
from . import discovery, health, openapi
from .binding import bind, evict
from .catalog import REVIEWS, Catalog, Served
from .custom import POD_GROUP_DEFINITION, served_by
from .definitions import establish
from .lists import list_objects, too_large, version_of
from .messages import JSON, TEXT, Answer, Request
from .negotiation import Format, accepted
from .patching import patch
from .present import in_media, one, several
from .removals import delete, delete_collection
from .reviews import answer_review
from .scale import read_scale, write_scale
from .status import WarnedRefusal, generic, status_of
from .streams import Stream, open_stream
from .writes import Target, Written, create, update

__all__ = ["ApiServer"]

log = logging.getLogger(__name__)

_RESOURCE_PATH: Final = re.compile(
    r"/(?:api/(?P<core>[^/]+)|apis/(?P<group>[^/]+)/(?P<version>[^/]+))"
    r"(?:/watch(?P<watch>(?=/)))?"
    r"(?:/namespaces/(?P<namespace>[^/]+)(?=/[^/]+)(?!/(?:status|finalize)$))?"
    r"/(?P<plural>[^/]+)(?:/(?P<name>[^/]+)(?:/(?P<part>[^/]+))?)?"
)
_PAGE_NOT_FOUND: Final = Answer(404, "404 page not found\n", TEXT)
_BOOTSTRAP: Final = "system:apiserver"
_CONTAINER: Final = "CustomResourceDefinition"
#: kinds that are kept, and on which nobody acts
_UNATTENDED: Final = frozenset({"ReplicationController", "StatefulSet"})


class ApiServer:
    """Answers for one sandbox. Thread-safe; nothing in it waits, except that `Answer.kept` says
    when a write is certain."""

    def __init__(self, cluster: SandboxCluster) -> None:
        self.cluster = cluster
        self._lock = threading.Lock()
        self._catalog = Catalog()
        self._definitions: tuple[str, ...] = ()
        self._define_pod_groups()

    def _define_pod_groups(self) -> None:
        """A new sandbox has the definition of PodGroup among its objects."""
        name = POD_GROUP_DEFINITION["metadata"]["name"]
        resource = RESOURCES[_CONTAINER]
        objects, _ = self.cluster.list_at(resource, None)
        if name not in objects:
            establish(self.cluster, POD_GROUP_DEFINITION, _BOOTSTRAP)

    @property
    def catalog(self) -> Catalog:
        """What is served now."""
        objects, _ = self.cluster.list_at(RESOURCES[_CONTAINER], None)
        found = [objects[key] for key in sorted(objects)]
        seen = tuple(str(obj["metadata"]["resourceVersion"]) for obj in found)
        with self._lock:
            if seen != self._definitions:
                self._catalog = Catalog(list(_custom(found)))
                self._definitions = seen
            return self._catalog

    def answer(self, request: Request) -> Answer | Stream:
        """Never raises: what goes wrong is a Status in the answer."""
        try:
            return self._dispatch(request)
        except ApiError as error:
            return refusal(error)
        except WarnedRefusal as refused:
            return replace(refusal(refused.error), warnings=refused.warnings)
        except Exception:
            log.exception("%s %s was not answered", request.method, request.path)
            return refusal(ApiError(500, "InternalError", "an error on the server has occurred"))

    # -- paths ---------------------------------------------------------------------------------

    def _dispatch(self, request: Request) -> Answer | Stream:
        path = request.path.rstrip("/") or "/"
        fixed = _FIXED.get(path)
        if fixed is not None:
            return self._read_only(request, lambda: fixed(self, request))
        first = path.split("/")[1]
        if first in ("livez", "readyz", "healthz"):
            return self._read_only(request, lambda: health.probe(path, request))
        if first == "openapi":
            return self._read_only(request, lambda: openapi.document(self.catalog, request))
        return self._group_or_resource(path, request)

    def _group_or_resource(self, path: str, request: Request) -> Answer | Stream:
        steps = path.split("/")[1:]
        catalog = self.catalog
        if steps[0] == "api" and len(steps) == 2 and steps[1] == "v1":
            return self._read_only(request, lambda: self._resources("", "v1", request))
        if request.method == "HEAD":
            return refusal(generic(405))
        if steps[0] == "apis" and len(steps) >= 2:
            if steps[1] not in (name for name, _ in catalog.groups()):
                return _PAGE_NOT_FOUND
            if len(steps) == 2:
                body = discovery.api_group(catalog, steps[1])
                return self._read_only(request, lambda: _plain(body, request))
            if steps[2] not in catalog.versions(steps[1]):
                return refusal(generic(404))
            if len(steps) == 3:
                group, version = steps[1], steps[2]
                return self._read_only(request, lambda: self._resources(group, version, request))
        match = _RESOURCE_PATH.fullmatch(path)
        if match is None or (match["core"] and match["core"] != "v1"):
            return _PAGE_NOT_FOUND if steps[0] not in ("api", "apis") else refusal(generic(404))
        return self._resource(match, catalog, request)

    def _read_only(self, request: Request, make: Callable[[], Answer]) -> Answer:
        return make() if request.method in ("GET", "HEAD") else refusal(generic(405))

    # -- discovery -------------------------------------------------------------------------------

    def _api(self, request: Request) -> Answer:
        found = self._aggregated(request, core=True)
        return found or _plain(discovery.api_versions(request.host), request)

    def _apis(self, request: Request) -> Answer:
        found = self._aggregated(request, core=False)
        return found or _plain(discovery.api_groups(self.catalog), request)

    def _aggregated(self, request: Request, *, core: bool) -> Answer | None:
        header = request.headers.get("accept", "").replace(" ", "")
        for clause in header.split(","):
            if "as=APIGroupDiscoveryList" not in clause or not clause.startswith(JSON):
                continue
            version = "v2beta1" if "v=v2beta1" in clause else "v2"
            body = discovery.aggregated(self.catalog, core=core, version=version)
            return Answer(200, body, discovery.AGGREGATED.format(version))
        return None

    def _resources(self, group: str, version: str, request: Request) -> Answer:
        return _plain(discovery.resource_list(self.catalog, group, version), request)

    def _version(self, request: Request) -> Answer:
        return _plain(health.version(), request)

    def _root(self, request: Request) -> Answer:
        return _plain(health.root_paths(self.catalog), request)

    # -- resources -------------------------------------------------------------------------------

    def _resource(
        self, match: re.Match[str], catalog: Catalog, request: Request
    ) -> Answer | Stream:
        group, version = match["group"] or "", match["version"] or match["core"]
        plural, namespace = match["plural"], match["namespace"] or ""
        name, part = match["name"] or "", match["part"] or ""
        review = REVIEWS.get((group, version, plural))
        if review is not None:
            return self._review(group, version, plural, namespace, name, request)
        served = catalog.find(group, version, plural)
        if served is None:
            return refusal(generic(404))
        if namespace and not served.namespaced:
            return refusal(generic(404))
        if name and served.namespaced and not namespace:
            return refusal(generic(404))
        target = Target(self.cluster, served, namespace, name, request, part)
        if match["watch"] is not None:
            request = replace(request, query={**request.query, "watch": "1"})
        format_ = accepted(request.headers.get("accept", ""))
        if part:
            return self._part(target, format_)
        if name:
            return self._one(target, request, format_)
        return self._many(target, request, format_)

    def _many(self, target: Target, request: Request, format_: Format) -> Answer | Stream:
        served, method = target.served, request.method
        if method in ("GET", "HEAD"):
            if request.flag("watch"):
                return open_stream(self.cluster, served, target.namespace, request, format_)
            found = list_objects(self.cluster, served, target.namespace, request)
            include = request.query.get("includeObject", "")
            now = self.cluster.clock.now()
            return in_media(format_, several(served, found, format_, now, include))
        if served.namespaced and not target.namespace:
            return refusal(generic(405))
        if method == "POST":
            written = create(target)
            self._defined(target, written)
            return self._written(target, written, format_)
        if method == "DELETE" and "deletecollection" in served.verbs:
            return _with_kept(*delete_collection(target, format_))
        return refusal(generic(405))

    def _one(self, target: Target, request: Request, format_: Format) -> Answer | Stream:
        method = request.method
        if method in ("GET", "HEAD"):
            if request.flag("watch"):
                return self._watch_one(target, request, format_)
            return self._get(target, format_)
        if method == "PUT":
            written = update(target)
        elif method == "PATCH":
            written = patch(target)
        elif method == "DELETE":
            return _with_kept(*delete(target, format_))
        else:
            return refusal(generic(405))
        self._defined(target, written)
        return self._written(target, written, format_)

    def _get(self, target: Target, format_: Format) -> Answer:
        served = target.served
        text = target.request.query.get("resourceVersion", "")
        if text not in ("", "0") and version_of(text) > self.cluster.resource_version:
            raise too_large(int(text), self.cluster.resource_version)
        key = key_of(target.namespace if served.namespaced else "", target.name)
        found = self.cluster.list_at(served.resource, None)[0].get(key)
        if found is None:
            raise not_found(served.resource, target.name)
        include = target.request.query.get("includeObject", "")
        now = self.cluster.clock.now()
        return in_media(format_, one(served, found, format_, now, include))

    def _watch_one(self, target: Target, request: Request, format_: Format) -> Stream:
        query = {**request.query, "fieldSelector": f"metadata.name={target.name}"}
        request = replace(request, query=query)
        return open_stream(self.cluster, target.served, target.namespace, request, format_)

    def _part(self, target: Target, format_: Format) -> Answer:
        part = target.served.subresource(target.subresource)
        if part is None:
            return refusal(generic(404))
        method = target.request.method
        verb = {"GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "patch", "POST": "create"}
        if verb.get(method) not in part.verbs:
            return refusal(generic(405))
        if part.name == "binding":
            return _with_kept(*bind(target, format_))
        if part.name == "eviction":
            return _with_kept(*evict(target, format_))
        if part.name == "scale":
            act = read_scale if method in ("GET", "HEAD") else write_scale
            return _with_kept(*act(target, format_))
        if method in ("GET", "HEAD"):
            return self._get(target, format_)
        written = update(target) if method == "PUT" else patch(target)
        return self._written(target, written, format_)

    def _written(self, target: Target, written: Written, format_: Format) -> Answer:
        body = one(target.served, written.obj, format_, self.cluster.clock.now())
        answer = in_media(format_, body, 201 if written.created else 200)
        warnings = (*written.warnings, *_unattended(target, written))
        return replace(answer, kept=written.kept, warnings=warnings)

    def _review(
        self, group: str, version: str, plural: str, namespace: str, name: str, request: Request
    ) -> Answer:
        kind, namespaced = REVIEWS[group, version, plural]
        if name or namespaced is not bool(namespace):
            return refusal(generic(404))
        if request.method != "POST":
            return refusal(generic(405))
        format_ = accepted(request.headers.get("accept", ""))
        if kind == "Binding":
            served = self.catalog.find("", "v1", "pods")
            assert served is not None
            target = Target(self.cluster, served, namespace, "", request, "binding")
            return _with_kept(*bind(target, format_))
        now = self.cluster.clock.now()
        return in_media(format_, answer_review(group, version, kind, request, now), 201)

    def _defined(self, target: Target, written: Written) -> None:
        """A definition that was written is put to use at once."""
        is_rehearsal = target.request.query.get("dryRun") == "All"
        is_going = bool(written.obj.get("metadata", {}).get("deletionTimestamp"))
        if target.served.resource.kind == _CONTAINER and not is_rehearsal and not is_going:
            establish(self.cluster, written.obj, _BOOTSTRAP)


def _custom(definitions: Sequence[Json]) -> list[Served]:
    found: list[Served] = []
    for definition in definitions:
        try:
            found.extend(served_by(definition))
        except (KeyError, TypeError, IndexError):
            name = definition["metadata"].get("name")
            log.exception("the definition %s cannot be put to use", name)
    return found


def _plain(body: Json, request: Request) -> Answer:
    return in_media(replace(accepted(_without_forms(request)), form=""), body)


def _unattended(target: Target, written: Written) -> tuple[str, ...]:
    """A warning where something else was to be expected of what was made."""
    kind = target.served.kind
    if target.served.custom or not written.created or kind not in _UNATTENDED:
        return ()
    return (f"a sandbox has no controller for {kind}s: it is kept, but no pods are made",)


def _without_forms(request: Request) -> str:
    """Discovery is given as it is to whoever prefers another form of it."""
    header = request.headers.get("accept", "")
    clauses = [c for c in header.split(",") if "as=APIGroupDiscoveryList" not in c]
    return ",".join(clauses)


def _with_kept(answer: Answer, kept: Future[None] | None) -> Answer:
    return replace(answer, kept=kept)


def refusal(error: ApiError) -> Answer:
    """The answer to a request that is refused."""
    headers = {"Retry-After": str(error.retry_after)} if error.retry_after else {}
    return Answer(error.code, status_of(error), JSON, headers)


_FIXED: Final[dict[str, Callable[[ApiServer, Request], Answer]]] = {
    "/": ApiServer._root,
    "/api": ApiServer._api,
    "/apis": ApiServer._apis,
    "/version": ApiServer._version,
}
