"""Which pods belong to which native PodGroup."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ..pod import Pod

__all__ = ["SCHEDULING_GROUP_INDEX", "group_key", "scheduling_group_index"]

#: Index of the pod informer: "namespace/name" of a native PodGroup -> its members.
SCHEDULING_GROUP_INDEX: Final = "scheduling-group"


def group_key(pod: Pod) -> str:
    """`namespace/name` of the PodGroup that spec.schedulingGroup names, or ""."""
    return f"{pod.namespace}/{pod.scheduling_group}" if pod.scheduling_group else ""


def scheduling_group_index(pod: Pod) -> Iterable[str]:
    """Values of `SCHEDULING_GROUP_INDEX`: pods that have ended belong to no group any more."""
    return (group_key(pod),) if pod.scheduling_group and not pod.is_terminal else ()
