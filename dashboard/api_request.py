"""What every API call has in common: who asks, what came in, and errors as JSON.

An ``ApiError`` raised anywhere below a view becomes ``{"error": message, ...}`` with its status.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from typing import Any, Final

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils.cache import add_never_cache_headers

from dashboard.models import SchedulerRun, SchedulingCycle, WaitingPod

MAX_BODY: Final = 256 * 1024
#: What the databases' 64-bit columns hold.
MAX_INT: Final = 2**63 - 1

View = Callable[..., HttpResponse]


class ApiError(Exception):
    """An answer that is not a success."""

    def __init__(self, status: int, message: str, **extra: Any) -> None:
        super().__init__(message)
        self.status = status
        self.body = {"error": message, **extra}


class InvalidFields(ApiError):
    """400 with messages by field."""

    def __init__(self, errors: dict[str, list[str]]) -> None:
        text = " ".join(f"{field}: {' '.join(words)}" for field, words in errors.items())
        super().__init__(400, text, errors=errors)


def api_view(*methods: str, permission: str = "") -> Callable[[View], View]:
    """A view for these methods, for people who are logged in and have the permission."""

    def decorate(view: View) -> View:
        def answer(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            try:
                _admit(request, methods, permission)
                return view(request, *args, **kwargs)
            except ApiError as error:
                return _error(error, methods)
            except SchedulerRun.DoesNotExist:
                return JsonResponse({"error": "There is no such run."}, status=404)
            except SchedulingCycle.DoesNotExist:
                return JsonResponse({"error": _no_such_cycle()}, status=404)
            except WaitingPod.DoesNotExist:
                return JsonResponse({"error": "There is no such wait in this run."}, status=404)

        @functools.wraps(view)
        def wrapper(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            response = answer(request, *args, **kwargs)
            if not response.has_header("Cache-Control"):
                add_never_cache_headers(response)
            return response

        return wrapper

    return decorate


def require(request: HttpRequest, permission: str) -> None:
    """For calls that need a permission for one method only.

    Raises:
        ApiError: 403, the person does not have it.
    """
    if not request.user.has_perm(permission):
        raise ApiError(403, "You are not allowed to do this.", permission=permission)


def json_body(request: HttpRequest) -> dict[str, Any]:
    """The request's body, a JSON object.

    Raises:
        ApiError: 413 too large, 415 not JSON, 400 malformed or not an object.
    """
    if request.content_type != "application/json":
        raise ApiError(415, "Send JSON with the content type application/json.")
    try:
        raw = request.body
    except RequestDataTooBig:
        raw = b" " * (MAX_BODY + 1)
    if len(raw) > MAX_BODY:
        raise ApiError(413, f"The body is larger than {MAX_BODY // 1024} KiB.")
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise ApiError(400, f"The body is not JSON: {_short(str(error))}") from None
    if not isinstance(value, dict):
        raise ApiError(400, "The body must be a JSON object.")
    if _has_nul(value):
        raise ApiError(400, "Text must not hold NUL characters.")
    return value


def int_param(
    request: HttpRequest,
    name: str,
    default: int | None = None,
    least: int = 0,
    most: int = MAX_INT,
) -> int | None:
    """A whole number of the query string; ``most`` is silently the largest."""
    text = request.GET.get(name, "")
    if not text:
        return default
    if not (text.isascii() and text.isdecimal()) or len(text) > 25 or int(text) < least:
        raise ApiError(400, f'"{name}" must be a whole number, {least} or more.')
    return min(int(text), most)


def choice_param(request: HttpRequest, name: str, choices: tuple[str, ...]) -> str:
    """One of the words, or "" where it is not asked for."""
    text = request.GET.get(name, "")
    if text and text not in choices:
        raise ApiError(400, f'"{name}" must be one of {", ".join(choices)}.')
    return text


def text_param(request: HttpRequest, name: str, most: int = 600) -> str:
    """Free text of the query string."""
    text = request.GET.get(name, "").strip()
    if len(text) > most or "\x00" in text:
        raise ApiError(400, f'"{name}" must be text of at most {most} characters.')
    return text


def _admit(request: HttpRequest, methods: tuple[str, ...], permission: str) -> None:
    if request.method not in methods:
        raise ApiError(405, f"Use {' or '.join(methods)} here.")
    if not request.user.is_authenticated:
        raise ApiError(401, "Log in first.")
    if permission:
        require(request, permission)


def _error(error: ApiError, methods: tuple[str, ...]) -> HttpResponse:
    response = JsonResponse(error.body, status=error.status)
    if error.status == 405:
        response["Allow"] = ", ".join(methods)
    return response


def _has_nul(value: Any) -> bool:
    if isinstance(value, str):
        return "\x00" in value
    if isinstance(value, dict):
        return any(_has_nul(item) for pair in value.items() for item in pair)
    if isinstance(value, list):
        return any(_has_nul(item) for item in value)
    return False


def _short(text: str) -> str:
    return text if len(text) <= 200 else text[:200] + "…"


def _no_such_cycle() -> str:
    kept = f"{settings.KUBESCHED_CYCLES_KEPT:,}"
    return f"There is no such cycle in this run, or it is no longer kept: the latest {kept} are."
