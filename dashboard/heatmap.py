"""The binary heatmap frame: score matrices on their way to a browser's canvas.

Little-endian. A 16-byte header ``magic u32, kind u8, plugins u8, flags u8, 0 u8, seq u32,
nodes u32``, then ``u32 length`` and JSON of that length (padded with spaces, so that the arrays
start at a multiple of 4), then

- full (kind 1): ``int8[plugins * nodes]`` normalised scores by plugin (-1: not scored),
  ``int16[nodes]`` rejection (index into the JSON's reasons; -1 feasible, -2 not evaluated);
- delta (kind 2): ``u32 count``, ``u32[count]`` rows, ``int8[plugins * count]``, ``int16[count]``;
  the JSON has ``base``, the seq of the frame it changes.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import orjson
from numpy.typing import NDArray

from scheduler_core.records import ScoreMatrix

MAGIC: Final = 0x4B534831
FULL: Final = 1
DELTA: Final = 2
SCORED: Final = 1
_HEADER = struct.Struct("<IBBBBII")
_U32 = struct.Struct("<I")
_MAX_PLUGINS = 255
_I16_MAX = int(np.iinfo(np.int16).max)


@dataclass(frozen=True, slots=True, eq=False)
class Heatmap:
    """One matrix as pages draw it.

    ``meta`` is the JSON part: ``run, sequence, pod, outcome, node, chosen, plugins, weights,
    reasons, feasible, names_hash``. ``normalized``: int8, shape (p, n). ``rejection``: int16,
    shape (n,).
    """

    seq: int
    meta: dict[str, Any]
    scored: bool
    normalized: NDArray[np.int8]
    rejection: NDArray[np.int16]

    @property
    def nodes(self) -> int:
        return len(self.rejection)


def from_matrix(
    matrix: ScoreMatrix,
    *,
    seq: int,
    run: int,
    sequence: int,
    pod: str,
    outcome: str,
    node: str,
    names_hash: str,
) -> Heatmap:
    """The heatmap of one cycle. More than 255 plugins or 32,767 reasons are cut."""
    chosen = matrix.node_names.index(node) if node and node in matrix.node_names else -1
    plugins = matrix.plugins[:_MAX_PLUGINS]
    meta = {
        "run": run,
        "sequence": sequence,
        "pod": pod,
        "outcome": outcome,
        "node": node,
        "chosen": chosen,
        "plugins": list(plugins),
        "weights": [int(weight) for weight in matrix.weights[:_MAX_PLUGINS]],
        "reasons": [list(reason) for reason in matrix.reasons],
        "feasible": int(np.count_nonzero(matrix.rejection == -1)),
        "names_hash": names_hash,
    }
    return Heatmap(
        seq=seq,
        meta=meta,
        scored=matrix.scored,
        normalized=np.ascontiguousarray(matrix.normalized[:_MAX_PLUGINS], dtype=np.int8),
        rejection=np.minimum(matrix.rejection, _I16_MAX).astype("<i2"),
    )


def encode_full(heatmap: Heatmap) -> bytes:
    """The frame that stands on its own."""
    return b"".join(
        (
            _head(heatmap, FULL, heatmap.meta),
            np.ascontiguousarray(heatmap.normalized).tobytes(),
            heatmap.rejection.astype("<i2").tobytes(),
        )
    )


def encode_delta(heatmap: Heatmap, base: Heatmap) -> bytes | None:
    """The rows that differ from ``base``, or None where only a full frame will do.

    That is so where node names or plugins changed, or more than half of the rows did.
    """
    same = ("run", "names_hash", "plugins")
    if heatmap.nodes != base.nodes or any(heatmap.meta[k] != base.meta[k] for k in same):
        return None
    # Indices, not what they mean: the page reads all of them with the new table of reasons.
    changed = (heatmap.normalized != base.normalized).any(axis=0)
    changed |= heatmap.rejection != base.rejection
    rows = np.flatnonzero(changed)
    if 2 * len(rows) > heatmap.nodes:
        return None
    return b"".join(
        (
            _head(heatmap, DELTA, {**heatmap.meta, "base": base.seq & 0xFFFFFFFF}),
            _U32.pack(len(rows)),
            rows.astype("<u4").tobytes(),
            np.ascontiguousarray(heatmap.normalized[:, rows]).tobytes(),
            heatmap.rejection[rows].astype("<i2").tobytes(),
        )
    )


def decode(data: bytes, base: Heatmap | None = None) -> Heatmap:
    """The heatmap of a frame; a delta needs the heatmap it builds on.

    Raises:
        ValueError: not a heatmap frame, cut short, or a delta without its base.
    """
    try:
        return _decode(data, base)
    except (struct.error, orjson.JSONDecodeError, KeyError) as error:
        raise ValueError(f"heatmap frame: {error}") from error


def _decode(data: bytes, base: Heatmap | None) -> Heatmap:
    magic, kind, plugins, flags, _, seq, nodes = _HEADER.unpack_from(data)
    if magic != MAGIC or kind not in (FULL, DELTA):
        raise ValueError("not a heatmap frame")
    (length,) = _U32.unpack_from(data, _HEADER.size)
    offset = _HEADER.size + _U32.size
    meta = orjson.loads(data[offset : offset + length])
    offset += length
    if kind == FULL:
        normalized, rejection = _arrays(data, offset, plugins, nodes)
        return Heatmap(seq, meta, bool(flags & SCORED), normalized, rejection)
    if base is None or base.seq & 0xFFFFFFFF != meta.pop("base"):
        raise ValueError("a heatmap delta without the frame it builds on")
    (count,) = _U32.unpack_from(data, offset)
    rows = np.frombuffer(data, "<u4", count, offset + _U32.size)
    part, rejected = _arrays(data, offset + _U32.size + rows.nbytes, plugins, count)
    normalized, rejection = base.normalized.copy(), base.rejection.copy()
    normalized[:, rows], rejection[rows] = part, rejected
    return Heatmap(seq, meta, bool(flags & SCORED), normalized, rejection)


def _head(heatmap: Heatmap, kind: int, meta: dict[str, Any]) -> bytes:
    text = orjson.dumps(meta)
    text += b" " * (-(_HEADER.size + _U32.size + len(text)) % 4)
    header = _HEADER.pack(
        MAGIC,
        kind,
        len(heatmap.normalized),
        SCORED if heatmap.scored else 0,
        0,
        heatmap.seq & 0xFFFFFFFF,
        heatmap.nodes,
    )
    return header + _U32.pack(len(text)) + text


def _arrays(
    data: bytes, offset: int, plugins: int, count: int
) -> tuple[NDArray[np.int8], NDArray[np.int16]]:
    scores = np.frombuffer(data, "i1", plugins * count, offset).reshape(plugins, count)
    return scores.copy(), np.frombuffer(data, "<i2", count, offset + plugins * count).copy()
