from __future__ import annotations

import struct
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard import matrices
from scheduler_core.records import ScoreMatrix
from tests.dashboard.factory import matrix

ARRAYS = ("weights", "raw", "normalized", "total", "rejection")


def same(a: ScoreMatrix, b: ScoreMatrix) -> bool:
    fields = ("node_names", "plugins", "reasons", "scored")
    return all(np.array_equal(getattr(a, f), getattr(b, f)) for f in ARRAYS) and all(
        getattr(a, f) == getattr(b, f) for f in fields
    )


@st.composite
def score_matrices(draw: st.DrawFn) -> ScoreMatrix:
    n, p = draw(st.integers(0, 12)), draw(st.integers(0, 4))
    seed = draw(st.integers(0, 2**32 - 1))
    random = np.random.default_rng(seed)
    normalized = random.integers(-1, 101, (p, n)).astype(np.int8)
    raw = np.maximum(normalized, 0).astype(np.int64)
    for row in range(p):
        kind = draw(st.sampled_from(["same", "narrow", "wide"]))
        if kind != "same":
            limit = 2**31 - 1 if kind == "narrow" else 2**62
            raw[row] = random.integers(-limit, limit, n)
    weights = random.integers(0, 10, p).astype(np.int64)
    total = random.integers(-1, 2**40, n).astype(np.int64)
    return ScoreMatrix(
        node_names=tuple(f"n{i}" for i in range(n)),
        plugins=tuple(f"P{i}" for i in range(p)),
        weights=weights,
        raw=raw,
        normalized=normalized,
        total=total,
        rejection=random.integers(-2, 3, n).astype(np.int32),
        reasons=(("A", "a, b", "Unschedulable"), ("B", "é", "Error"), ("C", "", "Pending")),
        scored=draw(st.booleans()),
    )


@given(score_matrices())
def test_it_comes_back_as_it_was(original: ScoreMatrix) -> None:
    assert same(matrices.decode(matrices.encode(original), original.node_names), original)


def test_it_is_a_few_kilobytes_for_a_real_cluster() -> None:
    """1,523 nodes x 6 plugins; the trace's clusters have few kinds of nodes."""
    kinds = np.random.default_rng(1).integers(0, 40, 1523)
    normalized = np.stack([(kinds * k) % 101 for k in range(1, 7)]).astype(np.int8)
    rejection = np.where(kinds < 10, 0, -1).astype(np.int32)
    normalized[:, rejection >= 0] = -1
    weights = np.ones(6, dtype=np.int64)
    total = np.maximum(normalized.astype(np.int64), 0).sum(axis=0)
    total[rejection >= 0] = -1
    whole = ScoreMatrix(
        tuple(f"openb-node-{i:04d}" for i in range(1523)),
        tuple(f"P{i}" for i in range(6)),
        weights,
        np.maximum(normalized, 0).astype(np.int64),
        normalized,
        total,
        rejection,
        (("NodeResourcesFit", "Insufficient cpu", "Unschedulable"),),
        True,
    )
    assert len(matrices.encode(whole)) < 8 * 1024


def test_many_reasons_need_wider_ids() -> None:
    small = matrix(nodes=3)
    reasons = tuple(("P", str(i), "Unschedulable") for i in range(40_000))
    rejection = np.array([39_999, -1, -2], dtype=np.int32)
    wide = replace(small, reasons=reasons, rejection=rejection)
    assert same(matrices.decode(matrices.encode(wide), wide.node_names), wide)


def test_node_names_must_fit() -> None:
    with pytest.raises(ValueError, match="matrix of 4 nodes does not fit 2 node names"):
        matrices.decode(matrices.encode(matrix(4)), ("a", "b"))


def test_a_damaged_blob_is_an_error() -> None:
    with pytest.raises(ValueError, match="matrix blob"):
        matrices.decode(b"nonsense", ())


def test_raw_scores_for_the_page() -> None:
    original = matrix(4)
    data = matrices.raw_bytes(original)
    assert struct.unpack_from("<II", data) == (2, 4)
    assert np.array_equal(np.frombuffer(data, "<i4", offset=8).reshape(2, 4), original.raw)


def test_names_have_a_hash_of_their_own() -> None:
    assert matrices.names_hash(("a", "b")) != matrices.names_hash(("b", "a"))
    assert matrices.decode_names(matrices.encode_names(("a", "ü"))) == ("a", "ü")
