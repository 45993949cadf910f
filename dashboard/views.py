"""The HTML pages: server-rendered shells; what moves in them comes from dashboard.api and frames.

A view looks up the run and says which page it is; it never reads what the worker is writing.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.contrib.auth.decorators import login_required, permission_required
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_safe

from dashboard.models import AuditEntry, RunState, SchedulerRun, SchedulingCycle

# The pages of one run, in the order of the navigation: (URL name, label).
NAVIGATION = (
    ("overview", "Overview"),
    ("queues", "Queues"),
    ("heatmap", "Heatmap"),
    ("decisions", "Decisions"),
    ("waiting", "Waiting"),
    ("configuration", "Configuration"),
    ("observe", "Observe"),
    ("audit", "Audit"),
)
# Of a run that only observes.
OBSERVING = (("observe", "Observe"), ("configuration", "Configuration"), ("audit", "Audit"))
AUDIT_PAGE_SIZE = 50
# What a column of the database can hold.
MAX_INT = 2**63 - 1


@login_required
@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """Every cluster and its runs, and the form that starts a sandbox."""
    context = {"page": "home", "may_add": request.user.has_perm("dashboard.add_cluster")}
    return render(request, "pages/home.html", context)


@login_required
@require_safe
def overview(request: HttpRequest, run_id: int) -> HttpResponse:
    """What a run does at a glance; of one that observes, the agreement."""
    if get_run(run_id).mode == SchedulerRun.Mode.OBSERVE:
        return redirect("observe", run_id)
    return run_page(request, run_id, "overview")


@login_required
@require_safe
def queues(request: HttpRequest, run_id: int) -> HttpResponse:
    return run_page(request, run_id, "queues")


@login_required
@require_safe
def heatmap(request: HttpRequest, run_id: int) -> HttpResponse:
    """Live by default; ``?cycle=SEQ`` shows one cycle."""
    cycle = request.GET.get("cycle", "")
    if cycle and not (cycle.isascii() and cycle.isdecimal()):
        raise Http404("A cycle is named by its sequence number.")
    kept = settings.KUBESCHED_MATRIX_CYCLES
    return run_page(request, run_id, "heatmap", cycle=cycle, matrices_kept=kept)


@login_required
@require_safe
def decisions(request: HttpRequest, run_id: int) -> HttpResponse:
    return run_page(
        request,
        run_id,
        "decisions",
        outcomes=SchedulingCycle.Outcome.choices,
        chosen_outcome=request.GET.get("outcome", ""),
        query=request.GET.get("q", ""),
        latest=request.GET.get("attempts") == "latest",
    )


@login_required
@require_safe
def decision(request: HttpRequest, run_id: int, sequence: int) -> HttpResponse:
    """One cycle; whether it exists is for the API to say, so that a late row can still appear."""
    return run_page(request, run_id, "decision", sequence=sequence)


@login_required
@require_safe
def waiting(request: HttpRequest, run_id: int) -> HttpResponse:
    return run_page(request, run_id, "waiting")


@login_required
@require_safe
def configuration(request: HttpRequest, run_id: int) -> HttpResponse:
    """What the scheduler is configured with, and an editor for those who may change it."""
    return run_page(request, run_id, "configuration")


@login_required
@require_safe
def audit(request: HttpRequest, run_id: int) -> HttpResponse:
    """Who did what to this run, newest first."""
    return run_page(request, run_id, "audit", **_audit_page(request, get_run(run_id).audit.all()))


@permission_required("dashboard.view_auditentry", raise_exception=True)
@require_safe
def site_audit(request: HttpRequest) -> HttpResponse:
    """Who did what on the whole site: users, tokens, webhooks, clusters and runs; newest first."""
    who, what = (request.GET.get(name, "").replace("\0", "").strip() for name in ("who", "what"))
    rows = AuditEntry.objects.select_related("run").defer("run__config")
    if who:
        rows = rows.filter(username=who)
    if what:
        rows = rows.filter(verb=what)
    kept = urlencode({name: value for name, value in (("who", who), ("what", what)) if value})
    context = {
        "page": "site-audit",
        "whole_site": True,
        "who": who,
        "what": what,
        "verbs": AuditEntry.Verb.choices,
        "kept_query": f"{kept}&" if kept else "",
        **_audit_page(request, rows),
    }
    return render(request, "pages/site_audit.html", context)


def _audit_page(request: HttpRequest, rows: QuerySet[AuditEntry]) -> dict[str, Any]:
    entries = Paginator(rows, AUDIT_PAGE_SIZE)
    page = entries.get_page(request.GET.get("page"))
    pages = entries.get_elided_page_range(page.number, on_each_side=2, on_ends=1)
    return {"entries": page, "pages": pages}


def run_page(request: HttpRequest, run_id: int, page: str, **extra: Any) -> HttpResponse:
    """A page of a run: ``pages/PAGE.html`` with what all of them need, and ``extra``."""
    run = get_run(run_id)
    context = {
        "run": run,
        "page": page,
        "navigation": _navigation(run),
        "clock_speed": _clock_speed(run),
        "may_control": request.user.has_perm("dashboard.control_run"),
        "may_decide": request.user.has_perm("dashboard.decide_waitingpod"),
        **extra,
    }
    return render(request, f"pages/{page}.html", context)


def _navigation(run: SchedulerRun) -> tuple[tuple[str, str], ...]:
    if run.mode != SchedulerRun.Mode.OBSERVE:
        return NAVIGATION
    # It has decisions where another scheduler asks it as its extender.
    asked = (("decisions", "Decisions"),) if run.cycles.exists() else ()
    return (*OBSERVING[:1], *asked, *OBSERVING[1:])


def get_run(run_id: int) -> SchedulerRun:
    """Or 404."""
    if run_id > MAX_INT:
        raise Http404("There is no such run.")
    return get_object_or_404(SchedulerRun.objects.select_related("cluster"), pk=run_id)


def _clock_speed(run: SchedulerRun) -> float:
    """Seconds of the scheduler's clock per second of a wall clock; 1 until the worker said it."""
    state = RunState.objects.filter(pk=run.pk).only("clock_speed").first()
    return state.clock_speed if state and state.clock_speed > 0 else 1.0
