"""The page that says how another kube-scheduler asks a run."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from dashboard.models import SchedulerRun
from dashboard.views import get_run, run_page
from scheduler_core.config import InvalidConfiguration, load_configuration
from scheduler_core.plugins.registry import in_tree_registry

__all__ = ["extender"]


@dataclass(frozen=True, slots=True)
class Paste:
    """What to paste into the configuration of a kube-scheduler, for one profile."""

    profile: str
    text: str


@login_required
@require_safe
def extender(request: HttpRequest, run_id: int) -> HttpResponse:
    """The configuration to paste, one for each profile."""
    run = get_run(run_id)
    base = _base_url(request)
    pastes = [Paste(name, _paste(_address(base, run, name))) for name in _profiles(run)]
    return run_page(
        request,
        run_id,
        "extender",
        pastes=pastes,
        is_served=settings.KUBESCHED_WORKER_LISTEN is not None,
        is_tls=base.startswith("https:"),
        takes_certificates=bool(settings.KUBESCHED_WORKER_CLIENT_CA),
    )


def _address(base: str, run: SchedulerRun, profile: str) -> str:
    return f"{base}/extender/{run.pk}/{quote(profile, safe='')}"


def _profiles(run: SchedulerRun) -> list[str]:
    text = run.applied_config or run.config
    try:
        config = load_configuration(text, in_tree_registry(), dotted_plugins=True)
    except InvalidConfiguration:
        return []
    return [profile.scheduler_name for profile in config.profiles]


def _base_url(request: HttpRequest) -> str:
    """Without a port of its own the address is for the reader to fill in."""
    user = "" if settings.KUBESCHED_WORKER_CLIENT_CA else "kubesched:TOKEN@"
    scheme, _, rest = (settings.KUBESCHED_WORKER_URL or _listening(request)).partition("://")
    return f"{scheme}://{user}{rest}"


def _listening(request: HttpRequest) -> str:
    scheme = "https" if settings.KUBESCHED_WORKER_TLS_CERT else "http"
    listen = settings.KUBESCHED_WORKER_LISTEN
    host, port = listen if listen is not None else ("HOST", 10_259)
    if host in ("0.0.0.0", "::"):  # noqa: S104 - compared, not bound
        host = request.get_host().rpartition(":")[0] or request.get_host()
        host = host.strip("[]")
    shown = f"[{host}]" if ":" in host else host
    return f"{scheme}://{shown}:{port}"


def _paste(url: str) -> str:
    lines = [
        "extenders:",
        f"  - urlPrefix: {url}",
        "    filterVerb: filter",
        "    prioritizeVerb: prioritize",
        "    preemptVerb: preempt",
        "    # bindVerb: bind        # one extender at most; needs the right to bind pods",
        "    weight: 1",
        "    nodeCacheCapable: true  # names of nodes alone: the fastest",
        "    ignorable: true         # pods are scheduled while this one does not answer",
        "    httpTimeout: 5s",
    ]
    if url.startswith("https:"):
        lines += [
            "    enableHTTPS: true",
            "    tlsConfig:",
            "      caFile: /etc/kubernetes/kubesched/ca.crt",
        ]
        if settings.KUBESCHED_WORKER_CLIENT_CA:
            lines += [
                "      certFile: /etc/kubernetes/kubesched/client.crt",
                "      keyFile: /etc/kubernetes/kubesched/client.key",
            ]
    return "\n".join(lines)
