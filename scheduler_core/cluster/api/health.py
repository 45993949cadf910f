"""How the server is, and which version it speaks like."""

from __future__ import annotations

import platform
from typing import Final

from scheduler_core.ports import Json

from .catalog import Catalog
from .messages import TEXT, Answer, Request

__all__ = ["probe", "root_paths", "version"]

_CHECKS: Final = ("ping", "log", "store", "poststarthook/crd-informer-synced")


def probe(path: str, request: Request) -> Answer:
    """`/livez`, `/readyz`, `/healthz`, and each check of them by its own path."""
    kind, _, check = path.removeprefix("/").partition("/")
    if check:
        return (
            Answer(200, "ok", TEXT)
            if check in _CHECKS
            else Answer(404, "404 page not found\n", TEXT)
        )
    if "verbose" not in request.query:
        return Answer(200, "ok", TEXT)
    lines = "".join(f"[+]{name} ok\n" for name in _CHECKS)
    return Answer(200, f"{lines}{kind} check passed\n", TEXT)


def version() -> Json:
    """`/version`: the release that the sandbox follows."""
    return {
        "major": "1",
        "minor": "36",
        "emulationMajor": "1",
        "emulationMinor": "36",
        "minCompatibilityMajor": "1",
        "minCompatibilityMinor": "35",
        "gitVersion": "v1.36.2+kubesched",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": f"python{platform.python_version()}",
        "platform": f"{platform.system().lower()}/{platform.machine()}",
    }


def root_paths(catalog: Catalog) -> Json:
    """`/`."""
    paths = ["/api", "/api/v1", "/apis"]
    for group, versions in catalog.groups():
        paths.append(f"/apis/{group}")
        paths.extend(f"/apis/{group}/{name}" for name in versions)
    more = ["/healthz", "/livez", "/openapi/v2", "/openapi/v3", "/readyz", "/version"]
    return {"paths": sorted([*paths, *more])}
