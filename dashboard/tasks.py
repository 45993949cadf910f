"""Celery tasks: argument parsers. The work is in ``runner``, ``sandbox_host`` and services.

The two that live on import their module when they begin: beat and the default worker, which load
this module too, then start without the whole scheduler.
"""

from __future__ import annotations

import logging
from typing import Any

from celery import Task, shared_task
from celery.signals import worker_ready, worker_shutdown, worker_shutting_down
from django.conf import settings

from dashboard import loops, retention
from dashboard.health import heartbeat
from dashboard.publisher import get_publisher
from dashboard.rest import answers, throttle
from dashboard.shutdown import shutting_down
from dashboard.webhooks import outbox

logger = logging.getLogger(__name__)


@shared_task(bind=True, name="dashboard.tasks.host_sandbox")
def host_sandbox(self: Task, cluster_id: int) -> None:
    """Own a sandbox until it is not wanted, or this worker stops."""
    from dashboard import sandbox_host

    sandbox_host.host(
        cluster_id,
        worker=str(self.request.hostname or ""),
        stop=shutting_down,
        on_ready=propose_loops,
    )


@shared_task(bind=True, name="dashboard.tasks.run_scheduler")
def run_scheduler(self: Task, run_id: int) -> None:
    """Carry a run until it is not wanted, or this worker stops."""
    from dashboard import runner

    runner.run(run_id, worker=str(self.request.hostname or ""), stop=shutting_down)


@shared_task(name="dashboard.tasks.ensure_loops")
def ensure_loops() -> int:
    """Propose every sandbox and run that is wanted and not carried."""
    heartbeat.heard()
    return propose_loops()


@shared_task(name="dashboard.tasks.prune")
def prune() -> None:
    """Delete what need not be kept, in small batches."""
    retention.prune()
    answers.prune()
    throttle.prune()
    outbox.prune()


@shared_task(name="dashboard.tasks.deliver_webhooks")
def deliver_webhooks() -> int:
    """Have every webhook endpoint served that has something due."""
    from dashboard.webhooks.delivery import Deliverer

    claimed = Deliverer().claim()
    for endpoint_id in claimed:
        serve_webhook.apply_async(args=(endpoint_id,))
    return len(claimed)


@shared_task(name="dashboard.tasks.serve_webhook")
def serve_webhook(endpoint_id: int) -> None:
    """Send what is due to one webhook endpoint that was claimed."""
    from dashboard.webhooks.delivery import Deliverer

    Deliverer().serve(endpoint_id)


def propose_loops() -> int:
    """As the task, on this thread."""
    return loops.ensure(_send)


def _send(task: str, argument: int, queue: str) -> None:
    options: dict[str, Any] = {"expires": loops.PROPOSAL_SECONDS}
    if queue:
        options["queue"] = queue
    tasks: dict[str, Task] = {"host_sandbox": host_sandbox, "run_scheduler": run_scheduler}
    tasks[task].apply_async(args=(argument,), **options)


@worker_shutting_down.connect
def _stop_loops(**_: Any) -> None:
    shutting_down.set()


@worker_shutdown.connect
def _send_last_frames(**_: Any) -> None:
    get_publisher().close()


@worker_ready.connect
def _serve(sender: Any = None, **_: Any) -> None:
    """Metrics, probes and calls as an extender, of the worker that carries runs; probes alone of
    the one that does beat's tasks."""
    queues = set() if sender is None else set(sender.app.amqp.queues.consume_from)
    carries = bool(queues & {"loop", "sandbox"})
    listen = settings.KUBESCHED_DEFAULT_LISTEN if "default" in queues else None
    if not carries and listen is None:
        return
    from dashboard.worker_http import lifecycle

    try:
        if carries:
            lifecycle.start(at_address="loop" in queues)
        elif listen is not None:
            lifecycle.start_probes(listen)
    except lifecycle.CannotServe as error:
        logger.error("%s", error)


@worker_shutdown.connect
def _stop_serving(**_: Any) -> None:
    from dashboard.worker_http import lifecycle

    lifecycle.stop()


@worker_ready.connect
def _start_loops(**_: Any) -> None:
    ensure_loops.apply_async(expires=loops.PROPOSAL_SECONDS)
