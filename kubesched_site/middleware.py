"""Every page needs a login unless its view says otherwise."""

from collections.abc import Callable
from typing import Any

from django.contrib.auth import middleware
from django.http import HttpRequest, HttpResponseBase

from kubesched_site.errors import api_error, is_api


class LoginRequiredMiddleware(middleware.LoginRequiredMiddleware):
    """Django's, but a script that calls the API gets 401 as JSON in place of a login page."""

    def handle_no_permission(  # type: ignore[override]  # JSON is not a redirect
        self, request: HttpRequest, view_func: Callable[..., Any]
    ) -> HttpResponseBase:
        if is_api(request):
            return api_error(request, 401, "Log in first.")
        return super().handle_no_permission(request, view_func)
