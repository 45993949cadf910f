"""The pods that an observer waits for, and in which order it looks at them."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from scheduler_core.api import Pod
from scheduler_core.observations import Observation

__all__ = ["LOOK_AGAIN", "WaitingPod", "WaitingPods"]

#: A pod that waits is looked at again after so many seconds: what would fit has changed, maybe.
LOOK_AGAIN = 30.0


@dataclass(slots=True)
class WaitingPod:
    """A pod without a node.

    Attributes:
        pod: as it was last seen.
        seen_at: time of day when it was first seen.
        first: the node that we chose when we first looked at it, or "".
        told: the last word on it.
    """

    pod: Pod
    seen_at: float
    first: str = ""
    was_looked_at: bool = False
    told: Observation | None = None


class WaitingPods:
    """Pods without a node by "namespace/name". Those that are new are looked at first, in the order
    in which they came; then those whose last look is ``LOOK_AGAIN`` seconds ago."""

    def __init__(self) -> None:
        self._pods: dict[str, WaitingPod] = {}
        self._new: dict[str, None] = {}
        #: key -> when to look again, the earliest first.
        self._again: OrderedDict[str, float] = OrderedDict()

    def get(self, key: str) -> WaitingPod | None:
        return self._pods.get(key)

    def see(self, pod: Pod, now: float) -> None:
        """A pod is there, or has changed."""
        known = self._pods.get(pod.key)
        if known is not None:
            known.pod = pod
            return
        self._pods[pod.key] = WaitingPod(pod, now)
        self._new[pod.key] = None

    def forget(self, key: str) -> None:
        """It has a node, or is gone; an unknown one changes nothing."""
        self._pods.pop(key, None)
        self._new.pop(key, None)
        self._again.pop(key, None)

    def take_due(self, now: float) -> WaitingPod | None:
        """The pod to be looked at now, if there is one; its next turn comes later."""
        key = next(iter(self._new), None)
        if key is None:
            key, due = next(iter(self._again.items()), (None, 0.0))
            if key is None or due > now:
                return None
        self._new.pop(key, None)
        self._again.pop(key, None)
        self._again[key] = now + LOOK_AGAIN
        return self._pods[key]

    def next_due(self) -> float | None:
        """When the next look is due; None where no pod waits. New ones are due at once."""
        if self._new:
            return 0.0
        return next(iter(self._again.values()), None)

    @property
    def has_new(self) -> bool:
        """Some have not been looked at yet; may be read from any thread, as a hint."""
        return bool(self._new)
