"""A sign of life for load balancers and for the supervisor."""

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache


@login_not_required
@never_cache
def healthz(request: HttpRequest) -> HttpResponse:
    """Answer `ok` from the web process; it says nothing about the workers."""
    return HttpResponse("ok\n", content_type="text/plain")
