"""What is attached to every node, as columns that follow the changes of pods, claims and volumes.

The columns belong to the rows of one table. ``refresh`` looks again only at nodes that something
happened to: to a pod on them, or to a claim, volume, CSINode or VolumeAttachment of theirs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from scheduler_core.framework.interface import Handle, Informer
from scheduler_core.framework.node_info import NodeInfo
from scheduler_core.framework.nodes import Bool, Int64, NodeTable, Rows
from scheduler_core.framework.status import Status
from scheduler_core.plugins.node_volume_limits.volumes import CsiVolumes

__all__ = ["BY_NODE", "AttachedVolumes", "node_of_attachment"]

#: Index of VolumeAttachments by the name of their node.
BY_NODE: Final = "NodeVolumeLimits/node"

_NO_LIMIT: Final = -1


def node_of_attachment(attachment: object) -> Iterable[str]:
    """The values of the index ``BY_NODE``."""
    return (str(getattr(attachment, "node_name", "")),)


@dataclass(slots=True)
class _Row:
    """One node: its pods' volumes, and what they were found by."""

    volumes: frozenset[str] = frozenset()
    counts: Mapping[str, int] = field(default_factory=dict)
    limits: Mapping[str, int] = field(default_factory=dict)
    has_csi_node: bool = False
    claims: frozenset[str] = frozenset()
    persistent_volumes: frozenset[str] = frozenset()
    attachments: frozenset[str] = frozenset()
    fault: Status | None = None


