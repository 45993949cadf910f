"""What ``deploy/kustomize`` makes: kustomize's own work, as far as these folders need it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

__all__ = ["DEPLOY", "objects"]

DEPLOY = Path(__file__).parents[2] / "deploy"


def objects(overlay: str) -> list[dict[str, Any]]:
    """Every object of an overlay and of what it builds on."""
    folder = DEPLOY / "kustomize" / overlay
    kustomization = yaml.safe_load((folder / "kustomization.yaml").read_text())
    found: list[dict[str, Any]] = []
    for entry in kustomization["resources"]:
        path = folder / entry
        if path.is_dir():
            found += objects(str(path.resolve().relative_to(DEPLOY / "kustomize")))
        else:
            found += [o for o in yaml.safe_load_all(path.read_text()) if o]
    return found
