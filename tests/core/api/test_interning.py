"""Specs are parsed once for all pods that share them, and nobody can tell."""

from __future__ import annotations

import copy
import dataclasses
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler_core.api import (
    InvalidObject,
    Pod,
    assigned_requests,
    host_ports,
    nonzero_requests,
    pod_requests,
    scoring_requests,
)
from scheduler_core.api.interning import Interned
from scheduler_core.testing.builders import make_pod
from scheduler_core.testing.pod_builder import PodBuilder


def again(raw: Any) -> Any:
    """The same JSON, decoded anew."""
    return json.loads(json.dumps(raw))


def template(name: str) -> PodBuilder:
    return make_pod(name).req(cpu="100m").host_port(8080).toleration("k").pvc("data")


def test_pods_of_a_template_share_their_spec_and_what_follows_from_it() -> None:
    one, other = template("a").obj(), Pod.from_dict(again(template("b").raw()))
    assert one.spec is other.spec
    for derived in (pod_requests, assigned_requests, nonzero_requests, scoring_requests):
        assert derived(one) is derived(other)
    assert host_ports(one) is host_ports(other)


def test_what_is_each_pods_own_stays_its_own() -> None:
    one, other = template("a").obj(), template("b").node("n2").label({"x": "y"}).obj()
    assert one.spec is other.spec
    assert (one.name, one.node_name, dict(one.labels)) == ("a", "", {})
    assert (other.name, other.node_name, dict(other.labels)) == ("b", "n2", {"x": "y"})
    raw = template("c").raw()
    assert Pod.from_dict(raw).raw is raw


@pytest.mark.parametrize(
    "later",
    [
        pytest.param(lambda raw: raw["spec"].update(nodeName="n1"), id="bound"),
        pytest.param(lambda raw: raw["metadata"].update(labels={"a": "b"}), id="labelled"),
        pytest.param(lambda raw: raw.update(status={"phase": "Running"}), id="running"),
    ],
)
def test_a_later_version_keeps_the_spec(later: Any) -> None:
    raw = template("a").raw()
    first = Pod.from_dict(raw)
    changed = again(raw)
    later(changed)
    assert Pod.from_dict(changed).spec is first.spec


def test_a_changed_spec_is_another() -> None:
    assert template("a").priority(1).obj().spec is not template("a").priority(2).obj().spec


def test_requests_that_the_kubelet_reports_are_the_pods_own() -> None:
    plain = make_pod("a").req(cpu="1").obj()
    grown = make_pod("b").req(cpu="1").container_status("c0", requests={"cpu": "3"}).obj()
    assert plain.spec is grown.spec
    assert (assigned_requests(plain), assigned_requests(grown)) == ({"cpu": 1000}, {"cpu": 3000})
    assert (nonzero_requests(plain)[0], nonzero_requests(grown)[0]) == (1000, 3000)
    assert pod_requests(grown) == {"cpu": 1000}


def test_a_kubelet_that_reports_what_was_asked_for_changes_nothing() -> None:
    plain = make_pod("a").req(cpu="1").obj()
    reported = make_pod("b").req(cpu="1").container_status("c0", requests={"cpu": "1"}).obj()
    allocated = make_pod("c").req(cpu="1").container_status("c0", allocated={"cpu": "9"}).obj()
    assert reported.status.reports_resources
    assert not allocated.status.reports_resources
    for pod in (reported, allocated):
        assert assigned_requests(pod) is assigned_requests(plain)


def test_faults_are_told_every_time() -> None:
    raw = make_pod("a").req(cpu="lots").raw()
    for _ in range(2):
        with pytest.raises(InvalidObject, match="lots"):
            Pod.from_dict(again(raw))
    raw = template("a").raw()
    Pod.from_dict(raw)
    raw["metadata"]["labels"] = {"a": 1}
    raw["status"] = {"startTime": "noon"}
    raw["spec"]["nodeName"] = 5
    with pytest.raises(InvalidObject) as refused:
        Pod.from_dict(raw)
    paths = [cause.field_path for cause in refused.value.causes]
    assert paths == ["metadata.labels[a]", "status.startTime", "spec.nodeName"]


@pytest.mark.parametrize("status", [[], "", 0, "Running"], ids=repr)
def test_a_status_that_is_no_object_is_a_fault(status: Any) -> None:
    with pytest.raises(InvalidObject, match="status: Invalid value"):
        Pod.from_dict({**make_pod("a").raw(), "status": status})


def test_the_token_volume_keeps_its_own_name() -> None:
    def pod(letters: str) -> Pod:
        name = f"kube-api-access-{letters}"
        return make_pod("a").volume(name, projected={"sources": []}).pvc("data").obj()

    one, other = pod("aaaaa"), pod("bbbbb")
    assert one.spec is other.spec
    assert one.volumes[0].name == "kube-api-access-aaaaa"
    assert other.volumes[0].name == "kube-api-access-bbbbb"
    assert one.claim_names() == other.claim_names() == ("data",)


_POD_FIELDS = sorted(
    {field.name for field in dataclasses.fields(Pod) if field.init} - {"raw", "spec", "status"}
    | {name for name, value in vars(Pod).items() if isinstance(value, property)} - {"claim_names"}
)


def _seen(pod: Pod) -> dict[str, Any]:
    return {name: getattr(pod, name) for name in _POD_FIELDS}


@given(
    cpu=st.sampled_from(["1", "250m"]),
    priority=st.none() | st.integers(0, 2),
    node=st.sampled_from(["", "n1"]),
    labels=st.dictionaries(st.sampled_from("ab"), st.sampled_from("xy")),
    phase=st.sampled_from(["Pending", "Running"]),
    zone=st.sampled_from(["", "a", "b"]),
)
def test_a_shared_spec_reads_as_one_that_is_parsed_alone(
    cpu: str, priority: int | None, node: str, labels: dict[str, str], phase: str, zone: str
) -> None:
    builder = make_pod("p").req(cpu=cpu).label(labels).phase(phase)
    if priority is not None:
        builder.priority(priority)
    if node:
        builder.node(node)
    if zone:
        builder.node_affinity_in("zone", zone)
    raw = builder.raw()
    # A spec that was never seen: parsed, not found.
    alone = copy.deepcopy(raw)
    alone["spec"]["hostname"] = f"{raw}"
    expected, shared = _seen(Pod.from_dict(alone)), _seen(Pod.from_dict(raw))
    assert expected.pop("signature") != shared.pop("signature")
    assert shared == expected


def test_properties_are_frozen_too() -> None:
    pod = make_pod("p").obj()
    for name in ("priority", "phase", "node_name", "signature"):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(pod, name, 5)


def test_the_oldest_are_forgotten() -> None:
    kept: Interned[int] = Interned(3)
    for number in range(100):
        kept.keep(b"%d" % number, number)
        assert kept.get(b"0") == 0  # in use
        assert len(kept) <= 6
    assert kept.get(b"99") == 99
    assert kept.get(b"50") is None


def test_what_is_made_from_much_is_not_kept() -> None:
    kept: Interned[int] = Interned(3)
    kept.keep(bytes(100_000), 1)
    assert len(kept) == 0
