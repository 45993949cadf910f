"""Gates: PreEnqueue plugins, which decide whether a pod may wait for scheduling at all."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter

from scheduler_core.framework.interface import PreEnqueuePlugin
from scheduler_core.framework.status import Status, error, returned
from scheduler_core.framework.types import QueuedPodInfo

log = logging.getLogger(__name__)

#: (profile, seconds)
GatesAsked = Callable[[str, float], None]


class Gates:
    """The PreEnqueue plugins of each profile; ``on_asked`` hears how long they took."""

    def __init__(
        self,
        plugins: Mapping[str, Sequence[PreEnqueuePlugin]],
        on_asked: GatesAsked | None = None,
    ) -> None:
        self._plugins = {profile: tuple(p) for profile, p in plugins.items()}
        self._on_asked = on_asked

    def check(self, info: QueuedPodInfo) -> None:
        """Set or clear ``gating_plugin``: the first plugin that does not answer Success.

        The plugin that held the pod last is asked first. It counts as one that rejected the pod.
        """
        started = perf_counter()
        self._check(info)
        if self._on_asked is not None:
            self._on_asked(info.pod.scheduler_name, perf_counter() - started)

    def _check(self, info: QueuedPodInfo) -> None:
        plugins = self._plugins.get(info.pod.scheduler_name, ())
        if info.gating_plugin:
            plugins = tuple(sorted(plugins, key=lambda p: p.name != info.gating_plugin))
        for plugin in plugins:
            status = _ask(plugin, info)
            if not status.is_success:
                info.unschedulable_plugins.add(plugin.name)
                info.gating_plugin = plugin.name
                info.gating_message = status.message
                return
        info.gating_plugin = ""
        info.gating_message = ""


def _ask(plugin: PreEnqueuePlugin, info: QueuedPodInfo) -> Status:
    try:
        return returned(plugin.pre_enqueue(info.pod))
    except Exception as exc:
        log.exception("PreEnqueue plugin %s raised for pod %s", plugin.name, info.key)
        return error(f'running PreEnqueue plugin "{plugin.name}": {exc}', plugin.name)
