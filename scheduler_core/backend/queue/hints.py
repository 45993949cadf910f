"""QueueingHints: which events may make which pods schedulable."""

from __future__ import annotations

import enum
import logging
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import Any, NamedTuple

from scheduler_core.api import Pod
from scheduler_core.framework.events import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
    QueueingHintFn,
)
from scheduler_core.framework.types import QueuedPodInfo

log = logging.getLogger(__name__)

#: (plugin, label of the event, Queue or QueueSkip or Error, seconds)
HintAsked = Callable[[str, str, str, float], None]
#: profile -> plugin -> what it registered
HintMap = Mapping[str, Mapping[str, Sequence[ClusterEventWithHint]]]

_NODE_TAINT = ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_TAINT)


class Strategy(enum.Enum):
    """What an event means for one waiting pod."""

    SKIP = "skip"
    AFTER_BACKOFF = "after backoff"
    IMMEDIATELY = "immediately"


class _Registered(NamedTuple):
    plugin: str
    event: ClusterEvent
    hint: QueueingHintFn | None


class QueueingHints:
    """The registered events of all plugins, by profile (kube-scheduler 1.36).

    A plugin that registers Node/Add without Node/UpdateNodeTaint gets the latter too, with
    "always Queue", as in the reference. ``on_asked`` hears of every hint that was asked.
    """

    def __init__(self, hints: HintMap, on_asked: HintAsked | None = None) -> None:
        self._on_asked = on_asked
        self._registered = {
            profile: [
                _Registered(plugin, entry.event, entry.hint)
                for plugin, entries in plugins.items()
                for entry in _with_node_taint(entries)
            ]
            for profile, plugins in hints.items()
        }
        # The same few events come again and again.
        self._matching: dict[tuple[str, ClusterEvent], tuple[_Registered, ...]] = {}
        self._plugins: dict[ClusterEvent, frozenset[str]] = {}

    def plugins_interested(self, event: ClusterEvent) -> frozenset[str]:
        """Plugins of any profile that registered a matching event."""
        known = self._plugins.get(event)
        if known is None:
            known = self._plugins[event] = frozenset(
                entry.plugin
                for profile in self._registered
                for entry in self._matches(profile, event)
            )
        return known

    def interests(self, profile: str, plugin: str, event: ClusterEvent) -> bool:
        """Whether one plugin of a profile registered a matching event."""
        return any(entry.plugin == plugin for entry in self._matches(profile, event))

    def strategy(self, info: QueuedPodInfo, event: ClusterEvent, old: Any, new: Any) -> Strategy:
        """Whether an event is a reason to try a pod again, and how soon."""
        pending = info.pending_plugins
        if not info.unschedulable_plugins and not pending:
            return Strategy.AFTER_BACKOFF
        if event.is_wildcard:
            return Strategy.SKIP if _aims_at_another(info.pod, new) else Strategy.AFTER_BACKOFF
        profile = info.pod.scheduler_name
        if profile not in self._registered:
            return Strategy.AFTER_BACKOFF
        answer = Strategy.SKIP
        for entry in self._matches(profile, event):
            is_pending = entry.plugin in pending
            if not is_pending and (
                answer is Strategy.AFTER_BACKOFF or entry.plugin not in info.unschedulable_plugins
            ):
                continue
            if self._ask(entry, event, info.pod, old, new) is QueueingHint.SKIP:
                continue
            if is_pending:
                return Strategy.IMMEDIATELY
            answer = Strategy.AFTER_BACKOFF
        return answer

    def _ask(
        self, entry: _Registered, event: ClusterEvent, pod: Pod, old: Any, new: Any
    ) -> QueueingHint:
        if entry.hint is None:
            return QueueingHint.QUEUE
        started = perf_counter()
        try:
            answer = entry.hint(pod, old, new)
            word = "QueueSkip" if answer is QueueingHint.SKIP else "Queue"
        except Exception:
            # A pod must not be stuck because a hint is broken.
            text = "queueing hint of plugin %s for %s raised"
            log.exception(text, entry.plugin, entry.event.label)
            answer, word = QueueingHint.QUEUE, "Error"
        if self._on_asked is not None:
            self._on_asked(entry.plugin, event.label, word, perf_counter() - started)
        return answer

    def _matches(self, profile: str, event: ClusterEvent) -> tuple[_Registered, ...]:
        known = self._matching.get((profile, event))
        if known is None:
            known = self._matching[profile, event] = tuple(
                entry
                for entry in self._registered.get(profile, ())
                if event.matched_by(entry.event)
            )
        return known


def _with_node_taint(entries: Sequence[ClusterEventWithHint]) -> Sequence[ClusterEventWithHint]:
    actions = ActionType.NONE
    for entry in entries:
        if entry.event.resource is EventResource.NODE:
            actions |= entry.event.action
    if actions & ActionType.ADD and not actions & ActionType.UPDATE_NODE_TAINT:
        return [*entries, ClusterEventWithHint(_NODE_TAINT)]
    return entries


def _aims_at_another(pod: Pod, target: Any) -> bool:
    """A wildcard event may name the one pod that it is for."""
    return target is not None and getattr(target, "uid", None) != pod.uid
