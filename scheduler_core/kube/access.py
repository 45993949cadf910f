"""What people know of a cluster: a kubeconfig, the pod they are in, or an address and a token."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import yaml

__all__ = ["Access", "AccessError", "InCluster", "Kubeconfig", "KubeconfigFile", "Token"]
__all__ += ["contexts_of", "read_kubeconfig"]

#: users[].user entries that run programs or read files of the machine this runs on
_RUNS_PROGRAMS: Final = ("exec", "auth-provider")
_USER_FILES: Final = ("client-certificate", "client-key", "tokenFile")
_CLUSTER_FILES: Final = ("certificate-authority",)


class AccessError(Exception):
    """The description of a cluster cannot be used; why, without any secret."""


@dataclass(frozen=True, slots=True)
class KubeconfigFile:
    """A file of this machine, with all that its owner lets it do: run programs, name files.

    ``path`` "": as kubectl finds it (KUBECONFIG, ~/.kube/config). ``context`` "": the current one.
    """

    path: str = ""
    context: str = ""


@dataclass(frozen=True, slots=True)
class Kubeconfig:
    """The text of a kubeconfig that came from elsewhere: it may neither run programs nor name files
    of this machine. ``context`` "": the current one."""

    text: str = field(repr=False)
    context: str = ""


@dataclass(frozen=True, slots=True)
class InCluster:
    """The service account of the pod that this process runs in."""


@dataclass(frozen=True, slots=True)
class Token:
    """An address and a bearer token.

    Attributes:
        ca: PEM of the certificate authority; "": those that the machine trusts.
        insecure: do not look at the server's certificate.
    """

    server: str
    token: str = field(repr=False)
    ca: str = field(default="", repr=False)
    insecure: bool = False


Access = KubeconfigFile | Kubeconfig | InCluster | Token


def read_kubeconfig(text: str, context: str = "") -> dict[str, Any]:
    """A kubeconfig from elsewhere, with one context, its cluster and its user alone.

    Raises:
        AccessError: it is none, has no such context, or refers to programs or files.
    """
    config = _mapping(_load(text), "the kubeconfig")
    name = context or config.get("current-context") or ""
    if not name:
        raise AccessError("the kubeconfig has no current-context: name one of its contexts")
    chosen = _entry(config, "contexts", "context", str(name))
    cluster = _entry(config, "clusters", "cluster", str(chosen.get("cluster") or ""))
    if not isinstance(cluster.get("server"), str) or not cluster["server"]:
        raise AccessError(f'cluster "{chosen.get("cluster")}" of the kubeconfig has no server')
    user: dict[str, Any] = {}
    if chosen.get("user"):
        user = _entry(config, "users", "user", str(chosen["user"]))
    _refuse(user, _RUNS_PROGRAMS, "would run a program on this server; use a token instead")
    _refuse(user, _USER_FILES, "names a file; embed it (kubectl config view --flatten)")
    _refuse(cluster, _CLUSTER_FILES, "names a file; embed it (kubectl config view --flatten)")
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "contexts": [{"name": name, "context": {"cluster": "it", "user": "me"}}],
        "clusters": [{"name": "it", "cluster": cluster}],
        "users": [{"name": "me", "user": user}],
    }


def contexts_of(text: str) -> list[str]:
    """Names of the contexts in a kubeconfig, the current one first.

    Raises:
        AccessError: it is no kubeconfig.
    """
    config = _mapping(_load(text), "the kubeconfig")
    names = [str(e.get("name")) for e in _entries(config, "contexts") if e.get("name")]
    current = config.get("current-context")
    return sorted(names, key=lambda name: name != current)


def _load(text: str) -> Any:
    try:
        return yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506
    except yaml.YAMLError as fault:
        # The problem alone: the text around it may be a secret.
        mark = getattr(fault, "problem_mark", None)
        where = f" in line {mark.line + 1}" if mark is not None else ""
        raise AccessError(f"the kubeconfig is not YAML{where}") from None


def _mapping(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise AccessError(f"{what} is not a mapping")
    return value


def _entries(config: dict[str, Any], key: str) -> list[dict[str, Any]]:
    found = config.get(key) or []
    if not isinstance(found, list):
        raise AccessError(f"{key} of the kubeconfig is not a list")
    return [entry for entry in found if isinstance(entry, dict)]


def _entry(config: dict[str, Any], key: str, part: str, name: str) -> dict[str, Any]:
    entries = _entries(config, key)
    for entry in entries:
        if str(entry.get("name")) == name:
            return dict(_mapping(entry.get(part), f'{part} "{name}" of the kubeconfig'))
    known = ", ".join(str(entry.get("name")) for entry in entries) or "none"
    raise AccessError(f'the kubeconfig has no {part} "{name}" (it has: {known})')


def _refuse(entry: dict[str, Any], keys: tuple[str, ...], why: str) -> None:
    for key in keys:
        if entry.get(key):
            raise AccessError(f'"{key}" of the kubeconfig {why}')
