"""A worker in a thread: the real loop on a real sandbox, with a configuration that can change."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from django.contrib.auth.models import User
from django.db import connection

from dashboard import configuration, runner
from dashboard.models import SchedulerRun, SchedulingCycle
from scheduler_core.cluster.sandbox import SandboxCluster
from scheduler_core.testing.builders import make_pod

PATIENCE = 30.0
HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def only_on(node: str, approvals: bool = True, timeout: int = 900) -> str:
    """A configuration that lets pods on one node alone."""
    plugins = "plugins: {multiPoint: {enabled: [{name: ManualApproval}]}}" if approvals else ""
    arguments = (
        f"      - name: ManualApproval\n        args: {{timeoutSeconds: {timeout}}}\n"
        if approvals
        else ""
    )
    return f"""{HEAD}profiles:
  - schedulerName: default-scheduler
    {plugins}
    pluginConfig:
{arguments}      - name: NodeAffinity
        args:
          addedAffinity:
            requiredDuringSchedulingIgnoredDuringExecution:
              nodeSelectorTerms:
                - matchExpressions:
                    - {{key: kubernetes.io/hostname, operator: In, values: [{node}]}}
"""


class Worker:
    """Carries one run, as a worker process does."""

    def __init__(self, run: SchedulerRun, cluster: SandboxCluster) -> None:
        self.run = run
        self.cluster = cluster
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._carry)

    def _carry(self) -> None:
        try:
            runner.run(self.run.pk, worker="test", stop=self._stop)
        finally:
            connection.close()

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join(PATIENCE)
            assert not self._thread.is_alive()

    # --- what it does -----------------------------------------------------------------------

    def place(self, name: str, **labels: str) -> str:
        """Create a pod and wait for its node."""
        self.cluster.create("Pod", make_pod(name).label(labels).req(cpu="1").raw())
        return str(until(lambda: self.node_of(name), f"{name} is bound"))

    def node_of(self, name: str) -> str:
        return str(self.cluster.get("Pod", "default", name)["spec"].get("nodeName", ""))

    def change(self, text: str, user: User | None = None) -> SchedulerRun:
        """As the page does it."""
        self.run.refresh_from_db()
        return configuration.change(
            self.run.pk, text=text, comment="", version=self.run.config_version, user=user
        )

    def force(self, text: str) -> None:
        """A text that another version of the code has found good."""
        self.run.refresh_from_db()
        SchedulerRun.objects.filter(pk=self.run.pk).update(
            config=text, config_version=self.run.config_version + 1, config_error=""
        )

    def wait_for(self, **columns: Any) -> SchedulerRun:
        found = SchedulerRun.objects.filter(pk=self.run.pk, **columns)
        return until(lambda: found.first(), f"run with {columns}")  # type: ignore[return-value]

    def sequences(self) -> list[int]:
        rows = SchedulingCycle.objects.filter(run=self.run).order_by("sequence")
        return list(rows.values_list("sequence", flat=True))


def until(ask: Callable[[], Any], what: str) -> Any:
    deadline = time.monotonic() + PATIENCE
    while True:
        answer = ask()
        if answer:
            return answer
        assert time.monotonic() < deadline, f"not within {PATIENCE:g} s: {what}"
        time.sleep(0.02)
