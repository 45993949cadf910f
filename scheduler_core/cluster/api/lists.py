"""Lists: which objects, at which version, and how many of them at a time."""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass
from typing import Any, Final

from scheduler_core.ports import ApiError, Json

from ..errors import bad_request
from ..sandbox import SandboxCluster
from ..selection import everything, selection
from .catalog import Served
from .messages import Request
from .options import invalid_options

__all__ = ["Listing", "list_objects", "list_version", "too_large", "version_of"]

_CONTINUE_VERSION: Final = "meta.k8s.io/v1"
_MATCHES: Final = ("Exact", "NotOlderThan")
_CONTINUE_GONE: Final = (
    "The provided continue parameter is too old to display a consistent list result. You can "
    "start a new list without the continue parameter, or use the continue token in this response "
    "to retrieve the remainder of the results. Continuing with the provided token results in an "
    "inconsistent list - objects that were created, modified, or deleted between the time the "
    "first chunk was returned and now may show up in the list."
)


@dataclass(frozen=True, slots=True)
class Listing:
    """Objects as they are stored, and the metadata of their list."""

    items: list[Json]
    version: int
    token: str = ""
    remaining: int | None = None

    @property
    def metadata(self) -> Json:
        found: Json = {"resourceVersion": str(self.version)}
        if self.token:
            found["continue"] = self.token
        if self.remaining is not None:
            found["remainingItemCount"] = self.remaining
        return found


def list_version(text: str) -> int:
    """Raises:
    ApiError: 400 where it is no version.
    """
    if not text.isdigit():
        problem = f'strconv.ParseUint: parsing "{text}": invalid syntax'
        raise bad_request(
            f'invalid resource version: resourceVersion: Invalid value: "{text}": {problem}'
        )
    return int(text)


def version_of(text: str) -> int:
    """The version that a read or a watch names.

    Raises:
        ApiError: 500, as the real one says it, where it is no version.
    """
    if not (text.isascii() and text.isdigit()):
        problem = f'strconv.ParseUint: parsing "{text}": invalid syntax'
        raise ApiError(500, "", f'resourceVersion: Invalid value: "{text}": {problem}')
    return int(text)


def list_objects(
    cluster: SandboxCluster, served: Served, namespace: str, request: Request
) -> Listing:
    """Raises:
    ApiError: 400 for a bad selector or token, 410 for a version that is forgotten, 504 for one
        that lies ahead, 422 for options that do not go together.
    """
    query = request.query
    _whole_number(query.get("timeoutSeconds", ""))
    if "sendInitialEvents" in query:
        problem = "Forbidden: sendInitialEvents is forbidden for list"
        raise invalid_options("ListOptions", "sendInitialEvents", problem)
    select = selection(
        served.resource, namespace, query.get("labelSelector", ""), query.get("fieldSelector", "")
    )
    limit = _limit(query.get("limit", ""))
    if query.get("resourceVersion") == "0" and not query.get("continue"):
        limit = 0  # "whatever is at hand" is given whole, as from the real server's cache
    after, version = _start(cluster, request)
    objects, at = _objects(cluster, served, version, after)
    keys = sorted(key for key in objects if key >= after) if after else sorted(objects)
    plain = select is everything or (
        not query.get("labelSelector") and not query.get("fieldSelector")
    )
    items: list[Json] = []
    last = ""
    for place, key in enumerate(keys):
        obj = objects[key]
        if not select(obj):
            continue
        if limit and len(items) == limit:
            rest = sum(1 for later in keys[place:] if select(objects[later])) if plain else None
            return Listing(items, at, _token(at, last), rest)
        items.append(obj)
        last = key
    return Listing(items, at)


def _limit(text: str) -> int:
    return max(_whole_number(text), 0)


def _whole_number(text: str) -> int:
    if not text:
        return 0
    if not text.removeprefix("-").isdigit():
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    if abs(int(text)) >= 1 << 63:
        raise bad_request(f'strconv.ParseInt: parsing "{text}": value out of range')
    return int(text)


def _start(cluster: SandboxCluster, request: Request) -> tuple[str, int | None]:
    """The key to begin at, and the version; None for what is now."""
    query = request.query
    match, text = query.get("resourceVersionMatch", ""), query.get("resourceVersion", "")
    if match and match not in _MATCHES:
        supported = ", ".join(f'"{known}"' for known in _MATCHES)
        problem = f'Unsupported value: "{match}": supported values: {supported}, ""'
        raise invalid_options("ListOptions", "resourceVersionMatch", problem)
    if query.get("continue"):
        if match:
            problem = "Forbidden: resourceVersionMatch is forbidden when continue is provided"
            raise invalid_options("ListOptions", "resourceVersionMatch", problem)
        if text not in ("", "0"):
            raise bad_request("specifying resource version is not allowed when using continue")
        return _read_token(query["continue"])
    if match and not text:
        problem = "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided"
        raise invalid_options("ListOptions", "resourceVersionMatch", problem)
    if match == "Exact" and text == "0":
        problem = 'Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
        raise invalid_options("ListOptions", "resourceVersionMatch", problem)
    if text in ("", "0"):
        return "", None
    version = list_version(text)
    limited = bool(query.get("limit")) and not match
    if match == "Exact" or limited:
        return "", version
    current = cluster.resource_version
    if version > current:
        raise too_large(version, current)
    return "", None


def _objects(
    cluster: SandboxCluster, served: Served, version: int | None, after: str
) -> tuple[dict[str, Json], int]:
    try:
        return cluster.list_at(served.resource, version)
    except ApiError as error:
        if error.code == 504 and version is not None:
            raise too_large(version, cluster.resource_version) from error
        if error.code != 410 or version is None:
            raise
        if after:
            raise ApiError(410, "Expired", _CONTINUE_GONE) from error
        raise ApiError(
            410, "Expired", f"The resourceVersion for the provided list is too old: {version}"
        ) from error


def too_large(asked: int, current: int) -> ApiError:
    return ApiError(
        504,
        "Timeout",
        f"Timeout: Too large resource version: {asked}, current: {current}",
        [("ResourceVersionTooLarge", "Too large resource version")],
    )


def _token(version: int, last: str) -> str:
    text = json.dumps({"v": _CONTINUE_VERSION, "rv": version, "start": f"{last}\0"})
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _read_token(token: str) -> tuple[str, int | None]:
    try:
        raw = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
    except (binascii.Error, ValueError) as error:
        raise _bad_token(f"illegal base64 data: {error}") from error
    try:
        found: Any = json.loads(raw)
    except ValueError as error:
        raise _bad_token(_bad_json(raw)) from error
    if not isinstance(found, dict) or found.get("v") != _CONTINUE_VERSION:
        known = found.get("v") if isinstance(found, dict) else ""
        raise _bad_token(f'server does not recognize this encoded version "{known}"')
    start, version = found.get("start"), found.get("rv")
    if not isinstance(start, str) or not start:
        raise _bad_token(f"encoded start key empty (version {_CONTINUE_VERSION})")
    if not isinstance(version, int):
        raise _bad_token(f"incorrect encoded start resourceVersion (version {_CONTINUE_VERSION})")
    return start, version if version > 0 else None


def _bad_json(raw: bytes) -> str:
    if not raw.strip():
        return "unexpected end of JSON input"
    first = raw.strip()[0]
    shown = f"'\\x{first:02x}'" if first >= 0x80 or first < 0x20 else f"'{chr(first)}'"
    return f"invalid character {shown} looking for beginning of value"


def _bad_token(why: str) -> ApiError:
    return bad_request(f"invalid continue token: continue key is not valid: {why}")
