"""Kubernetes Status objects as exceptions of the port."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import orjson

from scheduler_core.ports import AlreadyExists, ApiError, Conflict, Gone, Json, NotFound

from .transport import Answer

__all__ = ["LostAnswer", "decode", "error_of", "error_of_status"]

#: reasons of codes whose answer says none (kube-apiserver 1.36, ``NewGenericServerResponse``)
_REASONS: Final[Mapping[int, str]] = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    406: "NotAcceptable",
    409: "Conflict",
    410: "Gone",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}
_LONGEST_TEXT: Final = 300


class LostAnswer(ApiError):
    """No answer came.

    Attributes:
        sent: the request may have been carried out all the same.
    """

    def __init__(self, message: str, *, sent: bool, timed_out: bool = False) -> None:
        code, reason = (504, "Timeout") if timed_out else (503, "ServiceUnavailable")
        super().__init__(code, reason, message)
        self.sent = sent


def decode(body: bytes) -> Json:
    """Raises:
    ApiError: 502, what came is no JSON object.
    """
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError as fault:
        raise ApiError(502, "BadGateway", f"the answer is not JSON: {fault}") from None
    if not isinstance(found, dict):
        raise ApiError(502, "BadGateway", "the answer is not a JSON object")
    return found


def error_of(answer: Answer) -> ApiError:
    """The refusal in an answer; its text where it is no Status, as proxies give."""
    try:
        body = orjson.loads(answer.body)
    except orjson.JSONDecodeError:
        body = None
    if not isinstance(body, dict) or body.get("kind") != "Status":
        text = answer.body[:_LONGEST_TEXT].decode(errors="replace").strip()
        body = {"message": text or f"the server answered {answer.status}"}
    error = error_of_status({**body, "code": body.get("code") or answer.status})
    if answer.retry_after is not None:
        error.retry_after = math.ceil(answer.retry_after)
    return error


def error_of_status(status: Json) -> ApiError:
    """A Status as the exception that names it."""
    code = status.get("code")
    code = code if isinstance(code, int) else 500
    reason = str(status.get("reason") or _REASONS.get(code, "Unknown"))
    details = status.get("details")
    causes = details.get("causes") if isinstance(details, dict) else None
    pairs = [_cause(cause) for cause in causes or () if isinstance(cause, dict)]
    # The subclasses build their message of parts; here it is whole.
    cls = _class_of(code, reason)
    error = cls.__new__(cls)
    ApiError.__init__(error, code, reason, str(status.get("message") or reason), pairs)
    return error


def _cause(cause: Mapping[str, Any]) -> tuple[str, str]:
    return str(cause.get("field") or ""), str(cause.get("message") or "")


def _class_of(code: int, reason: str) -> type[ApiError]:
    if code == 404:
        return NotFound
    if code == 410:
        return Gone
    if code == 409:
        return AlreadyExists if reason == "AlreadyExists" else Conflict
    return ApiError
