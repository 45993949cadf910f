"""A whole scheduler with real extenders: its configuration, nodes and pods, and what it decided."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scheduler_core.testing.builders import make_node, make_pod, make_priority_class
from scheduler_core.testing.harness import Harness
from tests.core.extender.server import FakeExtender

Start = Callable[..., FakeExtender]

GPU = "example.com/gpu"
MANAGED = {"managedResources": [{"name": GPU}]}


def entry(fake: FakeExtender, *verbs: str, **more: Any) -> dict[str, Any]:
    """The configuration of an extender with these verbs; it caches nodes unless told otherwise."""
    asked = {f"{verb}Verb": verb for verb in verbs}
    weight = {"weight": 1} if "prioritize" in verbs else {}
    return {"urlPrefix": fake.url, "nodeCacheCapable": True, **asked, **weight, **more}


def scheduler(*extenders: dict[str, Any], nodes: int = 3, **more: Any) -> Harness:
    """Nodes n0, n1, ... of 4 cpu each and, if not told otherwise, a pod p that asks for one."""
    made = more.pop("made", None) or [node(f"n{i}") for i in range(nodes)]
    pods = more.pop("pods", None) or [make_pod("p").req(cpu="1")]
    config = {"extenders": list(extenders), **more.pop("config", {})}
    nominated, before = more.pop("nominated", ""), more.pop("before", lambda h: None)
    classes = [make_priority_class(f"class-{value}", value) for value in (1, 2, 100)]
    h = Harness(nodes=made, objects={"PriorityClass": classes}, pods=pods, config=config, **more)
    before(h)
    if nominated:
        uid = h.pod("p")["metadata"]["uid"]
        h.cluster.patch_pod_status("default", "p", uid, nominated_node_name=nominated)
    h.settle()
    return h


def node(name: str, cpu: str = "4") -> Any:
    return make_node(name).capacity(cpu=cpu, memory="8Gi", pods="10")


def busy(name: str, on: str, cpu: str = "1") -> Any:
    return make_pod(name).req(cpu=cpu).node(on)


def of_class(pod: Any, priority: int) -> dict[str, Any]:
    """A pod of this priority: 0, 1, 2 or 100."""
    raw: dict[str, Any] = pod.raw()
    if priority:
        raw["spec"]["priorityClassName"] = f"class-{priority}"
    return raw


def rejections(h: Harness, pod: str = "p") -> list[tuple[str, str, int, bool]]:
    return [(r.plugin, r.reason, r.nodes, r.resolvable) for r in h.cycle(pod).rejections]
