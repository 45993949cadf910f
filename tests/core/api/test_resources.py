"""What a pod asks of a node: every rule of kube-scheduler 1.36's PodRequests."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from scheduler_core.api import (
    HostPort,
    Pod,
    assigned_requests,
    host_ports,
    is_extended_resource,
    is_known_resource,
    nonzero_requests,
    pod_requests,
    ports_conflict,
    scoring_requests,
)
from scheduler_core.api.containers import WILDCARD_IP
from scheduler_core.testing.builders import PodBuilder, make_pod

MI = 2**20


def pod() -> PodBuilder:
    return make_pod("p")


@pytest.mark.parametrize(
    ("built", "expected"),
    [
        pytest.param(pod(), {}, id="nothing asked"),
        pytest.param(pod().req(cpu="500u").req(cpu="500u"), {"cpu": 1}, id="two of 500u are 1m"),
        pytest.param(pod().req(cpu="1u"), {"cpu": 1}, id="1u is 1m"),
        pytest.param(
            pod().req(memory="0.5").req(memory="0.5"), {"memory": 1}, id="halves of a byte add up"
        ),
        pytest.param(
            pod().req(cpu="1", memory="1Mi").req(cpu="250m"),
            {"cpu": 1250, "memory": MI},
            id="containers add up",
        ),
        pytest.param(pod().req(cpu="0", memory="1Mi"), {"memory": MI}, id="0 is left out"),
        pytest.param(
            pod().req({"foo": 1, "storage": "1Gi", "pods": 3, "cpu": "1"}),
            {"cpu": 1000},
            id="unknown resources are ignored",
        ),
        pytest.param(
            pod().req({"example.com/gpu": 2, "hugepages-2Mi": "4Mi", "ephemeral-storage": "1k"}),
            {"example.com/gpu": 2, "hugepages-2Mi": 4 * MI, "ephemeral-storage": 1000},
            id="scalars are counted",
        ),
        pytest.param(
            pod().init_container(requests={"cpu": "2"}).req(cpu="1", memory="1Mi"),
            {"cpu": 2000, "memory": MI},
            id="the larger of init and main, per resource",
        ),
        pytest.param(
            pod()
            .init_container(requests={"cpu": "1"})
            .init_container(requests={"cpu": "3"})
            .req(cpu="2"),
            {"cpu": 3000},
            id="init containers run one after another",
        ),
        pytest.param(
            pod().init_container(requests={"cpu": "1"}, sidecar=True).req(cpu="2"),
            {"cpu": 3000},
            id="a sidecar adds to main",
        ),
        pytest.param(
            pod()
            .init_container(requests={"cpu": "1"}, sidecar=True)
            .init_container(requests={"cpu": "4"})
            .req(cpu="2"),
            {"cpu": 5000},
            id="an init container runs beside the sidecars before it",
        ),
        pytest.param(
            pod()
            .init_container(requests={"cpu": "4"})
            .init_container(requests={"cpu": "1"}, sidecar=True)
            .req(cpu="2"),
            {"cpu": 4000},
            id="but not beside those after it",
        ),
        pytest.param(
            pod().req(cpu="1").overhead(cpu="250m", memory="1Mi"),
            {"cpu": 1250, "memory": MI},
            id="overhead comes on top",
        ),
        pytest.param(
            pod().req(cpu="4", memory="4Mi").pod_req(cpu="2"),
            {"cpu": 2000, "memory": 4 * MI},
            id="pod level replaces, also downwards, only what it names",
        ),
        pytest.param(
            pod().req(cpu="1").pod_req({"cpu": "2", "example.com/gpu": 5, "ephemeral-storage": 7}),
            {"cpu": 2000},
            id="pod level speaks only of cpu, memory and huge pages",
        ),
        pytest.param(
            pod().req(cpu="1").pod_req(cpu="2").overhead(cpu="1"),
            {"cpu": 3000},
            id="overhead comes on top of pod level too",
        ),
    ],
)
def test_pod_requests(built: PodBuilder, expected: Mapping[str, int]) -> None:
    assert dict(pod_requests(built.obj())) == expected


def test_two_pods_of_1u_are_2m_together() -> None:
    first, second = pod().req(cpu="1u").obj(), make_pod("q").req(cpu="1u").obj()
    assert pod_requests(first)["cpu"] + pod_requests(second)["cpu"] == 2


def test_requests_are_worked_out_once_and_cannot_be_changed() -> None:
    built = pod().req(cpu="1").obj()
    requests = pod_requests(built)
    assert pod_requests(built) is requests
    with pytest.raises(TypeError):
        requests["cpu"] = 5  # type: ignore[index]


@pytest.mark.parametrize(
    ("built", "expected"),
    [
        pytest.param(pod().req(cpu="1"), {"cpu": 1000}, id="no status"),
        pytest.param(
            pod()
            .container("c", requests={"cpu": "1"})
            .container_status("c", requests={"cpu": "2"}, allocated={"cpu": "3"}),
            {"cpu": 3000},
            id="the largest of spec, status and allocated",
        ),
        pytest.param(
            pod()
            .container("c", requests={"cpu": "5"})
            .container_status("c", requests={"cpu": "2"}, allocated={"cpu": "3"}),
            {"cpu": 5000},
            id="a wish to grow counts",
        ),
        pytest.param(
            pod()
            .container("c", requests={"cpu": "5"})
            .container_status("c", requests={"cpu": "2"}, allocated={"cpu": "3"})
            .condition("PodResizePending", "True", "Infeasible"),
            {"cpu": 3000},
            id="not if it is infeasible",
        ),
        pytest.param(
            pod()
            .container("c", requests={"cpu": "5"})
            .container_status("c", requests={"cpu": "2"})
            .condition("PodResizePending", "True", "Deferred"),
            {"cpu": 5000},
            id="deferred still counts",
        ),
        pytest.param(
            pod().container("c", requests={"cpu": "1"}).container_status("c"),
            {"cpu": 1000},
            id="a status without resources says nothing",
        ),
        pytest.param(
            pod()
            .init_container("i", requests={"cpu": "1"})
            .container("c", requests={"cpu": "1"})
            .container_status("i", requests={"cpu": "9"}, init=True),
            {"cpu": 1000},
            id="an init container's status says nothing",
        ),
        pytest.param(
            pod()
            .init_container("i", requests={"cpu": "1"}, sidecar=True)
            .container("c", requests={"cpu": "1"})
            .container_status("i", requests={"cpu": "9"}, init=True),
            {"cpu": 10000},
            id="a sidecar's does",
        ),
    ],
)
def test_assigned_requests(built: PodBuilder, expected: Mapping[str, int]) -> None:
    assert dict(assigned_requests(built.obj())) == expected


def test_pod_level_resizes_count_for_assigned_pods_only() -> None:
    raw = pod().req(cpu="1").pod_req(cpu="2").raw()
    raw["status"]["resources"] = {"requests": {"cpu": "3"}}
    raw["status"]["allocatedResources"] = {"cpu": "4"}
    built = Pod.from_dict(raw)
    assert pod_requests(built)["cpu"] == 2000
    assert assigned_requests(built)["cpu"] == 4000


@pytest.mark.parametrize(
    ("built", "expected"),
    [
        pytest.param(pod(), (100, 200 * MI), id="defaults: 100m and 200 MiB"),
        pytest.param(pod().req().req(), (200, 400 * MI), id="per container"),
        pytest.param(pod().req(cpu="0", memory="0"), (0, 0), id="an explicit 0 stays 0"),
        pytest.param(pod().req(cpu="1"), (1000, 200 * MI), id="per resource"),
        pytest.param(
            pod().init_container().init_container().req(cpu="50m", memory="1Mi"),
            (100, 200 * MI),
            id="init containers get defaults too",
        ),
        pytest.param(
            pod().req().overhead(cpu="10m"), (110, 200 * MI), id="overhead on top of defaults"
        ),
        pytest.param(
            pod().req().pod_req(cpu="2"),
            (2000, 200 * MI),
            id="pod level: a default only for what is missing",
        ),
        pytest.param(
            pod().req(memory="1Mi").req().pod_req(cpu="2"),
            (2000, MI),
            id="pod level: no default for what some container asks",
        ),
    ],
)
def test_nonzero_requests(built: PodBuilder, expected: tuple[int, int]) -> None:
    assert nonzero_requests(built.obj()) == expected


def test_scoring_ignores_pod_level_requests() -> None:
    built = pod().req().pod_req(cpu="2").obj()
    assert dict(scoring_requests(built)) == {"cpu": 100, "memory": 200 * MI}
    assert dict(pod_requests(built)) == {"cpu": 2000}


@pytest.mark.parametrize(
    ("name", "known", "extended"),
    [
        pytest.param("cpu", True, False, id="cpu"),
        pytest.param("memory", True, False, id="memory"),
        pytest.param("ephemeral-storage", True, False, id="ephemeral-storage"),
        pytest.param("pods", False, False, id="pods"),
        pytest.param("storage", False, False, id="storage"),
        pytest.param("foo", False, False, id="unqualified"),
        pytest.param("example.com/gpu", True, True, id="extended"),
        pytest.param("requests.example.com/gpu", False, False, id="quota name"),
        pytest.param("hugepages-1Gi", True, False, id="huge pages"),
        pytest.param("kubernetes.io/batch", True, False, id="kubernetes.io"),
        pytest.param("x.kubernetes.io/y", True, False, id="under kubernetes.io"),
        pytest.param("attachable-volumes-csi-x", True, False, id="attachable volumes"),
    ],
)
def test_which_resources_are_known(name: str, known: bool, extended: bool) -> None:
    assert (is_known_resource(name), is_extended_resource(name)) == (known, extended)


def test_host_ports_of_containers_and_sidecars_count() -> None:
    port = {"containerPort": 80, "hostPort": 80}
    built = (
        pod()
        .init_container(ports=[{"containerPort": 1, "hostPort": 1}])
        .init_container(ports=[{"containerPort": 2, "hostPort": 2}], sidecar=True)
        .container(ports=[port, {"containerPort": 81}])
        .host_port(53, "UDP", "10.0.0.1")
        .obj()
    )
    assert host_ports(built) == (
        HostPort(WILDCARD_IP, "TCP", 80),
        HostPort("10.0.0.1", "UDP", 53),
        HostPort(WILDCARD_IP, "TCP", 2),
    )
    assert host_ports(pod().req(cpu="1").obj()) == ()


@pytest.mark.parametrize(
    ("other", "conflict"),
    [
        pytest.param(HostPort("10.0.0.1", "TCP", 80), True, id="same"),
        pytest.param(HostPort(WILDCARD_IP, "TCP", 80), True, id="wildcard"),
        pytest.param(HostPort("10.0.0.2", "TCP", 80), False, id="other address"),
        pytest.param(HostPort("::", "TCP", 80), False, id=":: is no wildcard"),
        pytest.param(HostPort("10.0.0.1", "UDP", 80), False, id="other protocol"),
        pytest.param(HostPort("10.0.0.1", "TCP", 81), False, id="other port"),
    ],
)
def test_host_port_conflicts(other: HostPort, conflict: bool) -> None:
    port = HostPort("10.0.0.1", "TCP", 80)
    assert port.conflicts(other) is conflict
    assert other.conflicts(port) is conflict
    assert ports_conflict([port], [HostPort(WILDCARD_IP, "TCP", 1), other]) is conflict
