"""A cluster's state in a file: what people have when they ask about their own cluster.

Three shapes are read, as JSON or YAML, plain or gzipped:

- the export of kube-scheduler-simulator: ``{"pods": [], "nodes": [], "pvs": [], "pvcs": [],
  "storageClasses": [], "priorityClasses": [], "namespaces": [], "schedulerConfig": {}}``;
- what ``kubectl get nodes,pods,... -o json`` prints: a List (also NodeList, PodList, ...);
- manifests, one after another, separated by ``---``.

A snapshot is taken as the API server left it: nothing is defaulted, and fields that are not known
here are no fault. An object that cannot be read is one, and all of them are listed at once.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, TypeVar

from scheduler_core.api import KINDS, InvalidObject, KubeObject, Pod, find_kind, parse_documents

__all__ = ["InvalidSnapshot", "SnapshotFile", "load_snapshot", "parse_snapshot", "snapshot_of"]

Json = dict[str, Any]
K = TypeVar("K", bound=KubeObject)

#: Key of the simulator's export -> kind of its items.
_SIMULATOR_KEYS: Final[Mapping[str, str]] = {
    "namespaces": "Namespace",
    "priorityClasses": "PriorityClass",
    "storageClasses": "StorageClass",
    "pvs": "PersistentVolume",
    "pvcs": "PersistentVolumeClaim",
    "nodes": "Node",
    "pods": "Pod",
}
_SIMULATOR_CONFIG: Final = "schedulerConfig"
_GZIP: Final = b"\x1f\x8b"
#: Faults that are listed; a file of another kind has one in every object.
_MOST_FAULTS: Final = 20


class InvalidSnapshot(ValueError):
    """The file cannot be used; the text says why, a fault a line, each after the file's name."""


@dataclass(frozen=True, slots=True)
class SnapshotFile:
    """Objects of a cluster, in the order of the file.

    Attributes:
        objects: parsed objects; every pod has a uid (its key where the file gives none).
        scheduler_config: the KubeSchedulerConfiguration that a simulator's export carries, or None.
        ignored: kind -> number of objects of kinds that scheduling does not look at.
        source: what the file is called in messages.
    """

    objects: tuple[KubeObject, ...]
    scheduler_config: Json | None = None
    ignored: Mapping[str, int] = field(default_factory=dict)
    source: str = "snapshot"

    def of_kind(self, kind: type[K]) -> tuple[K, ...]:
        """The objects of one class, in order."""
        return tuple(obj for obj in self.objects if isinstance(obj, kind))


def load_snapshot(path: str | Path) -> SnapshotFile:
    """Read a file.

    Raises:
        InvalidSnapshot: it cannot be read, or does not hold a snapshot.
    """
    source = str(path)
    try:
        data = Path(path).read_bytes()
        if data.startswith(_GZIP):
            data = gzip.decompress(data)
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidSnapshot(f"{source}: not UTF-8 text (byte {error.start})") from error
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InvalidSnapshot(f"{source}: damaged gzip data: {error}") from error
    except OSError as error:
        raise InvalidSnapshot(f"{source} cannot be read: {error.strerror or error}") from error
    return parse_snapshot(text, source)


def snapshot_of(objects: Iterable[Any], source: str = "snapshot") -> SnapshotFile:
    """The snapshot that these objects' JSON makes.

    Raises:
        InvalidSnapshot: with every fault.
    """
    return _snapshot(((f"object {i}", raw) for i, raw in enumerate(objects, 1)), None, source)


def parse_snapshot(text: str, source: str = "snapshot") -> SnapshotFile:
    """The snapshot that a text describes.

    Raises:
        InvalidSnapshot: with every fault.
    """
    documents = _documents(text, source)
    if not documents:
        raise InvalidSnapshot(f"{source}: there is nothing in it")
    if len(documents) == 1 and _is_simulator_export(documents[0]):
        return _simulator_export(documents[0], source)
    found = [item for place, data in enumerate(documents, 1) for item in _items(data, place)]
    return _snapshot(found, None, source)


# -- shapes ----------------------------------------------------------------------------------------


