"""What a worker answers, by path."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from dashboard.health import slis
from dashboard.health.checks import worker_probes
from dashboard.health.probes import Probes
from dashboard.metrics import carried, exposition, resources
from dashboard.metrics.carried import CarriedRun
from dashboard.rest.models import ApiToken
from dashboard.worker_http.access import Denied, token_of, who_asks
from dashboard.worker_http.messages import JSON, Answer, Request, as_json, problem
from scheduler_core.metrics import add_up

__all__ = ["WorkerRoutes", "config_document"]

_PROBES: Final = ("livez", "readyz", "healthz")

Extension = Callable[[Request, list[str]], Answer]


class WorkerRoutes:
    """The handler of a WorkerServer.

    Args:
        extensions: first part of a path -> who answers below it; gets the parts after it.
    """

    def __init__(
        self, probes: Probes | None = None, extensions: dict[str, Extension] | None = None
    ) -> None:
        self._probes = probes or worker_probes()
        self._extensions = extensions or {}

    def __call__(self, request: Request) -> Answer:
        parts = [part for part in request.path.split("/") if part]
        first = parts[0] if parts else ""
        extension = self._extensions.get(first)
        if extension is not None:
            return extension(request, parts[1:])
        if request.method not in ("GET", "HEAD"):
            return problem(405, "Only GET is answered here.", Allow="GET, HEAD")
        if first in _PROBES:
            excluded = set(filter(None, request.query.get("exclude", ())))
            found = self._probes.answer(request.path, "verbose" in request.query, excluded)
            return Answer(found.status, found.text.encode())
        try:
            if not request.trusted:
                who_asks(token_of(request.headers), request.address, ApiToken.Scope.READ)
        except Denied as error:
            return Answer(error.status, f"{error}\n".encode(), headers=error.headers)
        if parts == ["metrics", "slis"]:
            accept, samples = request.headers.get("accept", ""), self._probes.slis.samples()
            return Answer(200, *exposition.page(samples, accept, catalog=slis.CATALOG))
        return _private(request, parts)


def _private(request: Request, parts: list[str]) -> Answer:
    accept = request.headers.get("accept", "")
    match parts:
        case ["metrics"]:
            return _page(carried.all_runs(), accept, process=True)
        case ["metrics", "runs", text] if (run := _run(text)) is not None:
            return _page([run], accept)
        case ["metrics", "resources"]:
            body, media_type = exposition.page(
                resources_of(carried.all_runs()), accept, catalog=resources.CATALOG
            )
            return Answer(200, body, media_type)
        case ["samples"]:
            return _samples(carried.all_runs())
        case ["configz"]:
            return as_json(config_document(carried.all_runs()))
        case ["configz", "runs", text] if (run := _run(text)) is not None:
            return as_json({"componentconfig": run.config})
        case _:
            return problem(404, "There is nothing here.")


def _page(runs: list[CarriedRun], accept: str, process: bool = False) -> Answer:
    samples = add_up(run.samples() for run in runs)
    body, media_type = exposition.page(samples, accept, process=process)
    return Answer(200, body, media_type)


def resources_of(runs: list[CarriedRun]) -> dict[str, Any]:
    """The pods of every cluster that is scheduled here; each once."""
    pods = {
        (run.cluster, pod.uid): pod
        for run in runs
        if run.scheduler is not None
        for pod in run.scheduler.informers.informer("Pod").list()
    }
    return resources.samples_of(pods.values())


def _samples(runs: list[CarriedRun]) -> Answer:
    """For the web process, which adds up the workers of its machine."""
    document = {
        "runs": {str(run.run_id): exposition.as_json(run.samples()) for run in runs},
        "resources": exposition.as_json(resources_of(runs)),
        "configz": config_document(runs)["runs"],
    }
    return Answer(200, json.dumps(document).encode(), JSON)


def config_document(runs: list[CarriedRun]) -> dict[str, Any]:
    """``/configz``: the configuration of every run, with every default filled in."""
    return {
        "runs": [
            {
                "run": run.run_id,
                "name": run.name,
                "cluster": run.cluster,
                "componentconfig": run.config,
            }
            for run in runs
        ]
    }


def _run(text: str) -> CarriedRun | None:
    return carried.find(int(text)) if text.isascii() and text.isdigit() else None
