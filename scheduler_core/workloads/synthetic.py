"""Made-up clusters of any size: nodes of a few shapes, and a steady stream of pods."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from scheduler_core.api.pod import DEFAULT_SCHEDULER_NAME
from scheduler_core.ports import Json

from .base import WorkloadCluster, create_if_absent, create_set
from .manifests import GPU, node, pod
from .streams import Draw, Moment, Stream, StreamWorkload

__all__ = ["PRESETS", "Preset", "SyntheticWorkload", "synthetic_nodes", "synthetic_pod"]


@dataclass(frozen=True, slots=True)
class Preset:
    """How much there is of everything.

    Attributes:
        arrivals: pods per second.
        run_seconds: how long a pod runs on average.
        most_pods: pods of this workload that have not ended; no more arrive while there are so
            many (or while no scheduler works).
    """

    name: str
    nodes: int
    zones: int = 3
    arrivals: float = 0.0
    run_seconds: float = 120.0
    most_pods: int = 0


#: name -> Preset
PRESETS: Final[Mapping[str, Preset]] = MappingProxyType(
    {
        preset.name: preset
        for preset in (
            Preset("empty", nodes=0),
            Preset("small", nodes=5, arrivals=0.25, run_seconds=90.0, most_pods=40),
            Preset("large", nodes=1523, arrivals=20.0, run_seconds=180.0, most_pods=8000),
        )
    }
)

#: (share, cpu, memory, GPUs) of nodes
_NODE_SHAPES: Final = (
    (4, "16", "64Gi", 0),
    (3, "32", "128Gi", 0),
    (2, "64", "256Gi", 0),
    (1, "96", "384Gi", 8),
)
#: (apps, cpu, memory, GPUs) of pods
_POD_SHAPES: Final = (
    (8, "500m", "1Gi", 0),
    (6, "1", "2Gi", 0),
    (4, "2", "8Gi", 0),
    (2, "8", "16Gi", 0),
    (1, "4", "32Gi", 1),
)
#: shape of each app: its pods come from one template, as those of a Deployment do
_APPS: Final = tuple(shape for shape in _POD_SHAPES for _ in range(shape[0]))
#: one app in so many prefers a zone
_PREFERRING: Final = 3
_SHORTEST_RUN: Final = 5.0
_COUNT_EVERY: Final = 1.0


def synthetic_nodes(count: int, zones: int = 3) -> list[Json]:
    """`count` nodes, shapes and zones in turn: the same list every time.

    Raises:
        ValueError: `count` is negative or `zones` is not positive.
    """
    if count < 0 or zones < 1:
        raise ValueError(f"cannot make {count} nodes in {zones} zones")
    turn = [shape for shape in _NODE_SHAPES for _ in range(shape[0])]
    nodes = []
    for index in range(count):
        _, cpu, memory, gpus = turn[(index // zones) % len(turn)]
        amounts = {"cpu": cpu, "memory": memory}
        taints: list[Json] = []
        if gpus:
            amounts[GPU] = str(gpus)
            taints = [{"key": GPU, "effect": "NoSchedule"}]
        zone = f"zone-{'abcdefghijklmnopqrstuvwxyz'[index % min(zones, 26)]}"
        labels = {"node.kubernetes.io/instance-type": f"shape-{cpu}{'-gpu' if gpus else ''}"}
        nodes.append(node(f"node-{index:05d}", zone, amounts, labels=labels, taints=taints))
    return nodes


def synthetic_pod(
    name: str,
    draw: Draw,
    run_seconds: float | None,
    scheduler_name: str = DEFAULT_SCHEDULER_NAME,
    *,
    with_gpus: bool = True,
) -> Json:
    """A pod of a random one of 21 apps, a third of which prefer a zone.

    ``with_gpus``: whether it may ask for one. Where no node has any it would wait for ever.
    """
    apps = [app for app, shape in enumerate(_APPS) if with_gpus or not shape[3]]
    app = draw.choice(apps)
    _, cpu, memory, gpus = _APPS[app]
    requests = {"cpu": cpu, "memory": memory}
    spec: Json = {}
    if gpus:
        requests[GPU] = str(gpus)
        spec["tolerations"] = [{"key": GPU, "operator": "Exists"}]
    if app % _PREFERRING == 0:
        spec["affinity"] = _prefers_zone("abc"[app // _PREFERRING % 3])
    return pod(
        name,
        "default",
        requests,
        workload=SyntheticWorkload.name,
        run_seconds=run_seconds,
        image="registry.example/synthetic:v1",
        labels={"app": f"app-{app}"},
        spec=spec,
        scheduler_name=scheduler_name,
    )


def _prefers_zone(letter: str) -> Json:
    expression = {
        "key": "topology.kubernetes.io/zone",
        "operator": "In",
        "values": [f"zone-{letter}"],
    }
    preferred = [{"weight": 50, "preference": {"matchExpressions": [expression]}}]
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}


class SyntheticWorkload(StreamWorkload):
    """Runs one of the presets."""

    name = "synthetic"

    def __init__(
        self,
        preset: str | Preset = "small",
        *,
        seed: int = 1,
        start: float | None = None,
        scheduler_name: str = DEFAULT_SCHEDULER_NAME,
    ) -> None:
        """
        Raises:
            ValueError: there is no preset of that name.
        """
        super().__init__(seed=seed, start=start)
        if isinstance(preset, str):
            if preset not in PRESETS:
                raise ValueError(f"unknown preset {preset!r}; there are {', '.join(PRESETS)}")
            preset = PRESETS[preset]
        self.preset = preset
        self._scheduler_name = scheduler_name
        self._has_gpus = any(
            GPU in node["status"]["capacity"]
            for node in synthetic_nodes(preset.nodes, preset.zones)
        )
        self._room = 0
        self._counted_at = float("-inf")

    def _set_up(self, cluster: WorkloadCluster) -> None:
        nodes = synthetic_nodes(self.preset.nodes, self.preset.zones)
        if nodes:
            create_set(cluster, nodes)

    def _streams(self) -> Mapping[str, Stream]:
        if self.preset.arrivals <= 0:
            return {}
        return {"arrival": Stream(self._arrive, self._pause)}

    def _pause(self, draw: Draw) -> float:
        return draw.expovariate(self.preset.arrivals)

    def run_due(self, now: float, cluster: WorkloadCluster) -> None:
        # Counting looks at every pod, so it is not done for each arrival.
        if not 0 <= now - self._counted_at < _COUNT_EVERY:
            self._room = self.preset.most_pods - _unfinished(cluster)
            self._counted_at = now
        super().run_due(now, cluster)

    def _arrive(self, moment: Moment) -> None:
        if self._room <= 0:
            return
        self._room -= 1
        draw = moment.draw
        run = max(_SHORTEST_RUN, draw.expovariate(1 / self.preset.run_seconds))
        name = f"task-{moment.number:07d}-{draw.suffix()}"
        obj = synthetic_pod(name, draw, round(run), self._scheduler_name, with_gpus=self._has_gpus)
        create_if_absent(moment.cluster, obj)


def _unfinished(cluster: WorkloadCluster) -> int:
    found = cluster.list("Pod", field_selector="status.phase!=Succeeded,status.phase!=Failed")
    return len(found.items)
