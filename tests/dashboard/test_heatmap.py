from __future__ import annotations

import json
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard import heatmap
from dashboard.heatmap import Heatmap
from tests.dashboard.factory import matrix


def make(
    nodes: int = 8, seed: int = 0, seq: int = 7, names: str = "h", plugins: int = 2
) -> Heatmap:
    made = heatmap.from_matrix(
        matrix(nodes, seed),
        seq=seq,
        run=1,
        sequence=seq,
        pod="default/p",
        outcome="scheduled",
        node="node-2",
        names_hash=names,
    )
    if plugins == 2:
        return made
    meta = {**made.meta, "plugins": made.meta["plugins"][:plugins]}
    return Heatmap(seq, meta, made.scored, made.normalized[:plugins], made.rejection)


def same(a: Heatmap, b: Heatmap) -> bool:
    return (
        (a.seq, a.meta, a.scored) == (b.seq, b.meta, b.scored)
        and np.array_equal(a.normalized, b.normalized)
        and np.array_equal(a.rejection, b.rejection)
    )


def changed(base: Heatmap, rows: list[int], seq: int) -> Heatmap:
    normalized, rejection = base.normalized.copy(), base.rejection.copy()
    normalized[:, rows] = 99
    rejection[rows] = 0
    return Heatmap(seq, {**base.meta, "sequence": seq}, base.scored, normalized, rejection)


def test_the_bytes_are_those_of_the_contract() -> None:
    data = heatmap.encode_full(make(nodes=5))
    magic, kind, plugins, flags, reserved, seq, nodes = struct.unpack_from("<IBBBBII", data)
    assert (magic, kind, plugins, flags, reserved, seq, nodes) == (0x4B534831, 1, 2, 1, 0, 7, 5)
    (length,) = struct.unpack_from("<I", data, 16)
    meta = json.loads(data[20 : 20 + length])
    assert set(meta) == {
        "run", "sequence", "pod", "outcome", "node", "chosen", "plugins", "weights", "reasons",
        "feasible", "names_hash",
    }  # fmt: skip
    assert (meta["chosen"], meta["feasible"]) == (2, 3)
    assert (20 + length) % 4 == 0
    assert len(data) == 20 + length + 2 * 5 + 2 * 5
    assert list(np.frombuffer(data, "<i2", offset=20 + length + 10)) == [0, -2, -1, -1, -1]


def test_a_full_frame_comes_back() -> None:
    assert same(heatmap.decode(heatmap.encode_full(make())), make())


@given(st.lists(st.integers(0, 19), max_size=10, unique=True))
def test_a_delta_leads_to_the_same_heatmap(rows: list[int]) -> None:
    base = make(nodes=20)
    after = changed(base, rows, seq=9)
    data = heatmap.encode_delta(after, base)
    assert data is not None
    assert len(data) < len(heatmap.encode_full(after)) + 40
    assert same(heatmap.decode(data, base), after)


@pytest.mark.parametrize(
    "base",
    [
        pytest.param(make(names="other"), id="other node names"),
        pytest.param(make(nodes=9), id="other number of nodes"),
        pytest.param(make(plugins=1), id="other plugins"),
        pytest.param(make(seed=5), id="more than half of the rows changed"),
    ],
)
def test_a_full_frame_is_needed(base: Heatmap) -> None:
    assert heatmap.encode_delta(make(), base) is None


def test_a_delta_needs_its_base() -> None:
    base = make(nodes=20)
    data = heatmap.encode_delta(changed(base, [3], 9), base)
    assert data is not None
    with pytest.raises(ValueError, match="without the frame it builds on"):
        heatmap.decode(data)
    with pytest.raises(ValueError, match="without the frame it builds on"):
        heatmap.decode(data, make(nodes=20, seq=8))


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"x" * 40, id="other bytes"),
        pytest.param(heatmap.encode_full(make())[:40], id="cut in the JSON"),
        pytest.param(heatmap.encode_full(make())[:-3], id="cut in the arrays"),
    ],
)
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError):
        heatmap.decode(data)
