"""How a sandbox and its clients speak over a socket: one JSON document a line.

A request is `{"op": NAME, "actor": NAME, "args": {...}}`, its answer `{"ok": ...}` or
`{"error": {code, reason, message, causes}}`. The answer to `list` says how many items there are
and is followed by lists of them, some on each line, so that nobody has to hold the text of a large
cluster at once. After `watch` the connection carries events alone (see `packed`), until one side
closes it. After `pipeline` it carries, each many at a time, bindings and events one way,
`{"binds": [[NUMBER, NAMESPACE, NAME, UID, NODE], ...], "events": [{...}, ...]}`, and what came of
the bindings the other way, `{"bound": [[NUMBER, ERROR or null], ...]}`.
"""

from __future__ import annotations

import json
from typing import Any, Final

from scheduler_core.ports import AlreadyExists, ApiError, Conflict, Gone, Json, NotFound

from .errors import bad_request, unavailable

__all__ = [
    "ITEMS_A_LINE",
    "LONGEST_LINE",
    "NOT_RUNNING",
    "decode",
    "encode",
    "error_document",
    "error_of",
    "not_running",
]

#: bytes of one request or answer
LONGEST_LINE: Final = 256 * 1024 * 1024
#: items on one line of a list
ITEMS_A_LINE: Final = 500
NOT_RUNNING: Final = "sandbox is not running"

_CLASSES: Final[dict[str, type[ApiError]]] = {
    "NotFound": NotFound,
    "AlreadyExists": AlreadyExists,
    "Conflict": Conflict,
    "Expired": Gone,
}


def encode(document: Any) -> bytes:
    """One line."""
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def decode(line: bytes) -> Json:
    """Raises:
    ApiError: 400, the line is no JSON object.
    """
    try:
        found = json.loads(line)
    except ValueError as error:
        raise bad_request(f"the line is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise bad_request("the line is not a JSON object")
    return found


def error_document(error: ApiError) -> Json:
    return {
        "code": error.code,
        "reason": error.reason,
        "message": error.message,
        "causes": [list(cause) for cause in error.causes],
    }


def error_of(document: Json) -> ApiError:
    """The exception that the other side raised, of the same class."""
    reason = str(document.get("reason", ""))
    cls = _CLASSES.get(reason, ApiError)
    causes = [(str(path), str(message)) for path, message in document.get("causes", ())]
    # The subclasses build their message from parts; here the message is there already.
    error = cls.__new__(cls)
    ApiError.__init__(
        error, int(document.get("code", 500)), reason, str(document.get("message", "")), causes
    )
    return error


def not_running() -> ApiError:
    return unavailable(NOT_RUNNING)
