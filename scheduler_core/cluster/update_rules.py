"""What an update may not change, per kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from scheduler_core.api.errors import FieldError
from scheduler_core.api.native import NATIVE_POD_GROUP
from scheduler_core.api.native import rules as group_rules
from scheduler_core.api.validation import validate
from scheduler_core.ports import Json

from . import pod_rules
from .resources import Resource

__all__ = ["update_faults"]


def _node_faults(_: Json, new: Json) -> list[FieldError]:
    """The server looks at taints twice when a node is updated, and tells twice what it finds."""
    return [fault for fault in validate(new) if fault[0].startswith("metadata.taints")]


_RULES: Final[Mapping[str, Callable[[Json, Json], list[FieldError]]]] = MappingProxyType(
    {
        "Node": _node_faults,
        "Pod": pod_rules.update_faults,
        NATIVE_POD_GROUP: group_rules.update_faults,
        "Workload": group_rules.update_faults,
    }
)


def update_faults(resource: Resource, old: Json, new: Json) -> list[FieldError]:
    """Every change that the kind does not allow; none means that the update is accepted."""
    rule = _RULES.get(resource.kind)
    return [] if rule is None else rule(old, new)
