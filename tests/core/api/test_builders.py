"""The public builders: what they build, and that they build it the same way each time."""

from __future__ import annotations

from typing import Any

from scheduler_core.api import Taint, Toleration, host_ports, pod_requests, validate
from scheduler_core.testing.builders import (
    ObjectBuilder,
    make_namespace,
    make_node,
    make_pod,
    make_pod_group,
    make_priority_class,
)


def test_a_pod_in_one_line() -> None:
    pod = (
        make_pod("p")
        .namespace("ns")
        .req(cpu="1", memory="1Gi")
        .label(app="a")
        .node("n1")
        .priority(5)
        .toleration("k", "v", "NoSchedule")
        .host_port(80)
        .pod_group("gang")
        .terminating()
        .obj()
    )
    assert pod.key == "ns/p"
    assert pod_requests(pod) == {"cpu": 1000, "memory": 2**30}
    assert (pod.node_name, pod.priority, pod.pod_group_key) == ("n1", 5, "ns/gang")
    assert pod.tolerations == (Toleration("k", "Equal", "v", "NoSchedule"),)
    assert [port.port for port in host_ports(pod)] == [80]
    assert pod.is_terminating


def test_a_node_in_one_line() -> None:
    node = (
        make_node("n")
        .capacity(cpu="4", memory="32Gi", pods="10")
        .label(disk="ssd")
        .zone("z", "r")
        .taint("k", "v")
        .unschedulable()
        .image("i:1", "i@sha256:0", size=5)
        .obj()
    )
    assert node.allocatable == {"cpu": 4000, "memory": 32 * 2**30, "pods": 10}
    assert node.labels["kubernetes.io/hostname"] == "n"
    assert node.zone_key == "r:\x00:z"
    assert node.taints == (Taint("k", "v", "NoSchedule"),)
    assert node.unschedulable


def test_uids_are_the_same_in_every_run_and_differ_by_namespace() -> None:
    assert make_pod("p").obj().uid == make_pod("p").obj().uid
    assert make_pod("p").obj().uid == "70ee5833-8efb-482e-9b11-5a2c19edd0dd"
    assert make_pod("p").obj().uid != make_pod("p").namespace("x").obj().uid
    assert make_pod("p").uid("mine").obj().uid == "mine"


def test_the_json_is_a_copy_of_its_own_each_time() -> None:
    builder = make_pod("p").req(cpu="1")
    first = builder.raw()
    first["spec"]["containers"].clear()
    assert pod_requests(builder.obj()) == {"cpu": 1000}


def test_what_is_built_is_valid() -> None:
    built: list[ObjectBuilder[Any]] = [
        make_pod("p").req({"example.com/gpu": 1}, cpu="1").pvc("c").spread("zone", {"a": "b"}),
        make_pod("q").pod_affinity("zone", {"a": "b"}, weight=3).gate("g").node_selector(a="b"),
        make_node("n").taint("k"),
        make_pod_group("g", 2).min_resources(cpu="1").timeout(5),
        make_namespace("ns"),
        make_priority_class("high", 5).global_default(),
    ]
    assert [validate(builder.raw()) for builder in built] == [[]] * len(built)
