"""ImageLocality, rule by rule."""

from __future__ import annotations

import pytest

from scheduler_core.api import Pod
from scheduler_core.plugins.image_locality import ImageLocality, normalized_image_name
from scheduler_core.testing.builders import make_node, make_pod
from tests.plugins.support import FakeHandle, score_both

MIB = 1024 * 1024


@pytest.mark.parametrize(
    "name, expected",
    [
        pytest.param("busybox", "busybox:latest", id="no-tag"),
        pytest.param("busybox:1", "busybox:1", id="tag"),
        pytest.param("host:5000/x", "host:5000/x:latest", id="a-port-is-no-tag"),
        pytest.param("host:5000/x:2", "host:5000/x:2", id="port-and-tag"),
        pytest.param("x@sha256:ab", "x@sha256:ab", id="digest"),
    ],
)
def test_names(name: str, expected: str) -> None:
    assert normalized_image_name(name) == expected


def scores(pod: Pod) -> list[int]:
    handle = FakeHandle(
        [
            make_node("both").image("a:1", size=500 * MIB).image("b:1", size=300 * MIB).obj(),
            make_node("first").image("a:1", "alias:1", size=500 * MIB).obj(),
            make_node("small").image("c:latest", size=40 * MIB).obj(),
            make_node("none").obj(),
        ]
    )
    return score_both(ImageLocality({}, handle), pod, handle.nodes)


def expected(*found_mib: int, containers: int = 1) -> list[int]:
    top = 1000 * containers
    return [100 * (min(max(mib, 23), top) - 23) // (top - 23) for mib in found_mib]


@pytest.mark.parametrize(
    "pod, answer",
    [
        pytest.param(
            make_pod("p").container(image="a:1"), expected(250, 250, 0, 0), id="half-of-nodes"
        ),
        pytest.param(
            make_pod("p").container(image="alias:1"), expected(0, 125, 0, 0), id="another-name"
        ),
        pytest.param(
            make_pod("p").container(image="a:1").container(image="a:1"),
            expected(500, 500, 0, 0, containers=2),
            id="once-per-container",
        ),
        pytest.param(
            make_pod("p").container(image="a:1").init_container(image="b:1"),
            expected(325, 250, 0, 0, containers=2),
            id="init-containers-count",
        ),
        pytest.param(
            make_pod("p").container(image="a:1").volume("v", image={"reference": "b:1"}),
            expected(325, 250, 0, 0),
            id="an-image-volume-adds-size-but-no-container",
        ),
        pytest.param(
            make_pod("p").container(image="c"), expected(0, 0, 10, 0), id="too-small-to-count"
        ),
    ],
)
def test_scores(pod: object, answer: list[int]) -> None:
    assert scores(pod.obj()) == answer  # type: ignore[attr-defined]
