"""Reads the CSV files of a cluster trace, strictly: a file with a fault is refused whole.

The format is that of Alibaba's cluster-trace-gpu-v2023: a table of nodes and a table of pods.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from scheduler_core.api.syntax import check_dns_subdomain, check_label_value

__all__ = [
    "NODE_COLUMNS",
    "POD_COLUMNS",
    "Fault",
    "Trace",
    "TraceError",
    "TraceNode",
    "TracePod",
    "find_trace",
    "load_trace",
]

NODE_COLUMNS: Final = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
POD_COLUMNS: Final = (
    "name",
    "cpu_milli",
    "memory_mib",
    "num_gpu",
    "gpu_milli",
    "gpu_spec",
    "qos",
    "pod_phase",
    "creation_time",
    "deletion_time",
    "scheduled_time",
)

_FAULTS_SHOWN: Final = 20
_WHOLE_GPU: Final = 1000
_MOST_GPUS: Final = 10_000
_LARGEST: Final = 10**12  # in bytes still far below 2**63
_DIGITS: Final = re.compile(r"[0-9]{1,19}", re.ASCII)
_LONGEST_LABEL: Final = 63


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong, and where. Lines count from 1; line 0 and column "": the file as a whole."""

    file: str
    line: int
    column: str
    reason: str

    def __str__(self) -> str:
        where = self.file
        if self.line:
            where += f", line {self.line}"
        if self.column:
            where += f", column {self.column}"
        return f"{where}: {self.reason}"


class TraceError(ValueError):
    """A trace that cannot be taken. Its text lists the first 20 faults and counts the rest."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.faults = tuple(faults)
        lines = [str(fault) for fault in self.faults[:_FAULTS_SHOWN]]
        more = len(self.faults) - len(lines)
        if more:
            lines.append(f"and {more} more fault{'s' if more > 1 else ''}")
        super().__init__("\n".join(lines))


@dataclass(frozen=True, slots=True)
class TraceNode:
    """A row of the table of nodes. `model` is "" without GPUs."""

    name: str
    cpu_milli: int
    memory_mib: int
    gpus: int
    model: str


@dataclass(frozen=True, slots=True)
class TracePod:
    """A row of the table of pods. Times: seconds of the trace; `models`: cards it accepts."""

    name: str
    cpu_milli: int
    memory_mib: int
    gpus: int
    gpu_milli: int
    models: tuple[str, ...]
    created: int
    deleted: int | None


@dataclass(frozen=True, slots=True)
class Trace:
    """Both tables, in file order."""

    nodes: tuple[TraceNode, ...]
    pods: tuple[TracePod, ...]


def load_trace(nodes: str | Path, pods: str | Path) -> Trace:
    """Read both tables.

    Raises:
        TraceError: with every fault of both.
    """
    faults: list[Fault] = []
    found_nodes = _read(Path(nodes), NODE_COLUMNS, _node, faults)
    found_pods = _read(Path(pods), POD_COLUMNS, _pod, faults)
    if faults:
        raise TraceError(faults)
    return Trace(tuple(found_nodes), tuple(found_pods))


def find_trace(folder: str | Path) -> tuple[Path, Path]:
    """The table of nodes and the table of pods in a folder.

    They are `*node*.csv` and `*pod*.csv`. Of several, as in the folder that is published, the one
    called `*all_node.csv` and the one called `*default.csv` are meant.

    Raises:
        TraceError: there are none, or it is not clear which are meant.
    """
    path = Path(folder)
    if not path.is_dir():
        raise TraceError([Fault(str(path), 0, "", "there is no such folder")])
    nodes = _preferred(path.glob("*node*.csv"), "all_node")
    pods = _preferred(path.glob("*pod*.csv"), "default")
    faults = [
        Fault(str(path), 0, "", reason)
        for reason in (_unclear("nodes", nodes), _unclear("pods", pods))
        if reason
    ]
    if faults:
        raise TraceError(faults)
    return nodes[0], pods[0]


def _preferred(found: Iterable[Path], ending: str) -> list[Path]:
    """Of several files those whose name ends so, if there are such."""
    files = sorted(found)
    if len(files) < 2:
        return files
    return [file for file in files if file.stem.endswith(ending)] or files


def _unclear(what: str, found: Sequence[Path]) -> str:
    if not found:
        return f"no table of {what} (*{what[:-1]}*.csv) in this folder"
    if len(found) > 1:
        names = ", ".join(file.name for file in found)
        return f"which table of {what} is meant? There are {names}"
    return ""


class _Row:
    """One line of a table: reads fields, notes what is wrong with them."""

    def __init__(self, file: str, line: int, fields: dict[str, str], faults: list[Fault]) -> None:
        self._file = file
        self._line = line
        self._fields = fields
        self._faults = faults

    def fault(self, column: str, reason: str) -> None:
        self._faults.append(Fault(self._file, self._line, column, reason))

    def text(self, column: str) -> str:
        return self._fields[column]

    def number(self, column: str, most: int = _LARGEST, *, absent: int | None = None) -> int | None:
        """A whole number from 0 to `most`; `absent`, unless it is None, for an empty field."""
        text = self._fields[column]
        if text == "" and absent is not None:
            return absent
        if not _DIGITS.fullmatch(text):
            self.fault(column, f'"{_short(text)}" is not a whole number')
            return None
        if int(text) > most:
            self.fault(column, f"{text} is more than {most}")
            return None
        return int(text)

    def name(self, column: str) -> str:
        text = self._fields[column]
        problem = check_dns_subdomain(text) if text else "a name is required"
        if not problem and len(text) > _LONGEST_LABEL:
            problem = f"must be no more than {_LONGEST_LABEL} bytes"
        if problem:
            self.fault(column, f'"{_short(text)}": {problem}')
        return text

    def model(self, column: str, text: str) -> str:
        problem = check_label_value(text) if text else "a card model is required"
        if problem:
            self.fault(column, f'"{_short(text)}": {problem}')
        return text


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_LABEL else text[:_LONGEST_LABEL] + "..."


_Parsed = TypeVar("_Parsed", TraceNode, TracePod)


def _read(
    path: Path,
    columns: Sequence[str],
    parse: Callable[[_Row], _Parsed | None],
    faults: list[Fault],
) -> list[_Parsed]:
    """The table's rows; what is wrong goes to `faults`."""
    found: list[_Parsed] = []
    first_line: dict[str, int] = {}
    before = len(faults)
    for row_line, row in _rows(path, columns, faults):
        parsed = parse(row)
        if parsed is None:
            continue
        earlier = first_line.setdefault(parsed.name, row_line)
        if earlier != row_line:
            row.fault(columns[0], f'"{parsed.name}" is on line {earlier} already')
        found.append(parsed)
    if not found and len(faults) == before:
        faults.append(Fault(str(path), 0, "", "the table has no rows"))
    return found


