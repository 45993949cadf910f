"""Random clusters in which topology, labels and namespaces meet each other often."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from scheduler_core.api import Namespace, Node, Pod

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
KEYS = (HOSTNAME, ZONE, "rack")
NAMESPACES = ("red", "blue", "gone")
NODE_NAMES = ("n0", "n1", "n2", "n3")

_label_values = st.sampled_from(("a", "b"))
pod_labels = st.dictionaries(st.sampled_from(("app", "tier")), _label_values, max_size=2)
expressions = st.one_of(
    st.fixed_dictionaries(
        {
            "key": st.sampled_from(("app", "tier")),
            "operator": st.sampled_from(("In", "NotIn")),
            "values": st.lists(_label_values, min_size=1, max_size=2, unique=True),
        }
    ),
    st.fixed_dictionaries(
        {
            "key": st.sampled_from(("app", "tier")),
            "operator": st.sampled_from(("Exists", "DoesNotExist")),
        }
    ),
)
selectors = st.fixed_dictionaries(
    {}, optional={"matchLabels": pod_labels, "matchExpressions": st.lists(expressions, max_size=2)}
)
spread_constraints = st.fixed_dictionaries(
    {
        "maxSkew": st.integers(1, 3),
        "topologyKey": st.sampled_from(KEYS),
        "whenUnsatisfiable": st.sampled_from(("DoNotSchedule", "ScheduleAnyway")),
    },
    optional={
        "labelSelector": selectors,
        "matchLabelKeys": st.lists(st.sampled_from(("app", "tier")), max_size=2, unique=True),
        "minDomains": st.integers(1, 4),
        "nodeAffinityPolicy": st.sampled_from(("Honor", "Ignore")),
        "nodeTaintsPolicy": st.sampled_from(("Honor", "Ignore")),
    },
)
affinity_terms = st.fixed_dictionaries(
    {"topologyKey": st.sampled_from(KEYS)},
    optional={
        "labelSelector": selectors,
        "namespaces": st.lists(st.sampled_from(NAMESPACES), max_size=2, unique=True),
        "namespaceSelector": selectors,
    },
)
_weighted = st.fixed_dictionaries(
    {"weight": st.integers(1, 100), "podAffinityTerm": affinity_terms}
)
pod_affinities = st.fixed_dictionaries(
    {},
    optional={
        "requiredDuringSchedulingIgnoredDuringExecution": st.lists(affinity_terms, max_size=2),
        "preferredDuringSchedulingIgnoredDuringExecution": st.lists(_weighted, max_size=2),
    },
)


@st.composite
def nodes(draw: st.DrawFn, name: str) -> Node:
    """A node that may lack topology labels, or have empty ones, and may be tainted."""
    labels: dict[str, str] = {}
    if draw(st.integers(0, 5)):
        labels[HOSTNAME] = name
    for key in (ZONE, "rack"):
        value = draw(st.sampled_from((None, "", "x", "x", "y", "z")))
        if value is not None:
            labels[key] = value
    if draw(st.booleans()):
        labels["disk"] = "ssd"
    taint = {"key": "gpu", "effect": draw(st.sampled_from(("NoSchedule", "PreferNoSchedule")))}
    taints = [taint] if draw(st.integers(0, 3)) == 0 else []
    return Node.from_dict(
        {"metadata": {"name": name, "labels": labels}, "spec": {"taints": taints}}
    )


@st.composite
def pods(draw: st.DrawFn, name: str, node: str = "") -> Pod:
    """A pod, on ``node`` or pending, with affinity and spread constraints."""
    metadata: dict[str, Any] = {
        "name": name,
        "uid": f"uid-{name}",
        "namespace": draw(st.sampled_from(NAMESPACES)),
        "labels": draw(pod_labels),
    }
    if node and draw(st.integers(0, 4)) == 0:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    spec: dict[str, Any] = {
        "containers": [{"name": "c", "image": "i"}],
        "nodeName": node,
        "affinity": draw(
            st.fixed_dictionaries(
                {}, optional={"podAffinity": pod_affinities, "podAntiAffinity": pod_affinities}
            )
        ),
    }
    if not node:
        spec["topologySpreadConstraints"] = draw(st.lists(spread_constraints, max_size=3))
        spec["tolerations"] = [{"operator": "Exists"}] if draw(st.booleans()) else []
        if draw(st.integers(0, 3)) == 0:
            spec["nodeSelector"] = {"disk": "ssd"}
    return Pod.from_dict({"metadata": metadata, "spec": spec})


@st.composite
def namespaces(draw: st.DrawFn) -> list[Namespace]:
    """Objects for all namespaces but one, of which pods exist all the same."""
    return [
        Namespace.from_dict({"metadata": {"name": name, "labels": draw(pod_labels)}})
        for name in NAMESPACES[:2]
    ]
