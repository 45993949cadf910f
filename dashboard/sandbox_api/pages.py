"""The page that says how kubectl finds a sandbox, and its two buttons."""

from __future__ import annotations

import os
from urllib.parse import urlsplit

from django.contrib import messages
from django.contrib.auth.decorators import login_required, permission_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from dashboard import leases
from dashboard.models import Cluster, Lease, SchedulerRun
from dashboard.sandbox_api import access
from dashboard.sandbox_api.models import SandboxAccess
from dashboard.views import get_run, run_page

__all__ = ["download_kubeconfig", "kubernetes", "make_token"]

#: who may start sandboxes may do everything in one
_PERMISSION = "dashboard.add_cluster"
_FILE_NAME = "kubeconfig.yaml"


@login_required
@require_safe
def kubernetes(request: HttpRequest, run_id: int) -> HttpResponse:
    """Address, kubeconfig and first commands."""
    run = _sandbox_run(run_id)
    row = SandboxAccess.objects.filter(pk=run.cluster_id).first()
    return run_page(
        request,
        run_id,
        "kubernetes",
        access=row,
        pod=_pod(run) if row is not None and row.url else "",
        port=urlsplit(row.url).port if row is not None else None,
        may_download=request.user.has_perm(_PERMISSION),
        file_name=_FILE_NAME,
    )


@login_required
@permission_required(_PERMISSION, raise_exception=True)
@require_POST
@never_cache
def download_kubeconfig(request: HttpRequest, run_id: int) -> HttpResponse:
    """The file; the audit says who took it."""
    run = _sandbox_run(run_id)
    try:
        text = access.download(request.user, run)
    except access.NotServed as refusal:
        messages.error(request, str(refusal))
        return redirect("kubernetes", run_id=run.pk)
    answer = HttpResponse(text, content_type="application/yaml")
    answer["Content-Disposition"] = f'attachment; filename="{_FILE_NAME}"'
    return answer


@login_required
@permission_required(_PERMISSION, raise_exception=True)
@require_POST
def make_token(request: HttpRequest, run_id: int) -> HttpResponse:
    """A new token: kubeconfigs that were downloaded before open nothing more."""
    run = _sandbox_run(run_id)
    access.new_token(request.user, run)
    messages.success(request, "There is a new token. Download the kubeconfig again.")
    return redirect("kubernetes", run_id=run.pk)


def _sandbox_run(run_id: int) -> SchedulerRun:
    run = get_run(run_id)
    if run.cluster.kind != Cluster.Kind.SANDBOX:
        raise Http404("Only sandboxes are served here.")
    return run


def _pod(run: SchedulerRun) -> str:
    """Which pod serves the sandbox, where this is a Kubernetes cluster; or ""."""
    if "KUBERNETES_SERVICE_HOST" not in os.environ:
        return ""
    lease = Lease.objects.filter(name=leases.sandbox_lease(run.cluster_id)).first()
    return "" if lease is None else lease.holder.partition(":")[0]
