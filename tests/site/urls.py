"""A site with one view per kind of answer, behind the product's own middleware and handlers."""

from django.contrib.auth import views as auth
from django.core.exceptions import BadRequest, PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import path

from dashboard.demo_login import demo_login
from dashboard.health.views import probe


def page(request: HttpRequest) -> HttpResponse:
    return HttpResponse("the page")


def forbidden(request: HttpRequest) -> HttpResponse:
    raise PermissionDenied("Only an operator may do this.")


def absent(request: HttpRequest) -> HttpResponse:
    raise Http404("There is no run 7.")


def nonsense(request: HttpRequest) -> HttpResponse:
    raise BadRequest("secret details")


def broken(request: HttpRequest) -> HttpResponse:
    raise RuntimeError("secret details")


urlpatterns = [
    path("", page),
    path("healthz", probe, {"name": "healthz"}),
    path("login/", auth.LoginView.as_view(), name="login"),
    path("demo-login/<str:token>/", demo_login, name="demo-login"),
    path("api/page", page),
    path("api/forbidden", forbidden),
    path("forbidden", forbidden),
    path("api/absent", absent),
    path("api/nonsense", nonsense),
    path("api/broken", broken),
]

handler400 = "kubesched_site.errors.bad_request"
handler403 = "kubesched_site.errors.permission_denied"
handler404 = "kubesched_site.errors.page_not_found"
handler500 = "kubesched_site.errors.server_error"
