"""Each version of an object is written once, however many watch it."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

import orjson

from scheduler_core.ports import Json

__all__ = ["Encoder"]

#: versions that are remembered: those that watches are told of at about the same time
_REMEMBERED: Final = 1024


class Encoder:
    """Watch events as bytes. For one event loop."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, ...], bytes] = OrderedDict()

    def event(self, event: Json) -> bytes:
        """One line of a watch."""
        obj = event["object"]
        version = obj.get("metadata", {}).get("resourceVersion")
        if not version or event["type"] in ("BOOKMARK", "ERROR") or obj.get("kind") == "Table":
            return orjson.dumps(event) + b"\n"
        # What leaves a selection is told as deleted, with the version of what took its place.
        key = (event["type"], version, obj["kind"], obj["apiVersion"])
        found = self._known.get(key)
        if found is None:
            found = orjson.dumps(event) + b"\n"
            self._known[key] = found
            if len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
        return found
