"""The REST API as Django sees it: its URLs, its OpenAPI schema, and every error as a problem."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import RequestDataTooBig
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.urls import URLPattern, path
from django.utils.cache import add_never_cache_headers
from django.views.decorators.csrf import csrf_exempt
from ninja import NinjaAPI
from ninja.errors import AuthenticationError, HttpError, ValidationError

from dashboard.models import SchedulerRun
from dashboard.rest.auth import not_authenticated
from dashboard.rest.problems import MEDIA_TYPE, Problem, respond
from dashboard.rest.routes import router

PREFIX: Final = "/api/v1/"
_DESCRIPTION: Final = """\
What waits at Permit, and approving and denying it, for chat bots and pipelines.

Send an API token as `Authorization: Bearer kst_...`. Errors are problem details (RFC 9457)."""
_UNKNOWN: Final = "There is no such call; GET /api/schema/ lists them."

api = NinjaAPI(
    title="KubeSched",
    version="1",
    description=_DESCRIPTION,
    urls_namespace="rest",
    openapi_url=None,
    docs_url=None,
)
api.add_router("", router)


@api.exception_handler(Problem)
def _problem(request: HttpRequest, error: Any) -> HttpResponse:
    return respond(error)


@api.exception_handler(AuthenticationError)
def _not_authenticated(request: HttpRequest, error: Any) -> HttpResponse:
    return respond(not_authenticated())


@api.exception_handler(ValidationError)
def _invalid(request: HttpRequest, error: Any) -> HttpResponse:
    errors = [
        {"field": _field([str(part) for part in item["loc"]]), "message": item["msg"]}
        for item in error.errors
    ]
    text = " ".join(f"{item['field']}: {item['message']}." for item in errors)
    return respond(Problem(422, "invalid", text, errors=errors))


def _field(place: list[str]) -> str:
    """The name that the caller wrote; `body` where the body as a whole is meant."""
    source, *names = place
    if source == "body" and names[:1] == ["body"]:
        names = names[1:]  # what the argument of our function is called
    return ".".join(names) or source


@api.exception_handler(HttpError)
def _http_error(request: HttpRequest, error: Any) -> HttpResponse:
    return respond(Problem(error.status_code, "bad_request", f"{error}."))


@api.exception_handler(RequestDataTooBig)
def _too_big(request: HttpRequest, error: Any) -> HttpResponse:
    return respond(Problem(413, "too_large", "The body is too large."))


@api.exception_handler(SchedulerRun.DoesNotExist)
def _no_run(request: HttpRequest, error: Any) -> HttpResponse:
    return respond(Problem(404, "unknown", "There is no such run."))


@api.exception_handler(Http404)
def _not_found(request: HttpRequest, error: Any) -> HttpResponse:
    return respond(Problem(404, "unknown", str(error) or _UNKNOWN))


@login_not_required
def schema(request: HttpRequest) -> HttpResponse:
    """The OpenAPI document. It is the same for everyone, so it needs no login."""
    if request.method not in {"GET", "HEAD"}:
        return _not_allowed("GET, HEAD")
    return JsonResponse(openapi(), json_dumps_params={"indent": 1})


@functools.cache
def openapi() -> dict[str, Any]:
    """The OpenAPI 3.1 document; errors have their own media type there too."""
    found: dict[str, Any] = api.get_openapi_schema(path_prefix=PREFIX)
    for calls in found["paths"].values():
        for call in calls.values():
            for status, answer in call["responses"].items():
                if int(status) >= 400 and "application/json" in answer.get("content", {}):
                    answer["content"][MEDIA_TYPE] = answer["content"].pop("application/json")
            for parameter in call.get("parameters", ()):
                parameter["schema"] = _without_null(parameter["schema"])
    return found


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """A parameter that may be left out; no URL and no header can say null."""
    choices = [item for item in schema.get("anyOf", ()) if item != {"type": "null"}]
    if len(choices) != 1:
        return {**schema, **({"anyOf": choices} if choices else {})}
    return {**{k: v for k, v in schema.items() if k != "anyOf"}, **choices[0]}


@csrf_exempt
@login_not_required
def unknown(request: HttpRequest, rest: str) -> HttpResponse:
    """Every other path below /api/v1/."""
    return respond(Problem(404, "unknown", _UNKNOWN))


def urls() -> list[URLPattern]:
    """Everything below /api/v1/. Tokens are checked by each call, so no view asks for a session."""
    found = [entry for entry in api.urls[0] if isinstance(entry, URLPattern)]
    calls = [pattern for pattern in found if pattern.name != "api-root"]
    for pattern in calls:
        assert pattern.callback is not None
        pattern.callback = login_not_required(_tidy(pattern.callback))
    return [*calls, path("<path:rest>", unknown), path("", unknown, {"rest": ""})]


def _tidy(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """A wrong method is a problem too, and no answer is kept by a cache."""

    @functools.wraps(view)
    def wrapper(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        response = view(request, *args, **kwargs)
        if response.status_code == 405:
            response = _not_allowed(response["Allow"])
        add_never_cache_headers(response)
        return response

    return wrapper


def _not_allowed(allowed: str) -> HttpResponse:
    text = f"Use {allowed} here."
    return respond(Problem(405, "method_not_allowed", text, headers={"Allow": allowed}))
