"""A pod's signature: equal exactly for pods that every plugin must treat alike."""

from __future__ import annotations

import copy
import datetime
import enum
import json
import string
from collections.abc import Callable, Iterator
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler_core.api import Pod
from scheduler_core.api.content import content_of
from scheduler_core.testing.builders import make_pod

Json = dict[str, Any]

POD: Json = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "web-1",
        "namespace": "shop",
        "generateName": "web-",
        "uid": "u-1",
        "generation": 3,
        "resourceVersion": "77",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "deletionTimestamp": "2026-01-01T00:00:30Z",
        "deletionGracePeriodSeconds": 30,
        "managedFields": [{"manager": "kubectl"}],
        "labels": {"app": "web", "tier": "front"},
        "annotations": {"note": "x"},
        "finalizers": ["example.com/f"],
        "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "o-2"}
        ],
    },
    "spec": {
        "schedulerName": "default-scheduler",
        "priority": 7,
        "nodeName": "n1",
        "nodeSelector": {"disk": "ssd"},
        "schedulingGates": [{"name": "example.com/g"}],
        "hostNetwork": True,
        "containers": [
            {
                "name": "c",
                "image": "i:1",
                "env": [{"name": "A", "value": "b"}],
                "resources": {"requests": {"cpu": "1", "memory": "1Gi"}},
                "ports": [{"containerPort": 80, "hostPort": 8080}],
            }
        ],
        "volumes": [{"name": "a", "persistentVolumeClaim": {"claimName": "data"}}],
        "tolerations": [{"key": "k", "operator": "Exists", "tolerationSeconds": 5}],
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
        ],
    },
    "status": {
        "phase": "Pending",
        "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}],
    },
}

EXCLUDED = (
    ("metadata", "name"),
    ("metadata", "uid"),
    ("metadata", "generation"),
    ("metadata", "resourceVersion"),
    ("metadata", "creationTimestamp"),
    ("metadata", "managedFields"),
    ("metadata", "annotations"),
    ("spec", "nodeName"),
    ("status",),
)
#: counts by being there
DELETION = ("metadata", "deletionTimestamp")

Path = tuple[str | int, ...]


def _paths(value: Any, here: Path = ()) -> Iterator[Path]:
    """Where every value of a JSON document is, but the document itself."""
    steps: Any = ()
    if isinstance(value, dict):
        steps = value.items()
    elif isinstance(value, list):
        steps = enumerate(value)
    for step, child in steps:
        yield (*here, step)
        yield from _paths(child, (*here, step))


def _at(raw: Any, path: Path) -> Any:
    for step in path:
        raw = raw[step]
    return raw


def _with(raw: Json, path: Path, value: Any) -> Json:
    changed = copy.deepcopy(raw)
    _at(changed, path[:-1])[path[-1]] = value
    return changed


def _without(raw: Json, path: Path) -> Json:
    changed = copy.deepcopy(raw)
    del _at(changed, path[:-1])[path[-1]]
    return changed


