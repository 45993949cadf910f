"""Reads what a client sent: JSON, YAML or protobuf, of the kind that the path asks for."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

import yaml

from scheduler_core.ports import ApiError, Json

from ..errors import bad_request
from ..objects import clone
from .catalog import BUILT_IN, Served
from .decode import Decoder, Undecodable, json_name
from .messages import JSON, YAML, Request
from .negotiation import media_type
from .protobuf import PROTOBUF, BadProtobuf, decode_envelope, decode_message
from .schema import struct

__all__ = [
    "decoded",
    "decoded_as",
    "parsed",
    "parsed_as",
    "read_object",
    "refuse_unknown",
    "said_twice",
    "unregistered",
]

_SUMMARY: Final = 30
#: what Go calls the struct that it reads kind and apiVersion into
_IDENTITY: Final = (
    'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; '
    'Kind string "json:\\"kind,omitempty\\"" }'
)
_KNOWN_KINDS: Final = frozenset(served.kind for served in BUILT_IN)
_KNOWN_VERSIONS: Final = frozenset(served.api_version for served in BUILT_IN)
_UNKNOWN_FORMAT: Final = (
    "the body of the request was in an unknown format - accepted media types include: "
    f"{JSON}, {YAML}, application/vnd.kubernetes.protobuf"
)


class _Loader(yaml.SafeLoader):
    """Times stay text, as in JSON."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, rule) for tag, rule in rules if tag != "tag:yaml.org,2002:timestamp"]
    for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


class Unparsable(ValueError):
    """The body is no JSON, and no YAML; the message is the parser's."""


def parsed(body: bytes, media: str) -> Any:
    """The value of a body.

    Raises:
        Unparsable, ApiError: 415 for other formats, 400 where it is nested too deeply.
    """
    if media in ("", JSON):
        try:
            return json.loads(body)
        except (ValueError, RecursionError) as error:
            raise Unparsable(f"json parse error: {_go_words(body, error)}") from error
    if media in (YAML, "text/yaml", "application/apply-patch+yaml"):
        try:
            return clone(yaml.load(body, Loader=_Loader))  # noqa: S506 - a safe loader
        except (yaml.YAMLError, RecursionError, ValueError) as error:
            raise Unparsable(f"error converting YAML to JSON: yaml: {error}") from error
    if media == PROTOBUF:
        return _from_protobuf(body)
    raise ApiError(415, "UnsupportedMediaType", _UNKNOWN_FORMAT)


