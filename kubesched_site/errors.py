"""Error answers: problem details under /api/v1/, JSON under /api/, Django's pages elsewhere."""

from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views import csrf, defaults

from dashboard.rest import problems

API_PREFIX = "/api/"
_CODES = {
    400: "bad_request",
    401: "not_authenticated",
    403: "forbidden",
    404: "unknown",
    500: "server_error",
}


def is_api(request: HttpRequest) -> bool:
    return request.path.startswith(API_PREFIX)


def api_error(request: HttpRequest, status: int, message: str) -> HttpResponse:
    """Return the API error in the form of its path: problem details, or ``{"error": message}``."""
    if problems.wanted(request):
        return problems.respond(problems.Problem(status, _CODES[status], message))
    return JsonResponse({"error": message}, status=status)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    if is_api(request):
        return api_error(request, 400, "The request cannot be understood.")
    return defaults.bad_request(request, exception)


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    if is_api(request):
        return api_error(request, 403, str(exception) or "You are not allowed to do this.")
    return defaults.permission_denied(request, exception)


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    if is_api(request):
        # Http404's own text is kept; the resolver's lists the URL patterns and is not.
        reason = str(exception) if exception.args and isinstance(exception.args[0], str) else ""
        return api_error(request, 404, reason or "Not found.")
    return defaults.page_not_found(request, exception)


def server_error(request: HttpRequest) -> HttpResponse:
    if is_api(request):
        return api_error(request, 500, "The server failed; its log says why.")
    return defaults.server_error(request)


def csrf_failure(request: HttpRequest, reason: str = "", **options: Any) -> HttpResponse:
    if is_api(request):
        return api_error(request, 403, "The CSRF token is missing or stale: reload the page.")
    return csrf.csrf_failure(request, reason=reason, **options)
