"""Who am I, and may I: questions that are answered and not stored.

A sandbox has one user, who may do everything that is served.
"""

from __future__ import annotations

from typing import Any, Final

from scheduler_core.ports import Json

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
    try:
        body: Any = bodies.parsed(request.body, media_type(request.headers.get("content-type", "")))
    except bodies.Unparsable as error:
        raise bad_request(str(error)) from error
    api_version = f"{group}/{version}"
    if not isinstance(body, dict) or body.get("kind", kind) != kind:
        raise bad_request(f"the object provided is unrecognized (must be of type {kind})")
    try:
        review = Decoder().object(of, {**body, "kind": kind, "apiVersion": api_version})
    except Undecodable as error:
        raise bad_request(f'{kind} in version "{version}" cannot be handled: {error}') from error
    empty = {"metadata": {}, **schema.zero(of)}
    author = Author(options.manager, api_version)
    entries = recorded(of, empty, review, author, timestamp(now), ())
    if entries:
        review["metadata"]["managedFields"] = entries
    review["status"] = _status(kind, request)
    return review


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