def said_twice(request: Request) -> list[str]:
    """The paths of fields that a JSON body says more than once."""
    if media_type(request.headers.get("content-type", "")) not in ("", JSON):
        return []
    found = False

    def noted(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal found
        made = dict(pairs)
        found = found or len(made) != len(pairs)
        return made

    json.loads(request.body, object_pairs_hook=noted)
    if not found:
        return []
    return list(_repeated(json.loads(request.body, object_pairs_hook=_Pairs), ""))


class _Pairs(list[tuple[str, Any]]):
    """An object with all that it says, in order."""


def _repeated(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, _Pairs):
        known: set[str] = set()
        for key, part in value:
            inner = f"{path}.{key}" if path else key
            if key in known:
                yield inner
            known.add(key)
            yield from _repeated(part, inner)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _repeated(item, f"{path}[{index}]")


def _from_protobuf(body: bytes) -> Json:
    try:
        version, kind, raw = decode_envelope(body)
        of = struct("CoreEvent" if (version, kind) == ("v1", "Event") else kind)
        return {"apiVersion": version, "kind": kind, **decode_message(of, raw)}
    except KeyError as error:
        raise Unparsable(f"no kind {error} is read from protobuf") from error
    except BadProtobuf as error:
        raise Unparsable(f"protobuf: {error}") from error


def _go_words(body: bytes, error: Exception) -> str:
    if not isinstance(error, json.JSONDecodeError):
        return str(error)
    text = body.decode(errors="replace").rstrip()
    if error.pos >= len(text) or error.msg.startswith("Unterminated"):
        return "unexpected end of JSON input"
    if error.msg == "Expecting property name enclosed in double quotes":
        where = "looking for beginning of object key string"
    elif error.msg == "Expecting ':' delimiter":
        where = "after object key"
    elif error.msg == "Expecting ',' delimiter":
        where = "after object key:value pair"
    elif error.msg == "Extra data":
        where = "after top-level value"
    else:
        where = "looking for beginning of value"
    return f"invalid character {text[error.pos]!r} {where}"


def read_object(served: Served, request: Request) -> Json:
    """The body as an object of the served kind, not yet decoded.

    Raises:
        ApiError: 400 where it is something else, 415 for a format that is not read.
    """
    media = media_type(request.headers.get("content-type", ""))
    try:
        body = parsed(request.body, media)
    except Unparsable as error:
        raise _unrecognized(
            served.kind, f"couldn't get version/kind; {error} ({_summary(request.body)})"
        ) from error
    if served.custom and not (isinstance(body, dict) and body.get("kind")):
        shown = request.body.decode(errors="replace")
        why = f"Object 'Kind' is missing in '{shown}' ({_summary(request.body)})"
        raise _unrecognized(served.kind, why)
    if body is None:
        body = {}
    for field in ("kind", "apiVersion"):
        if isinstance(body, dict) and not isinstance(body.get(field, ""), str):
            raise _unrecognized(served.kind, _no_identity(body[field], field, request.body))
    if not isinstance(body, dict):
        raise _unrecognized(served.kind, _no_identity(body, "", request.body))
    check_kind(served, body)
    return body


def parsed_as(kind: str, body: bytes, media: str) -> Json:
    """The body of a request that is sent and not stored.

    Raises:
        ApiError: 400, 415.
    """
    try:
        found = parsed(body, media)
    except Unparsable as error:
        why = f"couldn't get version/kind; {error} ({_summary(body)})"
        raise _unrecognized(kind, why) from error
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise _unrecognized(kind, _no_identity(found, "", body))
    return found


def _unrecognized(kind: str, why: str) -> ApiError:
    return bad_request(f"the object provided is unrecognized (must be of type {kind}): {why}")


def _no_identity(value: Any, field: str, body: bytes) -> str:
    what = json_name(value)
    where = f"Go struct field .{field} of type string" if field else f"Go value of type {_IDENTITY}"
    return (
        f"couldn't get version/kind; json parse error: json: cannot unmarshal {what} into "
        f"{where} ({_summary(body)})"
    )


def _summary(body: bytes) -> str:
    """The beginning of a body: as it is where it is JSON of an object, else in hexadecimal."""
    if not body:
        return "<empty>"
    more = " ..." if len(body) > _SUMMARY else ""
    part = body[:_SUMMARY]
    return (part.decode(errors="replace") if body[:1] == b"{" else part.hex()) + more


def check_kind(served: Served, body: Json) -> None:
    """Raises:
    ApiError: 400 where the body says that it is something else.
    """
    kind = body.get("kind") or served.kind
    version = body.get("apiVersion") or served.api_version
    if kind != served.kind:
        raise bad_request(_other_kind(served, str(kind), str(version)))
    if version != served.api_version:
        if version not in _KNOWN_VERSIONS and not served.custom:
            raise bad_request(_other_kind(served, str(kind), str(version)))
        raise bad_request(
            f"the API version in the data ({version}) does not match the expected API version "
            f"({served.api_version})"
        )
    body["kind"], body["apiVersion"] = kind, version


def _other_kind(served: Served, kind: str, version: str) -> str:
    short = version.rpartition("/")[2]
    head = f'{kind} in version "{short}" cannot be handled as a {served.kind}: '
    if served.custom:
        return f"the object provided is unrecognized (must be of type {served.kind}): {kind}"
    if kind not in _KNOWN_KINDS or kind == served.kind:
        return f"{head}{unregistered(served, kind, version)}"
    group = served.group.partition(".")[0] or "core"
    return f"{head}converting ({short}.{kind}) to ({group}.{served.kind}): unknown conversion"


def unregistered(served: Served, kind: str, version: str) -> str:
    """What the server says of a kind that it does not know."""
    if served.group == "apiextensions.k8s.io":
        scheme = "k8s.io/apiextensions-apiserver/pkg/apiserver/apiserver.go:55"
    else:
        scheme = "pkg/api/legacyscheme/scheme.go:30"
    return f'no kind "{kind}" is registered for version "{version}" in scheme "{scheme}"'


def decoded(served: Served, body: Json) -> tuple[Json, list[str]]:
    """The object of a body, and the paths of fields that were dropped.

    Raises:
        ApiError: 400 for values of a wrong type.
    """
    decoder = Decoder()
    try:
        found = decoder.object(served.struct, body)
        # Of a custom resource the metadata is read before the rest.
        return found, sorted(decoder.unknown, key=_after_metadata if served.custom else _as_it_is)
    except Undecodable as error:
        short = served.version
        raise bad_request(
            f'{served.kind} in version "{short}" cannot be handled as a {served.kind}: {error}'
        ) from error


def _after_metadata(path: str) -> bool:
    return not path.startswith("metadata.")


def _as_it_is(path: str) -> bool:
    return True


def decoded_as(kind: str, body: Json) -> Json:
    """A body of a kind that is sent and not stored (`Binding`, `DeleteOptions`).

    Raises:
        ApiError: 400 for values of a wrong type.
    """
    try:
        return Decoder(fill=False).object(struct(kind), body)
    except Undecodable as error:
        raise bad_request(
            f'{kind} in version "v1" cannot be handled as a {kind}: {error}'
        ) from error


def refuse_unknown(
    served: Served, unknown: Sequence[str], validation: str, twice: Sequence[str] = ()
) -> list[str]:
    """What to warn of. `twice`: fields that are said more than once.

    Raises:
        ApiError: 400, the client asked to be strict.
    """
    if not (unknown or twice) or validation == "Ignore":
        return []
    told = [f'duplicate field "{path}"' for path in twice]
    told += [f'unknown field "{path}"' for path in unknown]
    if validation == "Warn":
        return told
    raise ApiError(
        400,
        "BadRequest",
        f'{served.kind} in version "{served.version}" cannot be handled as a {served.kind}: '
        f"strict decoding error: {', '.join(told)}",
    )