def _documents(text: str, source: str) -> list[Any]:
    if text.lstrip().startswith("{"):
        try:  # JSON's own parser is a hundred times as fast on a large cluster
            return [json.loads(text)]
        except (json.JSONDecodeError, RecursionError):
            pass  # a flow mapping of YAML looks like JSON; its parser has the last word
    try:
        return parse_documents(text, source)
    except InvalidObject as error:
        raise InvalidSnapshot(str(error)) from error


def _is_simulator_export(data: Any) -> bool:
    return isinstance(data, Mapping) and "kind" not in data and "nodes" in data


def _simulator_export(data: Mapping[str, Any], source: str) -> SnapshotFile:
    found: list[tuple[str, Any]] = []
    for key, kind in _SIMULATOR_KEYS.items():
        items = data.get(key) or []
        if not isinstance(items, list):
            raise InvalidSnapshot(f"{source}: {key}: must be a list")
        found += [(f"{key}[{i}]", _as_kind(item, kind)) for i, item in enumerate(items)]
    config = data.get(_SIMULATOR_CONFIG)
    if config is not None and not isinstance(config, dict):
        raise InvalidSnapshot(f"{source}: {_SIMULATOR_CONFIG}: must be an object")
    return _snapshot(found, config or None, source)


def _items(data: Any, place: int) -> Iterator[tuple[str, Any]]:
    """(where, object) of a document: itself, or the items of a List, however deep."""
    yield from _unpacked(data, f"document {place}")


def _unpacked(data: Any, where: str) -> Iterator[tuple[str, Any]]:
    kind = data.get("kind") if isinstance(data, Mapping) else None
    if not (isinstance(kind, str) and kind.endswith("List")):
        yield where, data
        return
    items = data.get("items") or []
    if not isinstance(items, list):
        yield f"{where}.items", items
        return
    item_kind = kind.removesuffix("List")
    for i, item in enumerate(items):
        yield from _unpacked(_as_kind(item, item_kind) if item_kind else item, f"items[{i}]")


def _as_kind(item: Any, kind: str) -> Any:
    """Items of a typed list need not say what the list's name says already."""
    if not isinstance(item, Mapping) or kind not in KINDS:
        return item
    return {"apiVersion": KINDS[kind].api_version, "kind": kind, **item}


# -- objects ---------------------------------------------------------------------------------------


def _snapshot(found: Iterable[tuple[str, Any]], config: Json | None, source: str) -> SnapshotFile:
    objects: dict[tuple[str, str], KubeObject] = {}
    ignored: Counter[str] = Counter()
    faults: list[str] = []
    for where, raw in found:
        written = raw.get("kind") if isinstance(raw, Mapping) else None
        if not isinstance(written, str) or not written:
            faults.append(f"{where}: must be a Kubernetes object with apiVersion and kind")
            continue
        kind = _known_kind(raw, written)
        if kind is None:
            ignored[written] += 1
        else:
            _add(objects, kind, raw, where, faults)
    if faults:
        more = len(faults) - _MOST_FAULTS
        lines = [f"{source}: {fault}" for fault in faults[:_MOST_FAULTS]]
        raise InvalidSnapshot("\n".join(lines + ([f"and {more} more"] if more > 0 else [])))
    return SnapshotFile(tuple(objects.values()), config, dict(ignored), source)


def _known_kind(raw: Mapping[str, Any], written: str) -> str | None:
    """Other API groups have kinds of the same names, such as Knative's Service."""
    version = str(raw.get("apiVersion") or "")
    known = find_kind(written, version)
    if known is None:
        return None
    group = (version or known.api_version).rpartition("/")[0]
    return known.kind if group in {v.rpartition("/")[0] for v in known.versions} else None


def _add(
    objects: dict[tuple[str, str], KubeObject],
    kind: str,
    raw: Mapping[str, Any],
    where: str,
    faults: list[str],
) -> None:
    try:
        obj = KINDS[kind].parse(raw)
    except InvalidObject as error:
        faults.append(f"{where}: {error}")
        return
    if isinstance(obj, Pod) and not obj.uid:
        # Pods are known by uid everywhere; the key is as good within one file.
        obj = replace(obj, uid=obj.key)
    if (kind, obj.key) in objects:
        faults.append(f"{where}: {kind} {obj.key} is there twice")
    objects[kind, obj.key] = obj
