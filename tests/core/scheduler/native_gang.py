"""A native gang in the whole scheduler, in virtual time, and plugins to try it with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from scheduler_core.api import NATIVE_POD_GROUP, Pod
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.interface import (
    BindPlugin,
    FilterPlugin,
    PermitPlugin,
    Plugin,
    ReservePlugin,
)
from scheduler_core.framework.node_info import NodeInfo
from scheduler_core.framework.status import Status
from scheduler_core.pod_group_attempt import GROUP_UNSCHEDULABLE
from scheduler_core.records import CycleRecord
from scheduler_core.testing.builders import (
    NativePodGroupBuilder,
    NodeBuilder,
    PodBuilder,
    make_native_pod_group,
    make_node,
    make_pod,
    uid_for,
)
from scheduler_core.testing.harness import Harness

EXAMPLES = Path(__file__).parents[3] / "examples"
VERSIONS = {
    "scheduling.k8s.io/v1alpha2": "PodGroupScheduled",
    "scheduling.k8s.io/v1alpha3": "PodGroupInitiallyScheduled",
    "scheduling.k8s.io/v1beta1": "PodGroupInitiallyScheduled",
}
WAITS = f"{GROUP_UNSCHEDULABLE}, waiting for minCount pods from a gang to be scheduled"


def profile(*more: str) -> dict[str, Any]:
    """The default profile with GangScheduling, and with plugins that have one kind of point."""
    enabled = [{"name": name} for name in ("GangScheduling", *more)]
    return {"plugins": {"multiPoint": {"enabled": enabled}}}


def member(name: str, cpu: str = "1", group: str = "g") -> PodBuilder:
    return make_pod(name).scheduling_group(group).req(cpu=cpu).uid(uid_for("Pod", "default", name))


def node(name: str, cpu: str) -> NodeBuilder:
    return make_node(name).capacity(cpu=cpu, memory="64Gi")


def gang_harness(
    *,
    nodes: Iterable[Any],
    pods: Iterable[Any],
    group: NativePodGroupBuilder | None = None,
    min_count: int = 2,
    plugins: Iterable[type[Plugin]] = (),
    objects: Mapping[str, Iterable[Any]] | None = None,
    **more: Any,
) -> Harness:
    """A scheduler whose one group is "g"; it has come to rest once."""
    plugins = list(plugins)
    groups = [make_native_pod_group("g", min_count) if group is None else group]
    found = Harness(
        nodes=nodes,
        pods=pods,
        objects={NATIVE_POD_GROUP: groups, **(objects or {})},
        profile=more.pop("profile", profile(*(p.name for p in plugins))),
        plugins=plugins,
        **more,
    )
    found.settle()
    return found


def group_condition(harness: Harness, name: str = "g") -> dict[str, Any]:
    """The group's condition, whatever its version calls it; {} if it has none."""
    raw = harness.cluster.get(NATIVE_POD_GROUP, "default", name)
    conditions = (raw.get("status") or {}).get("conditions") or []
    return next((c for c in conditions if c["type"].startswith("PodGroup")), {})


def nodes_of(harness: Harness, *names: str) -> list[str]:
    return [harness.node_of(name) for name in names]


def spy(name: str, **points: Callable[[CycleState, Pod, str], Any]) -> type[Plugin]:
    """A plugin that does at each of its points what a test tells it; the rest does nothing."""

    class Reserving(ReservePlugin):
        def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status:
            found: Status = points["reserve"](state, pod, node_name)
            return found

        def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
            points.get("unreserve", lambda *_: None)(state, pod, node_name)

    class Permitting(PermitPlugin):
        def permit(self, state: CycleState, pod: Pod, node_name: str) -> tuple[Status, float]:
            found: tuple[Status, float] = points["permit"](state, pod, node_name)
            return found

    class Filtering(FilterPlugin):
        def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
            found: Status = points["filter"](state, pod, node_info.name)
            return found

    class Binding(BindPlugin):
        def bind(self, state: CycleState, pod: Pod, node_name: str) -> Status:
            found: Status = points["bind"](state, pod, node_name)
            return found

    kinds = {"reserve": Reserving, "permit": Permitting, "filter": Filtering, "bind": Binding}
    bases = tuple(kinds[point] for point in points if point in kinds)

    class Spy(*bases):  # type: ignore[misc]
        def __init__(self, _args: Any, _handle: Any) -> None:
            pass

    Spy.name = name
    return Spy


def last(harness: Harness, name: str) -> CycleRecord:
    return harness.cycles(name)[-1]


def place(harness: Harness, name: str) -> str:
    return harness.scheduler.queue.place_of(f"default/{name}")


def with_class(name: str, cpu: str = "1") -> dict[str, Any]:
    """A member of high priority."""
    raw = member(name, cpu).raw()
    raw["spec"]["priorityClassName"] = "high"
    return raw


def high() -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "high"},
        "value": 1000,
    }
