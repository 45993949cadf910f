"""URLs of the project; the product's pages and its API are in dashboard.urls."""

from django.contrib import admin
from django.contrib.auth import views as auth
from django.urls import include, path

from dashboard.demo_login import demo_login
from kubesched_site.health import healthz

urlpatterns = [
    path("healthz", healthz, name="healthz"),
    path("login/", auth.LoginView.as_view(redirect_authenticated_user=True), name="login"),
    path("logout/", auth.LogoutView.as_view(), name="logout"),
    path("demo-login/<str:token>/", demo_login, name="demo-login"),
    path("admin/", admin.site.urls),
    path("", include("dashboard.rest.urls")),
    path("", include("dashboard.webhooks.urls")),
    path("", include("dashboard.urls")),
]

handler400 = "kubesched_site.errors.bad_request"
handler403 = "kubesched_site.errors.permission_denied"
handler404 = "kubesched_site.errors.page_not_found"
handler500 = "kubesched_site.errors.server_error"
