"""ScoreMatrix <-> a compressed blob of a few kilobytes.

Layout before compression, little-endian: ``u32 length``, JSON header of that length, then

- ``int8[p * n]`` normalised scores, row by plugin,
- for each plugin whose raw scores differ from its normalised ones: ``[n]`` of int32, or int64
  where int32 is too narrow,
- ``[n]`` of int16 (int32 above 32,767 reasons): rejection,
- ``int64[n]`` total, only where it is not the weighted sum (extenders add to it).

The header says which of these are there. Node names are stored apart, by hash.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from scheduler_core.records import ScoreMatrix

# Level 1: a tenth of level 6's time for blobs that live a few minutes.
_LEVEL = 1
_I16_MAX = np.iinfo(np.int16).max
_I32 = np.iinfo(np.int32)


def encode(matrix: ScoreMatrix) -> bytes:
    """The blob of a matrix, without its node names."""
    normalized = np.ascontiguousarray(matrix.normalized, dtype=np.int8)
    scored = np.maximum(normalized, 0).astype(np.int64)
    raw_types = [_raw_type(raw, same) for raw, same in zip(matrix.raw, scored, strict=True)]
    rejection_type = "<i2" if len(matrix.reasons) <= _I16_MAX else "<i4"
    with_total = not np.array_equal(matrix.total, _weighted_sum(matrix.weights, normalized))
    header = orjson.dumps(
        {
            "n": len(matrix.node_names),
            "plugins": list(matrix.plugins),
            "weights": [int(weight) for weight in matrix.weights],
            "reasons": [list(reason) for reason in matrix.reasons],
            "scored": bool(matrix.scored),
            "raw": raw_types,
            "rejection": rejection_type,
            "total": with_total,
        }
    )
    parts = [struct.pack("<I", len(header)), header, normalized.tobytes()]
    parts += [
        raw.astype(kind).tobytes() for raw, kind in zip(matrix.raw, raw_types, strict=True) if kind
    ]
    parts.append(matrix.rejection.astype(rejection_type).tobytes())
    if with_total:
        parts.append(matrix.total.astype("<i8").tobytes())
    return zlib.compress(b"".join(parts), _LEVEL)


class Encoder:
    """Encodes one matrix after another; one with the same arrays as the last costs nothing.

    A pod that fits nowhere is tried again and again while no node changes.
    """

    def __init__(self) -> None:
        self._last: ScoreMatrix | None = None
        self._blob = b""

    def encode(self, matrix: ScoreMatrix) -> bytes:
        """As ``encode``."""
        if self._last is None or not _is_same(matrix, self._last):
            self._blob = encode(matrix)
        self._last = matrix
        return self._blob


def _is_same(one: ScoreMatrix, other: ScoreMatrix) -> bool:
    """Whether nothing differs, as far as it can be told without looking into arrays."""
    return (
        one.normalized is other.normalized
        and one.total is other.total
        and one.rejection is other.rejection
        and len(one.raw) == len(other.raw)
        and all(a is b for a, b in zip(one.raw, other.raw, strict=True))
        and one.node_names is other.node_names
        and one.plugins == other.plugins
        and one.weights is other.weights
        and one.reasons == other.reasons
        and one.scored == other.scored
    )


def decode(blob: bytes, node_names: Sequence[str]) -> ScoreMatrix:
    """The matrix that was encoded.

    Raises:
        ValueError: the blob is damaged, or ``node_names`` are not those of the matrix.
    """
    try:
        data = zlib.decompress(blob)
    except zlib.error as error:
        raise ValueError(f"matrix blob: {error}") from error
    (length,) = struct.unpack_from("<I", data)
    header: dict[str, Any] = orjson.loads(data[4 : 4 + length])
    n, plugins = int(header["n"]), tuple(header["plugins"])
    if n != len(node_names):
        raise ValueError(f"matrix of {n} nodes does not fit {len(node_names)} node names")
    reader = _Reader(data, 4 + length)
    normalized = reader.take("i1", len(plugins) * n).reshape(len(plugins), n)
    raw = np.maximum(normalized, 0).astype(np.int64)
    for row, kind in enumerate(header["raw"]):
        if kind:
            raw[row] = reader.take(kind, n)
    rejection = reader.take(header["rejection"], n).astype(np.int32)
    weights = np.array(header["weights"], dtype=np.int64)
    total = reader.take("<i8", n) if header["total"] else _weighted_sum(weights, normalized)
    return ScoreMatrix(
        node_names=tuple(node_names),
        plugins=plugins,
        weights=weights,
        raw=raw,
        normalized=normalized,
        total=total,
        rejection=rejection,
        reasons=tuple((plugin, reason, code) for plugin, reason, code in header["reasons"]),
        scored=bool(header["scored"]),
    )


def raw_bytes(matrix: ScoreMatrix) -> bytes:
    """``u32 plugins, u32 nodes, int32[plugins * nodes]``; what int32 cannot hold is clipped."""
    plugins, nodes = len(matrix.plugins), len(matrix.node_names)
    clipped = np.clip(matrix.raw, _I32.min, _I32.max).astype("<i4")
    return struct.pack("<II", plugins, nodes) + clipped.tobytes()


def names_hash(names: Sequence[str]) -> str:
    """A name for this exact list of node names."""
    return hashlib.sha256("\n".join(names).encode()).hexdigest()


def encode_names(names: Sequence[str]) -> bytes:
    """Node names as a blob."""
    return zlib.compress(orjson.dumps(list(names)), _LEVEL)


def decode_names(blob: bytes) -> tuple[str, ...]:
    """The node names that were encoded."""
    return tuple(orjson.loads(zlib.decompress(blob)))


def _raw_type(raw: NDArray[np.int64], same: NDArray[np.int64]) -> str:
    """ "" where the raw scores are the normalised ones, else the narrowest type that holds them."""
    if np.array_equal(raw, same):
        return ""
    narrow = raw.size == 0 or (raw.min() >= _I32.min and raw.max() <= _I32.max)
    return "<i4" if narrow else "<i8"


def _weighted_sum(weights: NDArray[np.int64], normalized: NDArray[np.int8]) -> NDArray[np.int64]:
    """Shape (n,): the sum of weight x normalised score; -1 where a node was not scored."""
    if not len(weights):
        return np.full(normalized.shape[1], -1, dtype=np.int64)
    scores = normalized.astype(np.int64)
    total: NDArray[np.int64] = weights @ np.maximum(scores, 0)
    total[(scores < 0).all(axis=0)] = -1
    return total


class _Reader:
    """Takes arrays off a byte string, one after the other."""

    def __init__(self, data: bytes, offset: int) -> None:
        self._data = data
        self._offset = offset

    def take(self, kind: str, count: int) -> NDArray[Any]:
        array = np.frombuffer(self._data, dtype=kind, count=count, offset=self._offset)
        self._offset += array.nbytes
        return array.copy()
