"""The profile map: schedulerName -> Framework."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from scheduler_core.config import SchedulerConfiguration
from scheduler_core.framework.events import ClusterEventWithHint
from scheduler_core.framework.interface import PreEnqueuePlugin, QueueSortPlugin
from scheduler_core.framework.runtime.framework import Framework, ProfileError, Services
from scheduler_core.framework.runtime.registry import Registry


class Profiles(Mapping[str, Framework]):
    """One Framework per profile of a configuration; they share ``services``.

    Raises:
        ProfileError: a profile cannot be made; the text names the profile and says why.
    """

    def __init__(
        self, config: SchedulerConfiguration, registry: Registry, services: Services
    ) -> None:
        self._frameworks: dict[str, Framework] = {}
        self._percentages: dict[str, int] = {}
        for profile in config.profiles:
            name = profile.scheduler_name
            plugins = {
                point: [(ref.name, ref.weight) for ref in refs]
                for point, refs in profile.plugins.items()
            }
            try:
                framework = Framework(name, plugins, profile.plugin_args, registry, services)
            except ProfileError as exc:
                prefix = f"initializing profiles: creating profile for scheduler name {name}"
                raise ProfileError(f"{prefix}: {exc}") from exc
            self._frameworks[name] = framework
            self._percentages[name] = profile.percentage_of_nodes_to_score

    def __getitem__(self, name: str) -> Framework:
        return self._frameworks[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._frameworks)

    def __len__(self) -> int:
        return len(self._frameworks)

    def percentage(self, name: str) -> int:
        """The profile's percentageOfNodesToScore; 0 is adaptive."""
        return self._percentages[name]

    @property
    def queue_sort(self) -> QueueSortPlugin:
        """The QueueSort plugin; all profiles have the same one."""
        return next(iter(self._frameworks.values())).queue_sort_plugins[0]

    def pre_enqueue_plugins(self) -> dict[str, Sequence[PreEnqueuePlugin]]:
        return {name: fw.pre_enqueue_plugins for name, fw in self._frameworks.items()}

    def queueing_hints(self) -> dict[str, Mapping[str, Sequence[ClusterEventWithHint]]]:
        """schedulerName -> plugin -> events with hints."""
        return {name: fw.events_to_register() for name, fw in self._frameworks.items()}
