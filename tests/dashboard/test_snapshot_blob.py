"""Snapshots as blobs: what comes out is what went in, piece by piece."""

from __future__ import annotations

import zlib

import orjson
import pytest

from dashboard import snapshot_blob
from dashboard.snapshot_blob import pack, unpack
from scheduler_core.cluster.journal import StoreSnapshot
from scheduler_core.testing.builders import make_pod


def _snapshot(count: int) -> StoreSnapshot:
    pods = (make_pod(f"p{index}").label({"note": "é\n"}).req(cpu="1") for index in range(count))
    return StoreSnapshot(7, 12.5, tuple(pod.raw() for pod in pods))


@pytest.mark.parametrize("piece", [7, 1000, 256 * 1024])
@pytest.mark.parametrize("count", [0, 1, 50])
def test_what_is_packed_is_unpacked(
    count: int, piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot_blob, "_PIECE", piece)
    snapshot = _snapshot(count)
    assert unpack(pack(snapshot), 7) == snapshot


def test_equal_parts_are_one() -> None:
    one, other = unpack(pack(_snapshot(2)), 7).objects
    assert one["spec"] is other["spec"]


def test_a_blob_of_an_earlier_version_is_read() -> None:
    snapshot = _snapshot(3)
    old = zlib.compress(orjson.dumps({"at": snapshot.at, "objects": snapshot.objects}), 6)
    assert unpack(old, 7) == snapshot


@pytest.mark.parametrize(
    ("blob", "why"),
    [
        pytest.param(pack(_snapshot(9))[:-5], "the snapshot breaks off", id="cut"),
        pytest.param(b"", "the snapshot breaks off", id="empty"),
        pytest.param(b"hello", "no snapshot", id="something else"),
    ],
)
def test_half_a_snapshot_is_none(blob: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        unpack(blob, 7)
