"""Faults of a new pod's spec that no scheduler minds (kube-apiserver 1.36, ValidatePodSpec):
environment, mounts, volumes, ports, policies and names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from scheduler_core.api.errors import (
    FieldError,
    duplicate,
    forbidden,
    invalid,
    not_found,
    required,
    unsupported,
)
from scheduler_core.api.syntax import check_dns_label, check_dns_subdomain
from scheduler_core.ports import Json

__all__ = ["pod_spec_faults"]

_PULL: Final = ("Always", "IfNotPresent", "Never")
_ENDINGS: Final = ("File", "FallbackToLogsOnError")
_DNS: Final = ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None")
_ENV_NAME: Final = re.compile(r"[ -<>-~]+")
_ENV_RULE: Final = (
    "a valid environment variable name must consist only of printable ASCII characters other "
    "than '='"
)
_HANDLERS: Final = ("exec", "httpGet", "tcpSocket", "grpc")
_LONGEST_PORT_NAME: Final = 15


def pod_spec_faults(spec: Json, path: str = "spec") -> Iterator[FieldError]:
    """Beyond what the store says of the same spec."""
    volumes = spec.get("volumes") or []
    names = [str(volume.get("name") or "") for volume in volumes]
    for index, volume in enumerate(volumes):
        yield from _volume_faults(f"{path}.volumes[{index}]", volume)
    for index, container in enumerate(spec.get("containers") or []):
        yield from _container_faults(f"{path}.containers[{index}]", container, names)
    for index, container in enumerate(spec.get("initContainers") or []):
        at = f"{path}.initContainers[{index}]"
        yield from _container_faults(at, container, names)
        yield from _init_faults(at, container)
    if spec.get("ephemeralContainers"):
        yield f"{path}.ephemeralContainers", forbidden("cannot be set on create")
    policy = spec.get("dnsPolicy")
    if policy is not None and policy not in _DNS:
        yield f"{path}.dnsPolicy", unsupported(policy, _DNS)
    for field, check in (
        ("serviceAccountName", check_dns_subdomain),
        ("hostname", check_dns_label),
        ("subdomain", check_dns_label),
    ):
        problem = check(spec[field]) if spec.get(field) else ""
        if problem:
            yield f"{path}.{field}", invalid(spec[field], problem)


def _container_faults(path: str, container: Json, volumes: Sequence[str]) -> Iterator[FieldError]:
    yield from _port_faults(path, container.get("ports") or [])
    for index, variable in enumerate(container.get("env") or []):
        yield from _variable_faults(f"{path}.env[{index}]", variable)
    for index, mount in enumerate(container.get("volumeMounts") or []):
        yield from _mount_faults(f"{path}.volumeMounts[{index}]", mount, volumes)
    for field in ("livenessProbe", "readinessProbe", "startupProbe"):
        if container.get(field) is not None:
            yield from _probe_faults(f"{path}.{field}", container[field])
    for field, choices in (("imagePullPolicy", _PULL), ("terminationMessagePolicy", _ENDINGS)):
        value = container.get(field)
        if value and value not in choices:
            yield f"{path}.{field}", unsupported(value, choices)


def _port_faults(path: str, ports: Sequence[Json]) -> Iterator[FieldError]:
    names: set[str] = set()
    for index, port in enumerate(ports):
        name = port.get("name")
        if not name:
            continue
        at = f"{path}.ports[{index}].name"
        if len(name) > _LONGEST_PORT_NAME:
            yield at, invalid(name, f"must be no more than {_LONGEST_PORT_NAME} characters")
        elif name in names:
            yield at, duplicate(name)
        names.add(name)


def _variable_faults(path: str, variable: Json) -> Iterator[FieldError]:
    name = variable.get("name")
    if not name:
        yield f"{path}.name", required()
    elif not _ENV_NAME.fullmatch(name):
        yield f"{path}.name", invalid(name, _ENV_RULE)
    if variable.get("value") and variable.get("valueFrom"):
        why = "may not be specified when `value` is not empty"
        yield f"{path}.valueFrom", invalid("", why)


def _mount_faults(path: str, mount: Json, volumes: Sequence[str]) -> Iterator[FieldError]:
    name = mount.get("name") or ""
    if not name:
        yield f"{path}.name", required()
    if name not in volumes:
        yield f"{path}.name", not_found(name)
    if not mount.get("mountPath"):
        yield f"{path}.mountPath", required()


def _probe_faults(path: str, probe: Json) -> Iterator[FieldError]:
    given = [handler for handler in _HANDLERS if probe.get(handler) is not None]
    if not given:
        yield path, required("must specify a handler type")
    for handler in given[1:]:
        yield f"{path}.{handler}", forbidden("may not specify more than 1 handler type")


def _init_faults(path: str, container: Json) -> Iterator[FieldError]:
    if container.get("restartPolicy") == "Always":
        return
    for field in ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe"):
        if container.get(field) is not None:
            why = "may not be set for init containers without restartPolicy=Always"
            yield f"{path}.{field}", forbidden(why)


def _volume_faults(path: str, volume: Json) -> Iterator[FieldError]:
    sources = [key for key in volume if key != "name"]
    for source in sources[1:]:
        yield f"{path}.{source}", forbidden("may not specify more than 1 volume type")
    config = volume.get("configMap")
    if config is not None and not config.get("name"):
        yield f"{path}.configMap.name", required()
    place = volume.get("hostPath")
    if place is not None and ".." in str(place.get("path") or "").split("/"):
        yield f"{path}.hostPath.path", invalid(place["path"], "must not contain '..'")
    ephemeral = volume.get("ephemeral")
    if ephemeral is not None and not ephemeral.get("volumeClaimTemplate"):
        yield f"{path}.ephemeral.volumeClaimTemplate", required()
