"""The pages of real clusters: adding one, and one with its runs and how it is reached."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required, permission_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from dashboard.clusters import removal, services
from dashboard.clusters.forms import METHODS, ClusterForm, ConnectionForm, RemovalForm, RunForm
from dashboard.clusters.models import ClusterConnection
from dashboard.models import SchedulerRun

#: What a run is to people.
_WORDS: dict[str, str] = {
    SchedulerRun.Mode.OBSERVE: "observer",
    SchedulerRun.Mode.SCHEDULE: "scheduler",
}
_Mode = SchedulerRun.Mode
_may_manage = permission_required(services.PERMISSION, raise_exception=True)
_secrets = sensitive_post_parameters("kubeconfig", "token", "ca")


@_secrets
@never_cache
@login_required
@_may_manage
@require_http_methods(["GET", "HEAD", "POST"])
def new(request: HttpRequest) -> HttpResponse:
    """Add a cluster. It is looked at before it is kept."""
    form = ClusterForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            found = form.cleaned_data
            mode = found["mode"] or SchedulerRun.Mode.SCHEDULE
            run = services.add(request.user, found["name"], form.access(), mode=mode)
        except services.NameTaken as error:
            form.add_error("name", str(error))
        except services.CannotConnect as error:
            form.add_error(None, str(error))
        else:
            word = _WORDS[mode]
            messages.success(request, f"{run.cluster.name} is there. Start its {word} when ready.")
            return redirect("cluster", run.cluster_id)
    context = {"page": "clusters", "form": form, "methods": METHODS}
    return render(request, "clusters/new.html", context, status=400 if form.errors else 200)


@_secrets
@never_cache
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def cluster(request: HttpRequest, pk: int) -> HttpResponse:
    """One cluster: how it is reached, its runs, and the form of another way to it."""
    rows = ClusterConnection.objects.select_related("cluster", "changed_by")
    connection = get_object_or_404(rows, pk=pk)
    if request.method == "POST":
        return _change(request, connection)
    return _shown(request, connection)


@_may_manage
def _change(request: HttpRequest, connection: ClusterConnection) -> HttpResponse:
    form = ConnectionForm(request.POST)
    if not form.is_valid():
        return _shown(request, connection, form)
    try:
        services.change(request.user, connection, form.access())
    except services.CannotConnect as error:
        form.add_error(None, str(error))
        return _shown(request, connection, form)
    messages.success(request, "Changed; a scheduler takes it up when it is started the next time.")
    return redirect("cluster", connection.pk)


@login_required
@_may_manage
@require_POST
def look(request: HttpRequest, pk: int) -> HttpResponse:
    """Whether the cluster can be reached now."""
    connection = get_object_or_404(ClusterConnection, pk=pk)
    if services.look(connection):
        messages.error(request, "It cannot be used now.")
    else:
        messages.success(request, "It answers.")
    return redirect("cluster", pk)


@login_required
@permission_required(services.RUN_PERMISSION, raise_exception=True)
@require_POST
def add_run(request: HttpRequest, pk: int) -> HttpResponse:
    """One more run, which waits to be started."""
    connection = get_object_or_404(ClusterConnection.objects.select_related("cluster"), pk=pk)
    form = RunForm(request.POST)
    if form.is_valid():
        found = form.cleaned_data
        try:
            run = services.add_run(request.user, connection.cluster, found["mode"], found["name"])
        except services.NameTaken as error:
            form.add_error("name", str(error))
        else:
            messages.success(request, f"{run.name} is there. Start it when ready.")
            return redirect("observe" if found["mode"] == _Mode.OBSERVE else "overview", run.pk)
    return _shown(request, connection, run_form=form)


@login_required
@_may_manage
@require_POST
def remove(request: HttpRequest, pk: int) -> HttpResponse:
    """Forget the cluster, its runs and their records. Its name has to be typed."""
    connection = get_object_or_404(ClusterConnection.objects.select_related("cluster"), pk=pk)
    name = connection.cluster.name
    form = RemovalForm(request.POST, cluster=name)
    if form.is_valid():
        try:
            removal.remove(request.user, connection)
        except removal.StillUsed as error:
            form.add_error(None, str(error))
        else:
            messages.success(request, f"{name} is removed.")
            return redirect("home")
    return _shown(request, connection, removal_form=form)


def _shown(
    request: HttpRequest,
    connection: ClusterConnection,
    form: ConnectionForm | None = None,
    run_form: RunForm | None = None,
    removal_form: RemovalForm | None = None,
) -> HttpResponse:
    faulty = any(given is not None and given.errors for given in (form, run_form, removal_form))
    cluster = connection.cluster
    runs = list(cluster.runs.defer("config", "applied_config").order_by("-pk"))
    context: dict[str, Any] = {
        "page": "clusters",
        "connection": connection,
        "cluster": cluster,
        "runs": runs,
        "form": form or ConnectionForm(initial={"method": connection.method}),
        "run_form": run_form or RunForm(),
        "removal_form": removal_form or RemovalForm(cluster=cluster.name),
        "removal_refusal": removal.why_not(runs),
        "methods": METHODS,
        "may_look": services.may_look(connection),
        "may_manage": request.user.has_perm(services.PERMISSION),
        "may_run": request.user.has_perm(services.RUN_PERMISSION),
    }
    return render(request, "clusters/detail.html", context, status=400 if faulty else 200)
