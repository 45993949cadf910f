"""A native gang in the whole scheduler, in virtual time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from scheduler_core.api import NATIVE_POD_GROUP
from scheduler_core.framework.interface import Plugin
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

KEY = "default/g"


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
