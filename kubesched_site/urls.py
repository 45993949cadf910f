"""URLs of the project; the product's pages and its API are in dashboard.urls."""

from django.contrib import admin
from django.contrib.auth import views as auth
from django.urls import include, path, re_path

from dashboard.demo_login import demo_login
from dashboard.health.views import probe, slis
from dashboard.metrics import views as metrics

urlpatterns = [
    re_path(r"^(?P<name>livez|readyz|healthz)(?:/(?P<check>[a-z-]+))?\Z", probe, name="probe"),
    path("metrics", metrics.metrics, name="metrics"),
    path("metrics/slis", slis, name="slis"),
    path("metrics/resources", metrics.resource_metrics, name="resource-metrics"),
    re_path(r"^metrics/runs/(?P<pk>[0-9]{1,18})\Z", metrics.run_metrics, name="run-metrics"),
    path("configz", metrics.configz, name="configz"),
    re_path(r"^configz/runs/(?P<pk>[0-9]{1,18})\Z", metrics.run_configz, name="run-configz"),
    path("login/", auth.LoginView.as_view(redirect_authenticated_user=True), name="login"),
    path("logout/", auth.LogoutView.as_view(), name="logout"),
    path("demo-login/<str:token>/", demo_login, name="demo-login"),
    path("admin/", admin.site.urls),
    path("", include("dashboard.rest.urls")),
    path("", include("dashboard.webhooks.urls")),
    path("", include("dashboard.clusters.urls")),
    path("", include("dashboard.urls")),
]

handler400 = "kubesched_site.errors.bad_request"
handler403 = "kubesched_site.errors.permission_denied"
handler404 = "kubesched_site.errors.page_not_found"
handler500 = "kubesched_site.errors.server_error"