def _another(value: Any) -> Any:
    """Something else that parses in the same place."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    return value.replace("2026", "2027") if value.startswith("2026") else f"1{value}"


def _is_excluded(path: Path) -> bool:
    return any(path[: len(excluded)] == excluded for excluded in EXCLUDED)


def _signature(raw: Json) -> bytes:
    return Pod.from_dict(raw).signature


LEAVES = [path for path in _paths(POD) if not isinstance(_at(POD, path), dict | list)]
OBJECTS = [(), *(path for path in _paths(POD) if isinstance(_at(POD, path), dict))]
#: a pod without these cannot be read
REQUIRED: tuple[Path, ...] = (
    ("metadata",),
    ("metadata", "name"),
    ("spec",),
    ("spec", "containers"),
    ("spec", "containers", 0),
    ("spec", "containers", 0, "name"),
)
REMOVABLE = [path for path in _paths(POD) if path not in REQUIRED]


@pytest.mark.parametrize("path", LEAVES, ids=lambda path: ".".join(map(str, path)))
def test_any_other_value_is_another_signature_but_for_what_is_the_pods_own(path: Path) -> None:
    changed = _with(POD, path, _another(_at(POD, path)))
    assert (_signature(changed) == _signature(POD)) == (_is_excluded(path) or path == DELETION)


@given(path=st.sampled_from(REMOVABLE))
def test_what_is_taken_away_counts(path: Path) -> None:
    assert (_signature(_without(POD, path)) == _signature(POD)) == _is_excluded(path)


_ADDED = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(path=st.sampled_from(OBJECTS), value=_ADDED, other=_ADDED)
def test_what_is_added_counts_and_so_does_its_value(path: Path, value: Any, other: Any) -> None:
    if path[-1:] in (("labels",), ("annotations",), ("nodeSelector",), ("requests",)):
        value, other = "7", "8"
    first, second = (_with(POD, (*path, "added"), added) for added in (value, other))
    excluded = _is_excluded((*path, "added"))
    assert (_signature(first) == _signature(POD)) == excluded
    assert (_signature(first) == _signature(copy.deepcopy(first))) is True
    same = json.dumps(value) == json.dumps(other)
    assert (_signature(first) == _signature(second)) == (excluded or same)


@given(values=st.lists(st.tuples(st.sampled_from(LEAVES), st.booleans()), max_size=6))
def test_many_changes_at_once(values: list[tuple[Path, bool]]) -> None:
    """Equal as a whole exactly if nothing that counts was changed."""
    changed = copy.deepcopy(POD)
    for path, undo in values:
        original = _at(POD, path)
        _at(changed, path[:-1])[path[-1]] = original if undo else _another(original)
    counts = [
        path
        for path in LEAVES
        if _at(changed, path) != _at(POD, path) and not _is_excluded(path) and path != DELETION
    ]
    assert (_signature(changed) == _signature(POD)) == (not counts)


def test_decoding_the_same_json_again_gives_the_same_signature() -> None:
    assert _signature(json.loads(json.dumps(POD))) == _signature(POD)


def test_binding_and_copying_keep_it() -> None:
    pod = make_pod("p").req(cpu="1").obj()
    before = pod.signature
    assert pod.signature is before
    assert pod.with_node_name("n1").signature is before
    assert make_pod("p").req(cpu="1").obj().with_node_name("n1").signature == before


def test_templates_give_one_signature_and_another_namespace_another() -> None:
    def pods(namespace: str) -> set[bytes]:
        made = (make_pod(f"p{i}").namespace(namespace).label({"app": "a"}) for i in range(5))
        return {builder.obj().signature for builder in made}

    assert len(pods("a")) == 1
    assert len(pods("a") | pods("b")) == 2


def _ephemeral(name: str, uid: str = "u") -> Json:
    raw = make_pod(name).volume("scratch", ephemeral={"volumeClaimTemplate": {}}).raw()
    return _with(raw, ("metadata", "uid"), uid)


def _resource_claim(name: str, uid: str = "u") -> Json:
    raw = make_pod(name).raw()
    raw["metadata"]["uid"] = uid
    claim = {"name": "gpu", "resourceClaimTemplateName": "t"}
    return {**raw, "spec": {**raw["spec"], "resourceClaims": [claim]}}


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(_ephemeral, id="ephemeral volume"),
        pytest.param(_resource_claim, id="resource claim from a template"),
    ],
)
def test_claims_in_the_pods_own_name_set_it_apart(make: Callable[..., Json]) -> None:
    assert _signature(make("a")) == _signature(make("a"))
    assert _signature(make("a")) != _signature(make("b"))
    assert _signature(make("a", "u")) != _signature(make("a", "v"))


def test_shared_claims_do_not_set_pods_apart() -> None:
    assert make_pod("a").pvc("data").obj().signature == make_pod("b").pvc("data").obj().signature
    assert make_pod("a").pvc("data").obj().signature != make_pod("a").pvc("logs").obj().signature


def _with_token(name: str, volume: str, mounted: str = "", **source: Any) -> Json:
    raw = make_pod(name).volume(volume, **(source or {"projected": {"sources": []}})).raw()
    raw["spec"]["containers"][0]["volumeMounts"] = [{"name": mounted or volume}]
    return raw


def test_the_random_name_of_the_token_volume_does_not_count() -> None:
    first = _signature(_with_token("a", "kube-api-access-x7k2p"))
    assert first == _signature(_with_token("b", "kube-api-access-9qqzz"))
    mounted = _with_token("b", "kube-api-access-9qqzz", mounted="kube-api-access-x7k2p")
    assert first != _signature(mounted)


@pytest.mark.parametrize(
    "volumes",
    [
        pytest.param(("token-aaaaa", "token-bbbbb"), id="another name"),
        pytest.param(("kube-api-access-aaa", "kube-api-access-bbb"), id="too short"),
        pytest.param(("kube-api-access-\u00e9aaa", "kube-api-access-\u00e9bbb"), id="not ascii"),
    ],
)
def test_other_volume_names_count(volumes: tuple[str, str]) -> None:
    first, second = (_signature(_with_token("a", volume)) for volume in volumes)
    assert first != second


def test_a_volume_of_that_name_but_another_source_counts() -> None:
    first, second = (
        _signature(_with_token("a", f"kube-api-access-{end}", emptyDir={}))
        for end in ("aaaaa", "bbbbb")
    )
    assert first != second


class _Text(str):
    """What some decoders return for text."""


class _Float(float):
    """And for numbers."""


class _Number(enum.IntEnum):
    ONE = 1


def test_json_in_other_clothes_is_the_same_content() -> None:
    odd = MappingProxyType(
        {_Text("a"): [_Text("b"), MappingProxyType({"c": _Number.ONE}), _Float(-0.0), True]}
    )
    assert content_of(odd) == content_of({"a": ["b", {"c": 1}, -0.0, True]})


@given(first=_ADDED, second=_ADDED)
def test_contents_are_equal_exactly_for_the_same_json(first: Any, second: Any) -> None:
    same = json.dumps(first) == json.dumps(second)
    assert (content_of(first) == content_of(second)) == same
    assert content_of(copy.deepcopy(first)) == content_of(first)


@given(st.text(string.printable))
def test_content_does_not_depend_on_which_text_object_it_is(text: str) -> None:
    twin = "".join(list(text))
    assert content_of([text, text]) == content_of([text, twin])


def test_a_pod_with_what_is_no_json_is_like_no_other() -> None:
    raw = make_pod("a").obj().raw
    odd = {**raw, "spec": {**raw["spec"], "note": datetime.date(2026, 1, 1)}}
    assert _signature(odd) == _signature(odd)
    other = {**odd, "metadata": {**raw["metadata"], "name": "b"}}
    assert _signature(odd) != _signature(other)
