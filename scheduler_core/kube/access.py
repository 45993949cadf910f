"""What people know of a cluster: a kubeconfig, the pod they are in, or an address and a token."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from scheduler_core.yaml_levels import NestedTooDeeply, check_levels

__all__ = ["Access", "AccessError", "InCluster", "Kubeconfig", "KubeconfigFile", "Token"]
__all__ += ["check_cluster", "check_user", "contexts_of", "read_kubeconfig"]

_INSECURE: Final = "insecure-skip-tls-verify"
#: users[].user entries that run programs or read files of the machine this runs on
_RUNS_PROGRAMS: Final = ("exec", "auth-provider")
_USER_FILES: Final = ("client-certificate", "client-key", "tokenFile")
_CLUSTER_FILES: Final = ("certificate-authority",)
_USER_DATA: Final = ("client-certificate-data", "client-key-data")
#: users[].user entries that change who we are to the server: left out, we would be somebody else
_IMPERSONATES: Final = ("as", "as-uid", "as-groups", "as-user-extra")
#: what is taken of an entry; other fields say nothing that we need
_CLUSTER_TEXTS: Final = ("server", "tls-server-name", "certificate-authority-data", "proxy-url")
_USER_TEXTS: Final = ("token", "username", "password", *_USER_DATA)
#: what a name in an error message is cut to
_LONGEST_NAME: Final = 253


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
    name = context or _text(config, "current-context")
    if not name:
        raise AccessError("the kubeconfig has no current-context: name one of its contexts")
    chosen = _entry(config, "contexts", "context", name)
    of_cluster, of_user = _text(chosen, "cluster"), _text(chosen, "user")
    cluster = _entry(config, "clusters", "cluster", of_cluster)
    if not isinstance(cluster.get("server"), str) or not cluster["server"]:
        raise AccessError(f'cluster "{of_cluster}" of the kubeconfig has no server')
    user = _entry(config, "users", "user", of_user) if of_user else {}
    check_cluster(cluster)
    check_user(user)
    _refuse(user, _RUNS_PROGRAMS, "would run a program on this server; use a token instead")
    _refuse(user, _USER_FILES, "names a file; embed it (kubectl config view --flatten)")
    _refuse(cluster, _CLUSTER_FILES, "names a file; embed it (kubectl config view --flatten)")
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "contexts": [{"name": name, "context": {"cluster": "it", "user": "me"}}],
        "clusters": [{"name": "it", "cluster": _kept(cluster, _CLUSTER_TEXTS, _INSECURE)}],
        "users": [{"name": "me", "user": _kept(user, _USER_TEXTS)}],
    }


def contexts_of(text: str) -> list[str]:
    """Names of the contexts in a kubeconfig, the current one first.

    Raises:
        AccessError: it is no kubeconfig.
    """
    config = _mapping(_load(text), "the kubeconfig")
    names = [_name(entry) for entry in _entries(config, "contexts") if _name(entry)]
    current = config.get("current-context")
    return sorted(names, key=lambda name: name != current)


def check_cluster(cluster: Mapping[str, Any]) -> None:
    """What no cluster's entry may say, wherever it came from.

    Raises:
        AccessError
    """
    if not isinstance(cluster.get(_INSECURE) or False, bool):
        raise AccessError(f'"{_INSECURE}" of the kubeconfig must be true or false')
    _check_texts(cluster, _CLUSTER_TEXTS)


def check_user(user: Mapping[str, Any]) -> None:
    """What no user's entry may say, wherever it came from.

    Raises:
        AccessError
    """
    _refuse(user, _IMPERSONATES, "asks to act as somebody else, which this program does not")
    _check_texts(user, (*_USER_TEXTS, *_USER_FILES))


def _check_texts(entry: Mapping[str, Any], keys: tuple[str, ...]) -> None:
    for key in keys:
        value = entry.get(key)
        if value is not None and not isinstance(value, str | int | float):
            raise AccessError(f'"{key}" of the kubeconfig is no text')


def _kept(entry: Mapping[str, Any], texts: tuple[str, ...], *others: str) -> dict[str, Any]:
    found: dict[str, Any] = {key: str(entry[key]) for key in texts if entry.get(key) is not None}
    return found | {key: entry[key] for key in others if entry.get(key) is not None}


def _load(text: str) -> Any:
    try:
        check_levels(text)
        return yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506
    except yaml.YAMLError as fault:
        # The problem alone: the text around it may be a secret.
        mark = getattr(fault, "problem_mark", None)
        where = f" in line {mark.line + 1}" if mark is not None else ""
        is_deep = isinstance(fault, NestedTooDeeply)
        what = "is nested too deeply" if is_deep else "is not YAML"
        raise AccessError(f"the kubeconfig {what}{where}") from None


def _mapping(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise AccessError(f"{what} is not a mapping")
    return value


def _entries(config: dict[str, Any], key: str) -> list[dict[str, Any]]:
    found = config.get(key) or []
    if not isinstance(found, list):
        raise AccessError(f"{key} of the kubeconfig is not a list")
    return [entry for entry in found if isinstance(entry, dict)]


def _text(entry: Mapping[str, Any], key: str) -> str:
    """A name; "" where there is none. Of plain values only: the text of a few lines of YAML that
    refer to each other may be endless."""
    value = entry.get(key)
    return str(value)[:_LONGEST_NAME] if isinstance(value, str | int | float) else ""


def _name(entry: Mapping[str, Any]) -> str:
    return _text(entry, "name")


def _entry(config: dict[str, Any], key: str, part: str, name: str) -> dict[str, Any]:
    entries = _entries(config, key)
    for entry in entries:
        if _name(entry) == name:
            return dict(_mapping(entry.get(part), f'{part} "{name}" of the kubeconfig'))
    known = ", ".join(filter(None, map(_name, entries))) or "none"
    raise AccessError(f'the kubeconfig has no {part} "{name}" (it has: {known})')


def _refuse(entry: Mapping[str, Any], keys: tuple[str, ...], why: str) -> None:
    for key in keys:
        if entry.get(key):
            raise AccessError(f'"{key}" of the kubeconfig {why}')
