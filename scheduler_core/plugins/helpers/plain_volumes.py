"""Volumes that no volume plugin has anything to say about."""

from __future__ import annotations

from typing import Final

from scheduler_core.api import Pod

__all__ = ["has_only_plain_volumes"]

#: Sources that the kubelet makes on whatever node it is: no claim, no disk, nothing to attach.
_PLAIN: Final = frozenset(
    ("", "configMap", "downwardAPI", "emptyDir", "hostPath", "image", "projected", "secret")
)


def has_only_plain_volumes(pod: Pod) -> bool:
    """Whether none of the pod's volumes has to be found, bound or attached."""
    return all(volume.source in _PLAIN for volume in pod.volumes)
