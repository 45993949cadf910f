"""Watches: what is told, from which version on, and until when."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from scheduler_core.ports import ApiError, Json

from ..sandbox import SandboxCluster, Watch
from ..selection import selection
from ..watch import StreamEvent
from . import schema
from .catalog import Served
from .lists import list_objects, too_large, version_of
from .messages import Request
from .negotiation import Format
from .options import invalid_options
from .present import partial, table_of
from .status import status_of
from .versions import as_served

__all__ = ["Stream", "open_stream"]

#: what kube-apiserver calls --min-request-timeout: a watch without a timeout lasts once to twice it
_SHORTEST_SECONDS: Final = 1800.0
_END: Final = "k8s.io/initial-events-end"


@dataclass(slots=True)
class Stream:
    """A watch that is about to begin.

    Call `start` with what takes each event: (type, object, resourceVersion of the object's
    state); events of one stream come one after another, from any thread. `seconds`: when the
    server ends it. `bookmarks`: whether to send one now and then (`bookmark`).
    """

    cluster: SandboxCluster
    served: Served
    namespace: str
    request: Request
    format: Format
    seconds: float
    bookmarks: bool
    since: int | None
    initial: bool
    _watch: Watch | None = None
    _emit: Callable[[Json], None] | None = None
    _columns_sent: bool = field(default=False)

    def start(self, emit: Callable[[Json], None]) -> None:
        """Deliver what there is, and then what comes, as watch events.

        Nothing is raised: what is refused is an ERROR event, after which nothing comes.
        """
        self._emit = emit
        try:
            self._begin()
        except ApiError as error:
            emit({"type": "ERROR", "object": status_of(error)})

    def _begin(self) -> None:
        query = self.request.query
        since = self.since
        if since is None:
            since = self._tell_all()
        elif since > self.cluster.resource_version:
            self._watch_future(since)
            return
        self._watch = self.cluster.watch_from(
            self.served.resource,
            since,
            self._hear,
            namespace=self.namespace or None,
            label_selector=query.get("labelSelector", ""),
            field_selector=query.get("fieldSelector", ""),
        )

    def _watch_future(self, since: int) -> None:
        """Nothing is told until the store has come that far."""
        query = self.request.query

        def hear(event: StreamEvent) -> None:
            if event.resource_version > since:
                self._hear(event)

        self._watch = self.cluster.watch_from(
            self.served.resource,
            self.cluster.resource_version,
            hear,
            namespace=self.namespace or None,
            label_selector=query.get("labelSelector", ""),
            field_selector=query.get("fieldSelector", ""),
        )

    def _tell_all(self) -> int:
        """Every object as ADDED; returns the version at which the watch goes on."""
        query = {
            key: self.request.query[key]
            for key in ("labelSelector", "fieldSelector")
            if key in self.request.query
        }
        request = Request("GET", self.request.path, query)
        found = list_objects(self.cluster, self.served, self.namespace, request)
        for obj in found.items:
            self._send("ADDED", obj)
        if self.initial and self.bookmarks:
            self._send_bookmark(found.version, {_END: "true"})
        return found.version

    def _hear(self, event: StreamEvent) -> None:
        if event.type == "BOOKMARK":
            return  # its place is in the list already, or `bookmark` asks for it
        self._send(event.type, event.object)

    def _send(self, type_: str, obj: Json) -> None:
        shown = as_served(self.served, obj)
        if self.format.form == "Table":
            include = self.request.query.get("includeObject", "")
            metadata = {"resourceVersion": shown["metadata"]["resourceVersion"]}
            body = table_of(
                self.served,
                [shown],
                self.format,
                self.cluster.clock.now(),
                metadata,
                include,
                with_columns=not self._columns_sent,
            )
            self._columns_sent = True
        elif self.format.form:
            body = partial(shown, self.format.version)
        else:
            body = shown
        assert self._emit is not None
        self._emit({"type": type_, "object": body})

    def bookmark(self) -> None:
        """Tell up to which version everything has been told."""
        if self.bookmarks and self._watch is not None:
            self._watch.bookmark_to(lambda version: self._send_bookmark(version, {}))

    def _send_bookmark(self, version: int, annotations: Json) -> None:
        metadata: Json = {"resourceVersion": str(version)}
        if annotations:
            metadata["annotations"] = annotations
        served = self.served
        empty = {} if served.custom else schema.zero(served.struct)
        body = {
            "kind": served.kind,
            "apiVersion": served.api_version,
            "metadata": metadata,
            **empty,
        }
        if self.format.form == "Table":
            body = {
                "kind": "Table",
                "apiVersion": f"meta.k8s.io/{self.format.version}",
                "metadata": metadata,
                "columnDefinitions": [],
                "rows": [],
            }
        elif self.format.form:
            body = {**partial({"metadata": metadata}, self.format.version)}
        assert self._emit is not None
        self._emit({"type": "BOOKMARK", "object": body})

    def stop(self) -> None:
        """No event is delivered after this returns."""
        if self._watch is not None:
            self._watch.stop()


def open_stream(
    cluster: SandboxCluster, served: Served, namespace: str, request: Request, format_: Format
) -> Stream:
    """Read the options of a watch.

    Raises:
        ApiError: 400 for a bad selector or version, 422 for options that do not go together.
    """
    query = request.query
    selection(
        served.resource, namespace, query.get("labelSelector", ""), query.get("fieldSelector", "")
    )
    text, match = query.get("resourceVersion", ""), query.get("resourceVersionMatch", "")
    initial = "sendInitialEvents" in query
    _check_match(initial, match)
    since = None if text in ("", "0") else version_of(text)
    if initial and request.flag("sendInitialEvents"):
        if since is not None and since > cluster.resource_version:
            raise too_large(since, cluster.resource_version)
        since = None
    elif initial and since is None:
        since = cluster.resource_version
    seconds = query.get("timeoutSeconds", "")
    # Who waits for the end of many watches at once is spared a storm.
    longest = random.uniform(1, 2) * _SHORTEST_SECONDS  # noqa: S311
    return Stream(
        cluster,
        served,
        namespace,
        request,
        format_,
        float(seconds) if seconds.isdigit() and int(seconds) else longest,
        request.flag("allowWatchBookmarks"),
        since,
        initial and request.flag("sendInitialEvents"),
    )


def _check_match(initial: bool, match: str) -> None:
    field_name = "resourceVersionMatch"
    if initial and match != "NotOlderThan":
        if not match:
            problem = (
                "Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
            )
        else:
            problem = f'Unsupported value: "{match}": supported values: "NotOlderThan"'
        raise invalid_options("ListOptions", field_name, problem)
    if match and not initial:
        problem = (
            "Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is "
            "provided"
        )
        raise invalid_options("ListOptions", field_name, problem)
