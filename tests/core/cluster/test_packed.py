"""Events of a watch as few bytes: the other side has what was sent, and keeps equal parts once."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler_core.cluster.packed import Packer, Unpacker
from scheduler_core.cluster.watch import StreamEvent

SPEC: dict[str, Any] = {"containers": [{"name": "c"}], "nodeName": "n1", "tolerations": []}


def pod(version: int, **parts: Any) -> StreamEvent:
    metadata = {"name": "web", "resourceVersion": str(version), "labels": parts.pop("labels", {})}
    return StreamEvent("MODIFIED", "Pod", {"kind": "Pod", "metadata": metadata, **parts}, version)


def over(packer: Packer, unpacker: Unpacker, *events: StreamEvent) -> list[StreamEvent]:
    return unpacker.unpack(json.loads(json.dumps(packer.pack(events))))


def test_what_arrives_is_what_was_sent() -> None:
    events = [
        pod(1, spec=SPEC, status={"phase": "Pending"}, labels={"app": "a"}),
        StreamEvent("BOOKMARK", "", {}, 2),
        pod(3, spec=SPEC, status={}),
        StreamEvent("DELETED", "Event", {"kind": "Event", "note": None, "counts": [1, [2]]}, 4),
    ]
    assert over(Packer(), Unpacker(), *events) == events


def test_a_part_is_told_once() -> None:
    packer, unpacker = Packer(), Unpacker()
    (first,) = over(packer, unpacker, pod(1, spec=SPEC))
    line = packer.pack([pod(2, spec=SPEC, status={"phase": "Running"})])
    assert "containers" not in json.dumps(line)
    (second,) = unpacker.unpack(line)
    assert second.object["spec"] is first.object["spec"]


def test_of_a_part_that_changed_only_the_changed_parts_are_told() -> None:
    packer, unpacker = Packer(), Unpacker()
    over(packer, unpacker, pod(1, spec=SPEC))
    line = packer.pack([pod(2, spec={**SPEC, "nodeName": "n2"})])
    assert "n2" in json.dumps(line)
    assert '"name": "c"' not in json.dumps(line)
    assert unpacker.unpack(line)[0].object["spec"] == {**SPEC, "nodeName": "n2"}


def test_it_begins_anew_when_there_are_many_parts() -> None:
    packer, unpacker = Packer(most=3), Unpacker()
    for version in range(1, 20):
        event = pod(version, spec={**SPEC, "nodeName": str(version)}, labels={"n": str(version)})
        assert over(packer, unpacker, event) == [event]


def test_a_line_that_is_missing_is_noticed() -> None:
    packer, unpacker = Packer(), Unpacker()
    packer.pack([pod(1, spec=SPEC)])
    with pytest.raises(ValueError, match="parts of a watch are missing"):
        unpacker.unpack(packer.pack([pod(2, spec=SPEC)]))


def test_parts_are_shared_with_what_was_there_before() -> None:
    before = {"containers": [{"name": "c"}], "nodeName": "n1", "tolerations": []}
    unpacker = Unpacker(lambda part: before if part == before else part)
    (event,) = over(Packer(), unpacker, pod(1, spec=SPEC))
    assert event.object["spec"] is before


leaves = st.none() | st.booleans() | st.integers() | st.text(max_size=3)
parts = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)
objects = st.dictionaries(st.sampled_from(["metadata", "spec", "status", "items"]), parts)


@given(st.lists(objects, max_size=6), st.integers(1, 8), st.data())
def test_any_objects_arrive(found: list[Any], most: int, data: st.DataObject) -> None:
    """Objects of any shape, with parts in common, in lines of any length."""
    packer, unpacker = Packer(most), Unpacker()
    for version, obj in enumerate([*found, *found]):
        obj = {"kind": "Pod", **obj, **data.draw(st.sampled_from([{}, {"status": [1]}]))}
        event = StreamEvent("ADDED", "Pod", obj, version)
        assert over(packer, unpacker, event) == [event]
