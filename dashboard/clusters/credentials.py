"""A cluster's connection row as something to connect with, and back."""

from __future__ import annotations

import json
from typing import Any, Final

import yaml

from dashboard import sealing
from dashboard.clusters.models import ClusterConnection
from scheduler_core.kube.access import (
    Access,
    AccessError,
    InCluster,
    Kubeconfig,
    KubeconfigFile,
    Token,
    read_kubeconfig,
)

_PURPOSE: Final = b"kubesched.clusters.credentials"
_Method = ClusterConnection.Method


def columns_of(access: Access) -> dict[str, Any]:
    """What a row keeps: credentials sealed, and of a kubeconfig the one context alone.

    Raises:
        AccessError: it cannot be used.
    """
    found = {"context": "", "path": "", "server": "", "sealed": "", "insecure": False}
    if isinstance(access, InCluster):
        return {**found, "method": _Method.IN_CLUSTER}
    if isinstance(access, KubeconfigFile):
        return {**found, "method": _Method.FILE, "path": access.path, "context": access.context}
    if isinstance(access, Token):
        sealed = _seal({"token": access.token, "ca": access.ca})
        shown = {"server": access.server, "insecure": access.insecure}
        return {**found, **shown, "method": _Method.TOKEN, "sealed": sealed}
    config = read_kubeconfig(access.text, access.context)
    cluster = config["clusters"][0]["cluster"]
    return {
        **found,
        "method": _Method.KUBECONFIG,
        "context": str(config["current-context"])[:253],
        "server": str(cluster["server"])[:500],
        "insecure": bool(cluster.get("insecure-skip-tls-verify")),
        "sealed": _seal({"kubeconfig": yaml.safe_dump(config)}),
    }


def access_of(row: ClusterConnection) -> Access:
    """Raises:
    AccessError: its credentials cannot be read.
    """
    if row.method == _Method.IN_CLUSTER:
        return InCluster()
    if row.method == _Method.FILE:
        return KubeconfigFile(row.path, row.context)
    try:
        secret: dict[str, str] = json.loads(sealing.unseal(row.sealed, _PURPOSE))
    except (sealing.Unreadable, ValueError):
        raise AccessError(
            "its credentials cannot be read, because SECRET_KEY has changed: give them once more"
        ) from None
    if row.method == _Method.TOKEN:
        return Token(row.server, secret["token"], secret["ca"], row.insecure)
    return Kubeconfig(secret["kubeconfig"])


def _seal(secret: dict[str, str]) -> str:
    return sealing.seal(json.dumps(secret), _PURPOSE)
