"""The file that makes kubectl find a sandbox."""

from __future__ import annotations

import base64

import yaml

__all__ = ["kubeconfig"]


def kubeconfig(server: str, token: str, name: str, ca_pem: bytes | None = None) -> str:
    """A kubeconfig with one context.

    Args:
        server: base URL, `https://127.0.0.1:8443/sandboxes/7`.
        name: of cluster, user and context.
        ca_pem: the authority that signed the server's certificate; None over plain HTTP.
    """
    cluster: dict[str, str] = {"server": server}
    if ca_pem is not None:
        cluster["certificate-authority-data"] = base64.b64encode(ca_pem).decode()
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": name, "user": {"token": token}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
        "preferences": {},
    }
    return yaml.safe_dump(document, sort_keys=False)
