"""Random clusters and pods that meet each other often: few labels, taints, ports and images."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from scheduler_core.api import Node, Pod

GPU = "example.com/gpu"
KEYS = ("zone", "disk", "cpus")
VALUES = ("a", "b", "8", "16", "-1")
IMAGES = ("busybox", "host:5000/app", "app:1", "app@sha256:0")
TAINTS = ("dedicated", "gpu", "node.kubernetes.io/unschedulable")
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
MIB = 1024 * 1024

quantities = {
    "cpu": st.sampled_from(("0", "1m", "250m", "1", "2", "3500m")),
    "memory": st.sampled_from(("0", "1", "100Mi", "1Gi", "3Gi")),
    "ephemeral-storage": st.sampled_from(("0", "1Gi", "5Gi")),
    GPU: st.sampled_from(("0", "1", "2")),
    "other.com/nic": st.sampled_from(("1", "3")),
    "hugepages-2Mi": st.sampled_from(("0", "2Mi")),
}
requests = st.fixed_dictionaries({}, optional=quantities)
labels = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES), max_size=3)


def _list(items: st.SearchStrategy[Any], most: int) -> st.SearchStrategy[list[Any]]:
    return st.lists(items, max_size=most)


taints = st.fixed_dictionaries(
    {
        "key": st.sampled_from(TAINTS),
        "value": st.sampled_from(("", "x")),
        "effect": st.sampled_from(EFFECTS),
    }
)
tolerations = st.fixed_dictionaries(
    {},
    optional={
        "key": st.sampled_from(TAINTS),
        "operator": st.sampled_from(("Exists", "Equal", "Gt")),
        "value": st.sampled_from(("", "x")),
        "effect": st.sampled_from(EFFECTS),
    },
)
ports = st.fixed_dictionaries(
    {"containerPort": st.just(80), "hostPort": st.sampled_from((0, 80, 443))},
    optional={
        "hostIP": st.sampled_from(("", "0.0.0.0", "10.0.0.1", "10.0.0.2", "::")),  # noqa: S104
        "protocol": st.sampled_from(("TCP", "UDP")),
    },
)
containers = st.fixed_dictionaries(
    {"image": st.sampled_from((*IMAGES, "app:2"))},
    optional={"resources": st.fixed_dictionaries({"requests": requests}), "ports": _list(ports, 2)},
)
expressions = st.fixed_dictionaries(
    {
        "key": st.sampled_from(KEYS),
        "operator": st.sampled_from(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Bad")),
        "values": st.lists(st.sampled_from(VALUES), max_size=10, unique=True),
    }
)
fields = st.fixed_dictionaries(
    {
        "key": st.sampled_from(("metadata.name", "metadata.name", "spec.other")),
        "operator": st.sampled_from(("In", "NotIn", "Exists")),
        "values": st.lists(st.sampled_from(("n0", "n1", "n9", "")), max_size=2),
    }
)
terms = st.fixed_dictionaries(
    {}, optional={"matchExpressions": _list(expressions, 2), "matchFields": _list(fields, 2)}
)
node_affinities = st.fixed_dictionaries(
    {},
    optional={
        "requiredDuringSchedulingIgnoredDuringExecution": st.fixed_dictionaries(
            {"nodeSelectorTerms": _list(terms, 3)}
        ),
        "preferredDuringSchedulingIgnoredDuringExecution": _list(
            st.fixed_dictionaries({"weight": st.integers(0, 100), "preference": terms}), 3
        ),
    },
)


@st.composite
def nodes(draw: st.DrawFn, name: str) -> Node:
    """A node called ``name``."""
    images = draw(_list(st.sampled_from((*IMAGES, "busybox:latest", "host:5000/app:latest")), 3))
    sizes = st.sampled_from((1, 24 * MIB, 300 * MIB, 5000 * MIB))
    allocatable = draw(requests) | {"pods": draw(st.sampled_from(("0", "1", "2", "110")))}
    return Node.from_dict(
        {
            "metadata": {"name": name, "labels": draw(labels)},
            "spec": {"unschedulable": draw(st.booleans()), "taints": draw(_list(taints, 3))},
            "status": {
                "allocatable": allocatable,
                "images": [{"names": [image], "sizeBytes": draw(sizes)} for image in images],
            },
        }
    )


@st.composite
def pods(draw: st.DrawFn, name: str, node: str = "") -> Pod:
    """A pod, on ``node`` or pending; a pending one may name a node all the same."""
    spec: dict[str, Any] = {
        "containers": [
            {"name": f"c{i}", **c}
            for i, c in enumerate(draw(st.lists(containers, min_size=1, max_size=3)))
        ],
        "initContainers": [
            {"name": f"i{i}", "restartPolicy": draw(st.sampled_from(("", "Always"))), **c}
            for i, c in enumerate(draw(_list(containers, 2)))
        ],
        "tolerations": draw(_list(tolerations, 3)),
        "affinity": {"nodeAffinity": draw(node_affinities)},
        "nodeName": node or draw(st.sampled_from(("", "", "n0", "elsewhere"))),
        "volumes": [
            {"name": f"v{i}", "image": {"reference": image}}
            for i, image in enumerate(draw(_list(st.sampled_from(IMAGES), 1)))
        ],
    }
    if draw(st.booleans()):
        spec["nodeSelector"] = draw(labels)
    if draw(st.booleans()):
        spec["resources"] = {"requests": draw(requests)}
    return Pod.from_dict({"metadata": {"name": name, "uid": f"uid-{name}"}, "spec": spec})
