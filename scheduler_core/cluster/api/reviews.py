"""Who am I, and may I: questions that are answered and not stored.

A sandbox has one user, who may do everything that is served.
"""

from __future__ import annotations

from typing import Final

from scheduler_core.api.errors import FieldError
from scheduler_core.ports import ApiError, Json

from ..errors import bad_request
from ..objects import timestamp
from . import bodies, schema
from .decode import Decoder, Undecodable
from .managers import Author, recorded
from .messages import Request
from .negotiation import media_type
from .options import write_options
from .schema import struct

__all__ = ["answer_review"]

_GROUPS: Final = ("system:masters", "system:authenticated")


def answer_review(group: str, version: str, kind: str, request: Request, now: float) -> Json:
    """The review with its status.

    Raises:
        ApiError: 400 for a body that is something else, 415.
    """
    of = struct(kind)
    options = write_options(request, "CreateOptions")
    body = bodies.parsed_as(kind, request.body, media_type(request.headers.get("content-type", "")))
    api_version = f"{group}/{version}"
    said, given = body.get("kind") or kind, str(body.get("apiVersion") or version)
    if said != kind:
        short = given.rpartition("/")[2]
        raise bad_request(
            f'{said} in version "{short}" cannot be handled as a {kind}: converting '
            f"({short}.{said}) to ({group.partition('.')[0]}.{kind}): unknown conversion"
        )
    decoder = Decoder()
    try:
        review = decoder.object(of, {**body, "kind": kind, "apiVersion": api_version})
    except Undecodable as error:
        raise bad_request(f'{kind} in version "{version}" cannot be handled: {error}') from error
    if decoder.unknown and options.validation == "Strict":
        told = ", ".join(f'unknown field "{path}"' for path in decoder.unknown)
        raise bad_request(
            f'{kind} in version "{version}" cannot be handled as a {kind}: strict decoding '
            f"error: {told}"
        )
    _judge(group, kind, review.get("spec") or {})
    empty = {"metadata": {}, **schema.zero(of)}
    author = Author(options.manager, api_version)
    entries = recorded(of, empty, review, author, timestamp(now), ())
    if entries:
        review["metadata"]["managedFields"] = entries
    review["status"] = _status(kind, request)
    return review


def _judge(group: str, kind: str, spec: Json) -> None:
    """Raises:
    ApiError: 422 where it is not clear what is asked, or of whom; 400 without a namespace.
    """
    if kind == "SelfSubjectRulesReview" and not spec.get("namespace"):
        raise bad_request("no namespace on request")
    if not kind.endswith("AccessReview"):
        return
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    fault: FieldError | None = None
    if resource is not None and path is not None:
        shown = f'{{"Path":"{path.get("path", "")}","Verb":"{path.get("verb", "")}"}}'
        why = "cannot be specified in combination with resourceAttributes"
        fault = "spec.nonResourceAttributes", f"Invalid value: {shown}: {why}"
    elif resource is None and path is None:
        why = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        fault = "spec.resourceAttributes", f"Invalid value: null: {why}"
    elif not kind.startswith("Self") and not (spec.get("user") or spec.get("groups")):
        why = "at least one of user or group must be specified"
        fault = "spec.user", f'Invalid value: "": {why}'
    if fault is not None:
        message = f'.{group} "" is invalid: {fault[0]}: {fault[1]}'
        raise ApiError(422, "Invalid", message, [fault], about=(f".{group}", ""))


def _status(kind: str, request: Request) -> Json:
    if kind == "SelfSubjectReview":
        return {"userInfo": {"username": request.user, "groups": list(_GROUPS)}}
    if kind == "SelfSubjectRulesReview":
        everything = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
        return {
            "resourceRules": [everything],
            "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
            "incomplete": False,
        }
    return {"allowed": True}
