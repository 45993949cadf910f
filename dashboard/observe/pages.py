"""The pages of observing: agreement and pods, one pod taken apart, and how to begin."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required, permission_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_POST, require_safe

from dashboard.models import Cluster, SchedulerRun
from dashboard.observe import selectors, services
from dashboard.observe.models import ObservedPod
from dashboard.views import MAX_INT, get_run, run_page

__all__ = ["add_run", "observe", "observed"]

_Mode = SchedulerRun.Mode


@login_required
@require_safe
def observe(request: HttpRequest, run_id: int) -> HttpResponse:
    """The agreement, live. Of a run that schedules: how its cluster is observed."""
    run = get_run(run_id)
    others = run.cluster.runs.exclude(pk=run.pk).order_by("-pk")
    return run_page(
        request,
        run_id,
        "observe",
        verdicts=ObservedPod.Verdict.choices,
        chosen_verdict=request.GET.get("verdict", ""),
        namespace=request.GET.get("namespace", ""),
        observer=others.filter(mode=_Mode.OBSERVE).first(),
        scheduling=others.filter(mode=_Mode.SCHEDULE).first(),
        is_real=run.cluster.kind == Cluster.Kind.KUBE,
    )


@login_required
@require_safe
def observed(request: HttpRequest, run_id: int, pk: int) -> HttpResponse:
    """One pod: our decision, theirs, and what each plugin thinks of the two nodes."""
    if pk > MAX_INT:
        raise Http404("There is no such pod.")
    pod = get_object_or_404(ObservedPod, run=get_run(run_id), pk=pk)
    return run_page(
        request,
        run_id,
        "observed",
        pod=pod,
        plugins=selectors.compared(pod),
        gap=_gap(pod),
    )


@login_required
@permission_required("dashboard.control_run", raise_exception=True)
@require_POST
def add_run(request: HttpRequest, run_id: int) -> HttpResponse:
    """Another run on the same cluster: ``mode``."""
    mode = request.POST.get("mode", "")
    if mode not in _Mode.values:
        raise Http404("There is no such kind of run.")
    cluster = get_run(run_id).cluster
    if mode == _Mode.SCHEDULE and cluster.kind != Cluster.Kind.KUBE:
        raise Http404("A sandbox has its scheduler from the beginning.")
    try:
        run = services.add_run(request.user, cluster, mode)
    except services.RunExists as error:
        messages.info(request, str(error))
        run = error.run
    return redirect("observe" if mode == _Mode.OBSERVE else "overview", run.pk)


def _gap(pod: ObservedPod) -> int | None:
    if pod.ours_total is None or pod.actual_total is None or not pod.comparison:
        return None
    return pod.ours_total - pod.actual_total