class AttachedVolumes:
    """Attached volumes and limits per driver, for all nodes of a table. Call ``refresh`` first."""

    def __init__(self, handle: Handle, volumes: CsiVolumes) -> None:
        self._volumes = volumes
        self._claims = handle.informer("PersistentVolumeClaim")
        self._csi_nodes = handle.informer("CSINode")
        self._attachments = handle.informer("VolumeAttachment")
        self._attachments.add_indexer(BY_NODE, node_of_attachment)
        #: informer -> rows that one of its objects concerns
        self._sources: tuple[tuple[Informer, Callable[[str], Iterable[int]]], ...] = (
            (self._claims, lambda key: self._rows_of_claim.get(key, ())),
            (handle.informer("PersistentVolume"), lambda key: self._rows_of_pv.get(key, ())),
            (handle.informer("StorageClass"), lambda key: range(len(self._rows))),
            (self._csi_nodes, self._row_named),
            (self._attachments, self._rows_of_attachment_key),
        )
        self._seen = [source.version for source, _ in self._sources]
        self._changed: set[str] = set()
        self._table: NodeTable | None = None
        self._reset(NodeTable())

    # -- answers -----------------------------------------------------------------------------------

    @property
    def has_csi_node(self) -> Bool:
        """bool, shape (n of the table,)."""
        return self._has_csi_node

    @property
    def has_limits(self) -> Bool:
        """bool, shape (n of the table,): nodes that limit any driver."""
        return self._has_limits

    @property
    def faults(self) -> Mapping[int, Status]:
        """Rows whose pods' volumes cannot be told, and why."""
        return self._faults

    def limit(self, driver: str) -> Int64:
        """int64, shape (n of the table,): -1 where the node does not limit the driver."""
        return self._column(self._limits, driver, _NO_LIMIT)

    def count(self, driver: str) -> Int64:
        """int64, shape (n of the table,): volumes of the driver that are attached."""
        return self._column(self._counts, driver, 0)

    def rows_using(self, volume: str) -> Rows:
        """intp: rows with a pod that uses this volume ("driver/handle")."""
        return np.fromiter(self._rows_of_volume.get(volume, ()), dtype=np.intp)

    # -- following changes -------------------------------------------------------------------------

    def refresh(self, table: NodeTable) -> None:
        """Catch up with everything that happened since the last call."""
        if table is not self._table or table.names is not self._names:
            self._reset(table)
        # The column stays empty: asking for it tells which rows changed. Each of us has its own.
        table.derived_column(f"NodeVolumeLimits/{id(self)}", self._note)
        dirty = {self._row_of[name] for name in self._changed if name in self._row_of}
        self._changed.clear()
        for i, (source, rows_of) in enumerate(self._sources):
            keys = source.changed_since(self._seen[i])
            self._seen[i] = source.version
            if keys is None:
                dirty.update(range(len(self._rows)))
                continue
            for key in keys:
                dirty.update(rows_of(key))
        for row in dirty:
            self._look_again(row, table[row])

    def _note(self, info: NodeInfo) -> str | None:
        self._changed.add(info.name)
        return None

    def _reset(self, table: NodeTable) -> None:
        n = len(table)
        self._table = table
        self._names = table.names
        self._row_of = table.row_of
        self._changed.update(table.names)
        self._rows = [_Row() for _ in range(n)]
        self._rows_of_claim: dict[str, set[int]] = {}
        self._rows_of_pv: dict[str, set[int]] = {}
        self._rows_of_attachment: dict[str, set[int]] = {}
        self._rows_of_volume: dict[str, set[int]] = {}
        self._faults: dict[int, Status] = {}
        self._limits: dict[str, Int64] = {}
        self._counts: dict[str, Int64] = {}
        self._has_csi_node: Bool = np.zeros(n, dtype=bool)
        self._has_limits: Bool = np.zeros(n, dtype=bool)

    def _row_named(self, name: str) -> Iterable[int]:
        row = self._row_of.get(name)
        return () if row is None else (row,)

    def _rows_of_attachment_key(self, key: str) -> Iterable[int]:
        """The row it was on when last seen, and the one it is on."""
        rows = set(self._rows_of_attachment.get(key, ()))
        attachment = self._attachments.get(key)
        if attachment is not None:
            rows.update(self._row_named(attachment.node_name))
        return rows

    def _look_again(self, row: int, info: NodeInfo) -> None:
        old, new = self._rows[row], self._read(info)
        self._rows[row] = new
        for index, before, now in (
            (self._rows_of_claim, old.claims, new.claims),
            (self._rows_of_pv, old.persistent_volumes, new.persistent_volumes),
            (self._rows_of_attachment, old.attachments, new.attachments),
            (self._rows_of_volume, old.volumes, new.volumes),
        ):
            _move(index, row, before, now)
        for columns, known, values, nothing in (
            (self._counts, old.counts, new.counts, 0),
            (self._limits, old.limits, new.limits, _NO_LIMIT),
        ):
            for driver in {*known, *values}:
                self._column(columns, driver, nothing)[row] = values.get(driver, nothing)
        self._has_csi_node[row] = new.has_csi_node
        self._has_limits[row] = bool(new.limits)
        self._faults.pop(row, None)
        if new.fault is not None:
            self._faults[row] = new.fault

    def _column(self, columns: dict[str, Int64], driver: str, nothing: int) -> Int64:
        column = columns.get(driver)
        if column is None:
            column = columns[driver] = np.full(len(self._rows), nothing, dtype=np.int64)
        return column

    # -- one node ----------------------------------------------------------------------------------

    def _read(self, info: NodeInfo) -> _Row:
        csi_node = self._csi_nodes.get(info.name)
        row = _Row(has_csi_node=csi_node is not None)
        if csi_node is not None:
            row.limits = csi_node.limits
        volumes: dict[str, str] = {}
        claims: set[str] = set()
        for pod in info.pods:
            if not pod.volumes:
                continue
            claims.update(f"{pod.namespace}/{name}" for name in pod.claim_names())
            found = self._volumes.of_pod(pod, has_csi_node=row.has_csi_node, is_new=False)
            if isinstance(found, Status):
                row.fault = row.fault or found
            else:
                volumes.update(found)
        attachments = self._attachments.by_index(BY_NODE, info.name)
        others = dict(
            known for known in map(self._volumes.of_attachment, attachments) if known is not None
        )
        counts = Counter(volumes.values())
        counts.update(driver for volume, driver in others.items() if volume not in volumes)
        row.volumes, row.counts, row.claims = frozenset(volumes), counts, frozenset(claims)
        row.attachments = frozenset(attachment.key for attachment in attachments)
        bound = (self._claims.get(key) for key in claims)
        row.persistent_volumes = frozenset(
            [a.persistent_volume_name for a in attachments]
            + [claim.volume_name for claim in bound if claim is not None]
        ) - {""}
        return row


def _move(
    index: dict[str, set[int]], row: int, before: frozenset[str], now: frozenset[str]
) -> None:
    for key in before - now:
        rows = index[key]
        rows.discard(row)
        if not rows:
            del index[key]
    for key in now - before:
        index.setdefault(key, set()).add(row)
