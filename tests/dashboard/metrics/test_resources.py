"""/metrics/resources: what a pod asks for, as the scheduler counts it."""

from __future__ import annotations

from typing import Any

import pytest

from dashboard.metrics.resources import samples_of
from scheduler_core.api import Pod


def pod(**spec: Any) -> Pod:
    meta = {"name": "p", "namespace": "a", "uid": "u"}
    return Pod.from_dict({"metadata": meta, "spec": {"nodeName": "n", "priority": 5, **spec}})


def container(name: str, requests: Any = None, limits: Any = None, **more: Any) -> dict[str, Any]:
    return {"name": name, "resources": {"requests": requests or {}, "limits": limits or {}}, **more}


def amounts(metric: str, found: Pod) -> dict[str, tuple[Any, str]]:
    """resource -> (amount, unit)"""
    series = samples_of([found])[f"kube_pod_resource_{metric}"]
    assert {labels[:5] for labels in series} <= {("a", "p", "n", "default-scheduler", "5")}
    return {labels[5]: (value, labels[6]) for labels, value in series.items()}


@pytest.mark.parametrize(
    ("spec", "requests", "limits"),
    [
        pytest.param(
            {"containers": [container("c", {"cpu": "250m"}, {"cpu": "1"}), container("d")]},
            {"cpu": (0.25, "cores")},
            {"cpu": (1.0, "cores")},
            id="containers add up, zeros are left out",
        ),
        pytest.param(
            {
                "initContainers": [
                    container("first", {"memory": "3Gi"}),
                    container("sidecar", {"memory": "1Gi"}, restartPolicy="Always"),
                    container("second", {"memory": "1Gi"}),
                ],
                "containers": [container("c", {"memory": "1Gi"})],
            },
            {"memory": (3.0 * 2**30, "bytes")},
            {},
            id="an init container that needs more",
        ),
        pytest.param(
            {
                "overhead": {"cpu": "100m", "memory": "64Mi"},
                "containers": [container("c", {"cpu": "1"}, {"cpu": "2"})],
            },
            {"cpu": (1.1, "cores"), "memory": (64.0 * 2**20, "bytes")},
            {"cpu": (2.1, "cores")},
            id="overhead, on limits where there are some",
        ),
        pytest.param(
            {
                "resources": {"requests": {"cpu": "4"}},
                "containers": [container("c", {"cpu": "1", "example.org/gpu": "2"})],
            },
            {"cpu": (4.0, "cores"), "example.org/gpu": (2.0, "integer")},
            {},
            id="pod level, extended resources",
        ),
        pytest.param(
            {"containers": [container("c", {"hugepages-2Mi": "4Mi", "ephemeral-storage": "1Gi"})]},
            {"hugepages-2Mi": (4.0 * 2**20, "bytes"), "ephemeral-storage": (1.0 * 2**30, "bytes")},
            {},
            id="units",
        ),
    ],
)
def test_what_counts(spec: Any, requests: Any, limits: Any) -> None:
    assert amounts("request", pod(**spec)) == requests
    assert amounts("limit", pod(**spec)) == limits
