"""Objects made of templates.

Every object is a whole copy, as if it had come from an API server: the scheduler cannot profit
from two pods sharing one dict, and memory is what it would be.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scheduler_core.api import HOSTNAME_LABEL
from scheduler_core.ports import Json

__all__ = ["node_from", "object_from", "pod_from"]


def object_from(template: Json, name: str, index: int, namespace: str = "") -> Json:
    """A copy of ``template`` called ``name``; ``{index}`` in texts becomes ``index``.

    A namespace is set on pods, and on other objects that name one.
    """
    obj: Json = _copy(template, str(index))
    metadata = obj.setdefault("metadata", {})
    metadata["name"] = name
    if namespace and obj["kind"] == "Pod":
        metadata["namespace"] = namespace
    return obj


def node_from(template: Json, name: str, index: int, labels: Mapping[str, tuple[str, ...]]) -> Json:
    """A Node; each of ``labels`` takes its values in turn."""
    node = object_from(template, name, index)
    own = node["metadata"].setdefault("labels", {})
    own[HOSTNAME_LABEL] = name
    own.update({key: values[index % len(values)] for key, values in labels.items()})
    return node


def pod_from(template: Json, name: str, index: int, namespace: str, node: str = "") -> Json:
    """A Pod; ``node``: where it runs already, or ""."""
    pod = object_from(template, name, index, namespace)
    if node:
        pod["spec"]["nodeName"] = node
        pod["status"] = {"phase": "Running"}
    return pod


def _copy(value: Any, index: str) -> Any:
    if isinstance(value, dict):
        return {key: _copy(item, index) for key, item in value.items()}
    if isinstance(value, list):
        return [_copy(item, index) for item in value]
    if isinstance(value, str) and "{index}" in value:
        return value.replace("{index}", index)
    return value