def _rows(path: Path, columns: Sequence[str], faults: list[Fault]) -> Iterator[tuple[int, _Row]]:
    file = str(path)
    text = _content(path, faults)
    if text is None:
        return
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = next(reader, [])
        reason = _header_fault(header, columns)
        if reason:
            faults.append(Fault(file, 1, "", reason))
            return
        for fields in reader:
            line = reader.line_num
            if len(fields) != len(header):
                reason = f"{len(fields)} fields instead of {len(header)}"
                faults.append(Fault(file, line, "", reason))
                continue
            row = dict(zip(header, fields, strict=True))
            yield line, _Row(file, line, row, faults)
    except csv.Error as error:
        faults.append(Fault(file, reader.line_num, "", f"not CSV: {error}"))


def _content(path: Path, faults: list[Fault]) -> str | None:
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        faults.append(Fault(str(path), 0, "", f"cannot be read: {error.strerror or error}"))
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        faults.append(Fault(str(path), line, "", "is not UTF-8 text"))
    return None


def _header_fault(header: Sequence[str], columns: Sequence[str]) -> str:
    missing = [column for column in columns if column not in header]
    unknown = [column for column in header if column not in columns]
    if not missing and not unknown and len(header) == len(columns):
        return ""
    said = [f"missing: {', '.join(missing)}"] if missing else []
    if unknown:
        said.append(f"unknown: {', '.join(map(_short, unknown))}")
    return f"the columns must be {','.join(columns)}" + "".join(f"; {part}" for part in said)


def _node(row: _Row) -> TraceNode | None:
    name = row.name("sn")
    cpu, memory = row.number("cpu_milli"), row.number("memory_mib")
    gpus = row.number("gpu", _MOST_GPUS)
    model = row.text("model")
    if gpus:
        row.model("model", model)
    elif gpus == 0 and model:
        row.fault("model", f'"{_short(model)}" on a node without GPUs')
    if cpu is None or memory is None or gpus is None:
        return None
    return TraceNode(name, cpu, memory, gpus, model)


def _pod(row: _Row) -> TracePod | None:
    name = row.name("name")
    cpu, memory = row.number("cpu_milli"), row.number("memory_mib")
    gpus, gpu_milli = row.number("num_gpu", _MOST_GPUS), row.number("gpu_milli", _WHOLE_GPU)
    if gpus and gpu_milli == 0:
        row.fault("gpu_milli", "0 of a GPU, although num_gpu is not 0")
    if gpus is not None and gpus > 1 and gpu_milli not in (None, _WHOLE_GPU):
        row.fault("gpu_milli", f"{gpu_milli}: several GPUs can only be had whole ({_WHOLE_GPU})")
    models = _models(row, gpus)
    created = row.number("creation_time")
    deleted, is_ever_deleted = row.number("deletion_time", absent=0), row.text("deletion_time")
    row.number("scheduled_time", absent=0)
    if created is not None and deleted is not None and is_ever_deleted and deleted < created:
        row.fault("deletion_time", f"{deleted} is before the creation_time {created}")
    if None in (cpu, memory, gpus, gpu_milli, created, deleted):
        return None
    return TracePod(
        name,
        cpu or 0,
        memory or 0,
        gpus or 0,
        gpu_milli or 0,
        models,
        created or 0,
        deleted if is_ever_deleted else None,
    )


def _models(row: _Row, gpus: int | None) -> tuple[str, ...]:
    text = row.text("gpu_spec")
    if not text:
        return ()
    if gpus == 0:
        row.fault("gpu_spec", f'"{_short(text)}" for a pod without GPUs')
    return tuple(row.model("gpu_spec", model) for model in text.split("|"))
