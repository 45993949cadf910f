"""The demo's cluster and its people: what there is, by name, and how large."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from scheduler_core.ports import Json

from .manifests import GPU, node

__all__ = ["GANGS", "NAMESPACES", "PEOPLE", "SERVICES", "GangShape", "Service", "demo_nodes"]

NAMESPACES: Final = ("shop", "research", "analytics")
ZONES: Final = ("eu-west-1a", "eu-west-1b", "eu-west-1c")
PEOPLE: Final = ("ada.marsh", "jun.okafor", "lena.vogt", "mateo.ruiz", "priya.nair")

_REGISTRY: Final = "registry.demo.example"
_MEBI: Final = 1024 * 1024
_GPU_TAINT: Final[Json] = {"key": GPU, "value": "present", "effect": "NoSchedule"}
_SPOT_TAINT: Final[Json] = {"key": "demo.example/spot", "effect": "PreferNoSchedule"}
_BATCH_TAINT: Final[Json] = {"key": "dedicated", "value": "batch", "effect": "NoSchedule"}


def image(name: str, tag: str = "v1.4.2") -> str:
    return f"{_REGISTRY}/{name}:{tag}"


@dataclass(frozen=True, slots=True)
class Service:
    """Pods of one kind. `share`: how often among all; `minutes`: how long one runs on average."""

    name: str
    namespace: str
    share: int
    cpu: tuple[str, ...]
    memory: tuple[str, ...]
    minutes: float
    spec: Json = field(default_factory=dict)
    gpus: str = ""

    @property
    def image(self) -> str:
        return image(self.name)


def _requires(key: str, *values: str) -> Json:
    term = {"matchExpressions": [{"key": key, "operator": "In", "values": list(values)}]}
    required = {"nodeSelectorTerms": [term]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def _prefers(key: str, *values: str) -> Json:
    term = {"matchExpressions": [{"key": key, "operator": "In", "values": list(values)}]}
    preferred = [{"weight": 80, "preference": term}]
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}


def _tolerates(key: str) -> list[Json]:
    return [{"key": key, "operator": "Exists"}]


SERVICES: Final = (
    Service("web-frontend", "shop", 8, ("250m", "500m"), ("256Mi", "512Mi"), 3.0),
    Service("cart", "shop", 6, ("200m", "400m"), ("256Mi",), 2.5),
    Service(
        "checkout",
        "shop",
        4,
        ("500m", "1"),
        ("512Mi", "1Gi"),
        3.0,
        {"affinity": _prefers("topology.kubernetes.io/zone", ZONES[0])},
    ),
    Service("search-api", "shop", 4, ("1", "2"), ("2Gi", "4Gi"), 3.5),
    Service(
        "recommendations",
        "shop",
        3,
        ("2",),
        ("8Gi", "12Gi"),
        4.0,
        {"affinity": _requires("node.kubernetes.io/instance-type", "mem-16", "std-16")},
    ),
    Service(
        "metrics-gateway",
        "analytics",
        2,
        ("500m",),
        ("1Gi",),
        3.0,
        {
            "containers": [
                {
                    "name": "main",
                    "image": image("metrics-gateway"),
                    "ports": [{"containerPort": 9091, "hostPort": 9091}],
                    "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}},
                }
            ]
        },
    ),
    Service("report-builder", "analytics", 4, ("1", "1500m"), ("2Gi",), 2.0),
    Service(
        "nightly-etl",
        "analytics",
        4,
        ("2", "4"),
        ("4Gi", "8Gi"),
        2.5,
        {
            "tolerations": _tolerates("dedicated"),
            "affinity": _prefers("demo.example/pool", "batch"),
        },
    ),
    Service(
        "notebook",
        "research",
        3,
        ("1", "2"),
        ("4Gi",),
        4.0,
        {"tolerations": _tolerates("demo.example/spot")},
    ),
    Service(
        "inference",
        "research",
        3,
        ("2",),
        ("8Gi",),
        3.5,
        {"tolerations": _tolerates(GPU)},
        gpus="1",
    ),
)


@dataclass(frozen=True, slots=True)
class GangShape:
    """A job whose members run together or not at all. `gpus`: of each member; 0: none."""

    name: str
    namespace: str
    members: tuple[int, ...]
    cpu: str
    memory: str
    gpus: int
    minutes: float


GANGS: Final = (
    GangShape("resnet-train", "research", (4, 6), "3", "12Gi", 1, 2.5),
    GangShape("llm-finetune", "research", (2, 3), "4", "24Gi", 2, 3.0),
    GangShape("protein-fold", "research", (3, 5), "4", "16Gi", 1, 2.0),
    GangShape("spark-join", "analytics", (5, 8), "1", "2Gi", 0, 2.0),
    GangShape("mpi-weather", "analytics", (6, 9), "2", "3Gi", 0, 2.5),
    GangShape("graph-rank", "analytics", (3, 4), "2", "6Gi", 0, 1.5),
)

#: what the pods that fit nowhere ask for, and which nodes they refuse
MISFITS: Final[tuple[tuple[str, str, dict[str, str], Json], ...]] = (
    ("video-render", "research", {"cpu": "96", "memory": "64Gi"}, {}),
    (
        "edge-cache",
        "shop",
        {"cpu": "500m", "memory": "1Gi"},
        {"nodeSelector": {"demo.example/site": "antwerp"}},
    ),
    (
        "pretraining",
        "research",
        {"cpu": "8", "memory": "64Gi", GPU: "16"},
        {"tolerations": _tolerates(GPU)},
    ),
    (
        "ledger-replica",
        "shop",
        {"cpu": "1", "memory": "200Gi"},
        {"affinity": _requires("topology.kubernetes.io/zone", ZONES[2])},
    ),
)


@dataclass(frozen=True, slots=True)
class _Shape:
    """Nodes of one kind, so many in each zone."""

    prefix: str
    type: str
    in_zone: int
    amounts: dict[str, str]
    pool: str
    taints: tuple[Json, ...] = ()
    labels: dict[str, str] = field(default_factory=dict)


_SHAPES: Final = (
    _Shape("std8", "std-8", 2, {"cpu": "8", "memory": "32Gi"}, "general"),
    _Shape("std16", "std-16", 2, {"cpu": "16", "memory": "64Gi"}, "general"),
    _Shape("mem16", "mem-16", 1, {"cpu": "16", "memory": "128Gi"}, "general"),
    _Shape("batch", "std-16", 1, {"cpu": "16", "memory": "48Gi"}, "batch", (_BATCH_TAINT,)),
    _Shape("spot", "std-8", 1, {"cpu": "8", "memory": "16Gi"}, "spot", (_SPOT_TAINT,)),
    _Shape(
        "gpu",
        "gpu-48",
        1,
        {"cpu": "48", "memory": "192Gi", GPU: "8"},
        "gpu",
        (_GPU_TAINT,),
        {"demo.example/gpu-model": "A10"},
    ),
)


def demo_nodes() -> list[Json]:
    """24 nodes in 3 zones; one of them is cordoned."""
    nodes = []
    for letter, zone in zip("abc", ZONES, strict=True):
        for shape in _SHAPES:
            for number in range(1, shape.in_zone + 1):
                name = f"{shape.prefix}-{letter}{number}"
                nodes.append(_demo_node(name, zone, shape))
    return nodes


def _demo_node(name: str, zone: str, shape: _Shape) -> Json:
    return node(
        name,
        zone,
        shape.amounts,
        labels={
            "node.kubernetes.io/instance-type": shape.type,
            "demo.example/pool": shape.pool,
            **shape.labels,
        },
        taints=shape.taints,
        unschedulable=name == "std8-c2",
        images=_images_on(name, shape),
    )


def _images_on(name: str, shape: _Shape) -> dict[str, int]:
    """Images that lie on a node: the shop's on half of the general ones, models on GPU nodes."""
    if shape.pool == "gpu":
        return {image("inference"): 6_200 * _MEBI, image("llm-finetune"): 9_400 * _MEBI}
    if shape.pool == "general" and name.endswith("1"):
        return {image("web-frontend"): 480 * _MEBI, image("search-api"): 1_350 * _MEBI}
    return {}
