"""What people do: have a cluster observed, and later have pods placed in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.db import transaction

from dashboard import audit, runs
from dashboard.models import AuditEntry, Cluster, SchedulerRun

__all__ = ["RunExists", "add_run", "default_config"]

_Mode = SchedulerRun.Mode
#: The configuration of a new run, by what it does.
CONFIGS: Final = {_Mode.OBSERVE: "examples/observe.yaml", _Mode.SCHEDULE: "examples/kube.yaml"}
_NAME_MAX: Final = 63


class RunExists(Exception):
    """The cluster has such a run; ``run`` is it."""

    def __init__(self, run: SchedulerRun) -> None:
        super().__init__(f'The cluster has such a run already: "{run.name}".')
        self.run = run


def add_run(user: Any, cluster: Cluster, mode: str) -> SchedulerRun:
    """A run that observes, which begins at once, or one that schedules, which waits to be started;
    with its audit row.

    Raises:
        RunExists: a cluster has one of each at most, made this way.
    """
    with transaction.atomic():
        Cluster.objects.select_for_update().get(pk=cluster.pk)
        known = SchedulerRun.objects.filter(cluster=cluster, mode=mode).order_by("-pk").first()
        if known is not None:
            raise RunExists(known)
        observes = mode == _Mode.OBSERVE
        suffix = "-observer" if observes else "-scheduler"
        states = SchedulerRun.DesiredState
        run = runs.create_run(
            cluster,
            name=f"{cluster.name[: _NAME_MAX - len(suffix)]}{suffix}",
            config=default_config(mode),
            desired_state=states.RUNNING if observes else states.STOPPED,
            mode=mode,
        )
        audit.write(user, AuditEntry.Verb.CREATE_RUN, str(run), run=run, detail={"mode": str(mode)})
    return run


def default_config(mode: str) -> str:
    """The KubeSchedulerConfiguration that a new run of a real cluster begins with."""
    path = Path(settings.BASE_DIR) / CONFIGS[_Mode(mode)]
    return path.read_text(encoding="utf-8")
