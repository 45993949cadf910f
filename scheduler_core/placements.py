"""Where every pod of a replay went: rows, and the CSV files that hold them.

Columns: pod (namespace/name), node (empty: not placed), feasible_nodes, score (empty: not placed),
best_nodes (how many nodes share that score), message (of the failed attempt).
"""

from __future__ import annotations

import csv
import gzip
import io
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol, TextIO

__all__ = [
    "COLUMNS",
    "Placement",
    "Writable",
    "open_placements",
    "read_placements",
    "write_placements",
]

COLUMNS: Final = ("pod", "node", "feasible_nodes", "score", "best_nodes", "message")


@dataclass(frozen=True, slots=True)
class Placement:
    """One row. A pod that is not placed has no node, 0 feasible nodes, no score, 0 best nodes."""

    pod: str
    node: str = ""
    feasible_nodes: int = 0
    score: int | None = None
    best_nodes: int = 0
    message: str = ""

    @property
    def placed(self) -> bool:
        return bool(self.node)

    def row(self) -> tuple[str, str, int, int | str, int, str]:
        score = "" if self.score is None else self.score
        return self.pod, self.node, self.feasible_nodes, score, self.best_nodes, self.message


class Writable(Protocol):
    """Takes text, a whole row at a time."""

    def write(self, text: str, /) -> object: ...


def write_placements(file: Writable, placements: Iterable[Placement]) -> None:
    """Header and rows."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(placement.row() for placement in placements)


def read_placements(path: Path) -> list[Placement]:
    """The rows of a file, which is compressed if its name ends in ``.gz``.

    Raises:
        OSError: it cannot be read.
        ValueError: it has other columns, or no number where one belongs.
    """
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        if tuple(reader.fieldnames or ()) != COLUMNS:
            raise ValueError(f"{path}: the columns must be {', '.join(COLUMNS)}")
        return [
            Placement(
                pod=row["pod"],
                node=row["node"],
                feasible_nodes=int(row["feasible_nodes"]),
                score=int(row["score"]) if row["score"] else None,
                best_nodes=int(row["best_nodes"]),
                message=row["message"],
            )
            for row in reader
        ]


@contextmanager
def open_placements(path: Path) -> Iterator[TextIO]:
    """A text file that appears under ``path`` whole, when the block ends well, or not at all.

    It is compressed if the name ends in ``.gz``; the same rows give the same bytes.

    Raises:
        OSError: the folder does not take it. This is known before the block runs.
    """
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as raw, _text(raw, path.suffix == ".gz") as file:
            yield file
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


@contextmanager
def _text(raw: io.BufferedWriter, compressed: bool) -> Iterator[TextIO]:
    if not compressed:
        with io.TextIOWrapper(raw, encoding="utf-8", newline="") as file:
            yield file
        return
    packed = gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0)
    with packed, io.TextIOWrapper(packed, encoding="utf-8", newline="") as file:
        yield file


def _umask() -> int:
    """The process's umask; it can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
