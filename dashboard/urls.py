"""Pages and API of the dashboard."""

from django.urls import URLPattern, URLResolver, include, path

from dashboard import api, views
from dashboard.extender_service.pages import extender
from dashboard.observe.pages import add_run, observe, observed
from dashboard.sandbox_api.pages import download_kubeconfig, kubernetes, make_token

RUN = "runs/<int:run_id>/"

pages: list[URLPattern | URLResolver] = [
    path("", views.home, name="home"),
    path("audit/", views.site_audit, name="site-audit"),
    path(RUN, views.overview, name="overview"),
    path(RUN + "queues/", views.queues, name="queues"),
    path(RUN + "heatmap/", views.heatmap, name="heatmap"),
    path(RUN + "cycles/", views.decisions, name="decisions"),
    path(RUN + "cycles/<int:sequence>/", views.decision, name="decision"),
    path(RUN + "waiting/", views.waiting, name="waiting"),
    path(RUN + "configuration/", views.configuration, name="configuration"),
    path(RUN + "observe/", observe, name="observe"),
    path(RUN + "observe/<int:pk>/", observed, name="observed"),
    path(RUN + "observe/add", add_run, name="add-run"),
    path(RUN + "extender/", extender, name="extender"),
    path(RUN + "kubernetes/", kubernetes, name="kubernetes"),
    path(RUN + "kubernetes/kubeconfig", download_kubeconfig, name="download-kubeconfig"),
    path(RUN + "kubernetes/token", make_token, name="make-sandbox-token"),
    path(RUN + "audit/", views.audit, name="audit"),
]

api_calls: list[URLPattern | URLResolver] = [
    *(path(f"{RUN}{topic}", view, name=f"api-{topic}") for topic, view in api.TOPIC_VIEWS.items()),
    path(RUN + "nodes", api.nodes, name="api-nodes"),
    path(RUN + "cycles/latest/matrix", api.latest_matrix, name="api-latest-matrix"),
    path(RUN + "cycles/<int:sequence>", api.cycle, name="api-cycle"),
    path(RUN + "cycles/<int:sequence>/matrix", api.matrix, name="api-matrix"),
    path(RUN + "cycles/<int:sequence>/raw", api.raw_scores, name="api-raw"),
    path(RUN + "waiting/decide", api.decide, name="api-decide"),
    path(RUN + "waiting/gangs", api.gangs, name="api-gangs"),
    path(RUN + "waiting/<int:pk>", api.wait, name="api-wait"),
    path(RUN + "control", api.control, name="api-control"),
    path(RUN + "config", api.config, name="api-config"),
    path("sandboxes", api.create_sandbox, name="api-sandboxes"),
    path("clusters", api.clusters, name="api-clusters"),
    path("<path:rest>", api.unknown, name="api-unknown"),
]

urlpatterns = [path("api/", include(api_calls)), *pages]
