"""List and watch of one kind, for as long as somebody wants to know.

Pages of a list, then a watch from its resourceVersion with bookmarks; a watch that ends goes on
where it was, and after 410 everything is listed anew and only the differences are told. A kind that
the server does not have counts as empty, and is looked for again now and then.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import orjson

from scheduler_core.api.kinds import Kind
from scheduler_core.ports import ApiError, Gone, Json, WatchEvent

from .api import KubeApi, Patience
from .resources import path_of, typed, versions_of
from .statuses import error_of_status
from .timing import Backoff
from .transport import NoAnswer, Stream

__all__ = ["LIST_LIMIT", "Reflector", "WatchOptions", "list_pages"]

log = logging.getLogger(__name__)

LIST_LIMIT: Final = 500
_FIRST_PAUSE: Final = 0.2
_LONGEST_PAUSE: Final = 20.0
#: seconds; a server that says "later" is listened to so far
_LONGEST_LATER: Final = 60.0
#: of a server whose data are older than what we know: it was restored from a backup
_IS_AHEAD: Final = "Too large resource version"
#: a watch that ended sooner, in seconds, is no sign of health
_SHORT: Final = 1.0
#: as kube-apiserver ends watches by itself: after five to ten minutes
_SHORTEST_WATCH: Final = 300.0

Change = Literal["ADDED", "MODIFIED", "DELETED"]


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """Attributes:
    silence: seconds without a byte after which a watch counts as dead; servers send a bookmark
        about every minute.
    absent: seconds between two looks for an API that the server does not have.
    """

    silence: float = 150.0
    absent: float = 60.0


def list_pages(
    api: KubeApi, kind: Kind, path: str, query: Sequence[tuple[str, str]], version: str
) -> tuple[list[Json], str]:
    """Every object, and the resourceVersion of the list.

    Raises:
        ApiError
    """
    try:
        return _pages(api, kind, path, [*query, ("limit", str(LIST_LIMIT))], version)
    except Gone:
        # It took so long that its beginning is forgotten: then in one piece.
        return _pages(api, kind, path, list(query), version)


def _pages(
    api: KubeApi, kind: Kind, path: str, query: list[tuple[str, str]], version: str
) -> tuple[list[Json], str]:
    items: list[Json] = []
    token = ""
    while True:
        page = api.get(path, [*query, ("continue", token)] if token else query)
        found = page.get("items") or ()
        items += [typed(kind, version, obj) for obj in found if _key(obj) is not None]
        metadata = page.get("metadata") or {}
        token = metadata.get("continue") or ""
        if not token:
            return items, str(metadata.get("resourceVersion") or "")


class Reflector:
    """A `Subscription`. ``start`` lists on the caller's thread; a thread of its own goes on."""

    def __init__(
        self,
        api: KubeApi,
        kind: Kind,
        sink: Callable[[WatchEvent], None],
        *,
        fields: str = "",
        options: WatchOptions | None = None,
        share: Callable[[Json], Json] = lambda obj: obj,
        on_version: Callable[[str, str], None] = lambda kind, version: None,
        on_trouble: Callable[[str, str], None] = lambda kind, text: None,
        ended: Callable[[Reflector], None] = lambda reflector: None,
    ) -> None:
        """
        Args:
            fields: field selector; what does not match is not there.
            share: replaces parts of an object by equal ones that are in memory already.
            on_version: told kind and apiVersion, once it is known which the server has.
            on_trouble: told kind and text of what keeps it from hearing; "" when it hears again.
            ended: told once it has stopped.
        """
        self._api = api
        self._kind = kind
        self._sink = sink
        self._selector = [("fieldSelector", fields)] if fields else []
        self._options = options or WatchOptions()
        self._share = share
        self._on_version = on_version
        self._on_trouble = on_trouble
        self._ended = ended
        self._known: dict[str, Json] = {}
        self._api_version = ""  # "": the server has no such API, as far as is known
        self._version = ""  # resourceVersion to go on from; "": list anew
        self._synced = False
        self._stopped = threading.Event()
        self._lock = threading.RLock()  # held while the sink is told
        self._stream: Stream | None = None
        self._backoff = Backoff(_FIRST_PAUSE, _LONGEST_PAUSE, api.random)
        self._trouble = ""
        self._thread = threading.Thread(target=self.run, name=f"watch-{kind.kind}", daemon=True)

    def start(self, *, at_once: bool = True) -> None:
        """Tell what is there, then go on in the background; where the server cannot be reached,
        or not ``at_once``, all of it happens there.

        Raises:
            ApiError: the server refuses for good (401, 403, 400, ...).
        """
        try:
            if at_once:
                self.list_anew(_once(self._api))
        except ApiError as error:
            if error.code in (400, 401, 403, 405, 406, 422):
                raise
            self._tell_trouble(error)
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        with self._lock:
            stream, self._stream = self._stream, None
        if stream is not None:
            stream.close()
        self._ended(self)

    @property
    def kind(self) -> str:
        return self._kind.kind

    def known(self, key: str) -> Json | None:
        """The object as it was last told, by "namespace/name" or "name"."""
        return self._known.get(key)

    def run(self) -> None:
        """Until `stop`."""
        while not self._stopped.is_set():
            try:
                pause = self.turn()
            except ApiError as error:
                pause = self._after(error)
            except Exception:
                log.exception("the watch of %s stumbled", self._kind.kind)
                pause = self._backoff.pause()
            if pause > 0:
                self._api.timing.wait(pause, self._stopped)

    def turn(self) -> float:
        """List where that is needed, watch until the watch ends; seconds to wait before the next.

        Raises:
            ApiError
        """
        if not self._version:
            self.list_anew()
        if not self._api_version:
            # Not all kinds at once, and not for ever: somebody may install it.
            return self._options.absent * (0.5 + self._api.random())
        self._tell_trouble(None)
        began = self._api.timing.monotonic()
        self.watch()
        if self._api.timing.monotonic() - began < _SHORT:
            return self._backoff.pause()
        self._backoff.reset()
        return 0.0

    def _after(self, error: ApiError) -> float:
        if error.code == 410 or _IS_AHEAD in error.message:
            self._version = ""
        if error.code == 404:
            self._version = self._api_version = ""  # the API was taken away
        elif error.code != 410:
            self._tell_trouble(error)
        return max(self._backoff.pause(), min(error.retry_after or 0.0, _LONGEST_LATER))

    def _tell_trouble(self, error: ApiError | None) -> None:
        text = "" if error is None else f"{error.code} {error.message}"
        if text == self._trouble:
            return
        if text:
            log.warning("the watch of %s is interrupted: %s", self._kind.kind, text)
        elif self._trouble:
            log.info("the watch of %s goes on", self._kind.kind)
        self._trouble = text
        self._on_trouble(self._kind.kind, text)

    # -- list --------------------------------------------------------------------------------------

    def list_anew(self, api: KubeApi | None = None) -> None:
        """List, and tell the differences to what was told before.

        Raises:
            ApiError
        """
        items, version = self._listed(api or self._api)
        objects: dict[str, Json] = {}
        for obj in items:
            key = _key(obj)
            if key is not None:
                objects[key] = self._share(_slim(obj))
        with self._lock:
            for key, old in tuple(self._known.items()):
                new = objects.get(key)
                if new is None or new["metadata"].get("uid") != old["metadata"].get("uid"):
                    self._tell("DELETED", key, old)
            for key, obj in objects.items():
                before = self._known.get(key)
                if before is None:
                    self._tell("ADDED", key, obj)
                elif _version(before) != _version(obj):
                    self._tell("MODIFIED", key, obj)
            if not self._stopped.is_set():
                self._sink(WatchEvent("SYNCED", self._kind.kind, {}))
        self._version = version

    def _listed(self, api: KubeApi) -> tuple[list[Json], str]:
        """Of the first version that the server has; nothing where it has none."""
        known = (self._api_version,) if self._api_version else versions_of(self._kind)
        for version in known:
            path = path_of(self._kind, version)
            try:
                found = list_pages(api, self._kind, path, self._selector, version)
            except ApiError as error:
                if error.code != 404:
                    raise
                continue
            if not self._api_version:
                self._api_version = version
                self._on_version(self._kind.kind, version)
            return found
        self._api_version = ""
        return [], ""

    # -- watch -------------------------------------------------------------------------------------

    def watch(self) -> None:
        """Hear events until the server ends the watch.

        Raises:
            ApiError: it refuses, the connection breaks, or 410: list anew.
        """
        seconds = int(_SHORTEST_WATCH * (1.0 + self._api.random()))
        query = [
            *self._selector,
            ("watch", "true"),
            ("resourceVersion", self._version),
            ("allowWatchBookmarks", "true"),
            ("timeoutSeconds", str(seconds)),
        ]
        path = path_of(self._kind, self._api_version)
        stream = self._api.watch(path, query, self._options.silence)
        with self._lock:
            if not self._stopped.is_set():
                self._stream = stream
        before = self._version
        try:
            if not self._stopped.is_set():
                self._hear(stream)
        except NoAnswer as lost:
            if lost.timed_out and self._version == before:
                # Not even a bookmark. So is a server whose data were restored from a backup, until
                # it comes to the version that we have asked for.
                self._version = ""
            raise ApiError(503, "ServiceUnavailable", f"watch {path}: {lost}") from lost
        finally:
            with self._lock:
                self._stream = None
            stream.close()

    def _hear(self, stream: Stream) -> None:
        for line in stream.lines():
            try:
                event = orjson.loads(line)
                type_, obj = event["type"], event["object"]
            except (orjson.JSONDecodeError, KeyError, TypeError):
                raise ApiError(502, "BadGateway", "a watch event is not JSON") from None
            if type_ == "ERROR":
                raise error_of_status(obj if isinstance(obj, dict) else {})
            self._take(type_, obj)
            self._backoff.reset()

    def _take(self, type_: Any, obj: Any) -> None:
        if not isinstance(obj, dict):
            return
        metadata = obj.get("metadata")
        version = metadata.get("resourceVersion") if isinstance(metadata, dict) else None
        key = _key(obj)
        with self._lock:
            if key is not None and type_ in ("ADDED", "MODIFIED", "DELETED"):
                shared = self._share(_slim(typed(self._kind, self._api_version, obj)))
                self._tell_event(type_, key, shared)
            if version:
                self._version = str(version)

    def _tell_event(self, type_: Change, key: str, obj: Json) -> None:
        """What a watch says, as it looks to somebody who knows what was told before."""
        before = self._known.get(key)
        if type_ == "DELETED":
            if before is not None:
                self._tell("DELETED", key, obj)
            return
        if before is not None and before["metadata"].get("uid") != obj["metadata"].get("uid"):
            self._tell("DELETED", key, before)
            before = None
        self._tell("ADDED" if before is None else "MODIFIED", key, obj)

    def _tell(self, type_: Change, key: str, obj: Json) -> None:
        if self._stopped.is_set():
            return
        if type_ == "DELETED":
            self._known.pop(key, None)
        else:
            self._known[key] = obj
        self._sink(WatchEvent(type_, self._kind.kind, obj))


def _once(api: KubeApi) -> KubeApi:
    """Without patience: somebody waits."""
    return replace(api, patience=Patience(api.patience.timeout, budget=0.0))


def _key(obj: Any) -> str | None:
    """ "namespace/name" or "name"; None for what is no object."""
    metadata = obj.get("metadata") if isinstance(obj, Mapping) else None
    if not isinstance(metadata, dict):
        return None
    name, namespace = metadata.get("name"), metadata.get("namespace")
    if not isinstance(name, str) or not name:
        return None
    return f"{namespace}/{name}" if namespace else name


def _version(obj: Json) -> str:
    return str(obj["metadata"].get("resourceVersion"))


def _slim(obj: Json) -> Json:
    """Without the record of who wrote which field: half of an object, and nobody's concern here."""
    obj["metadata"].pop("managedFields", None)
    return obj
