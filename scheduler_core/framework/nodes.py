"""NodeInfos: a sequence of NodeInfo that also has columns.

Iterate it and it is a list of NodeInfo; ask for ``allocatable`` or ``label("zone")`` and it is
arrays over all nodes. ``NodeTable`` owns the arrays and refreshes single rows; ``NodeSubset`` is
some rows of a table, in an order of its own, gathered when asked for.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, overload
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from scheduler_core.api import Requirement, Taint
from scheduler_core.framework.columns import InternedColumn
from scheduler_core.framework.node_info import NodeInfo

Int64 = NDArray[np.int64]
Int32 = NDArray[np.int32]
Bool = NDArray[np.bool_]
Rows = NDArray[np.intp]
V = TypeVar("V", bound=Hashable)
C = TypeVar("C")

#: Resources that have a column from the start, in this order.
CORE_RESOURCES = ("cpu", "memory", "ephemeral-storage")


#: How many columns of plugins' own are kept; the least recently used goes first.
MAX_DERIVED_COLUMNS = 256
#: How many columns of labels are kept that no plugin holds; the least recently used goes first.
MAX_LABEL_COLUMNS = 256
#: Attributes of a NodeTable with an entry per node.
_COLUMNS = (
    "column_allocatable",
    "column_requested",
    "column_nonzero",
    "column_pods",
    "column_allowed_pods",
    "column_unschedulable",
    "column_affinity",
    "column_required_anti_affinity",
)


class _Derived:
    """A plugin's column and how far into the table's change log it is up to date."""

    __slots__ = ("column", "seen")

    def __init__(self, column: InternedColumn[Any]) -> None:
        self.column = column
        self.seen = 0


class NodeInfos(Sequence[NodeInfo]):
    """n nodes in a fixed order, as objects and as columns. Read only for plugins.

    Row i of every array belongs to ``self[i]``. Arrays must not be written to, and are valid until
    the next cycle.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def names(self) -> Sequence[str]:
        """n node names."""

    @property
    @abstractmethod
    def table(self) -> NodeTable:
        """The whole snapshot's table, of which these are rows."""

    @property
    @abstractmethod
    def rows(self) -> Rows | None:
        """intp, shape (n,): rows of ``table``; None means all rows, in order."""

    def gather(self, column: NDArray[np.generic]) -> NDArray[np.generic]:
        """The entries of a table column (first axis: nodes) that belong to these nodes."""
        return column if self.rows is None else column[self.rows]

    def gather_sums(self, column: NDArray[np.generic]) -> NDArray[np.generic]:
        """``gather`` for a column that sums up what is on each node: pods and what they ask for."""
        return self.gather(column)

    @property
    def resources(self) -> tuple[str, ...]:
        """Names of the columns of ``allocatable`` and ``requested``."""
        return self.table.resource_names

    def resource_index(self, name: str) -> int:
        """Column of a resource, -1 where no node offers it and no pod on a node asks for it."""
        return self.table.resource_columns.get(name, -1)

    @property
    def allocatable(self) -> Int64:
        """int64, shape (n, r): millicores for cpu, base units for the rest."""
        return self.gather(self.table.column_allocatable)  # type: ignore[return-value]

    @property
    def requested(self) -> Int64:
        """int64, shape (n, r): sums over the pods on each node."""
        return self.gather_sums(self.table.column_requested)  # type: ignore[return-value]

    @property
    def nonzero_requested(self) -> Int64:
        """int64, shape (n, 2): millicores and bytes with the 100m / 200Mi defaults."""
        return self.gather_sums(self.table.column_nonzero)  # type: ignore[return-value]

    @property
    def pod_count(self) -> Int64:
        """int64, shape (n,)."""
        return self.gather_sums(self.table.column_pods)  # type: ignore[return-value]

    @property
    def allowed_pod_number(self) -> Int64:
        """int64, shape (n,): allocatable ``pods``."""
        return self.gather(self.table.column_allowed_pods)  # type: ignore[return-value]

    @property
    def unschedulable(self) -> Bool:
        """bool, shape (n,): ``spec.unschedulable``."""
        return self.gather(self.table.column_unschedulable)  # type: ignore[return-value]

    def label(self, key: str) -> Int32:
        """int32 codes, shape (n,); -1 where the node lacks the label."""
        return self.gather(self.table.label_column(key).codes)  # type: ignore[return-value]

    def label_values(self, key: str) -> Sequence[str]:
        """Value of each code of ``label(key)``."""
        return self.table.label_column(key).values

    def matches(self, requirement: Requirement) -> Bool:
        """bool, shape (n,): which nodes' labels meet one requirement."""
        column = self.table.label_column(requirement.key)
        return self.gather(column.evaluate(requirement, requirement.matches_value))  # type: ignore[return-value]

    def over_taints(
        self,
        question: Hashable,
        answer: Callable[[tuple[Taint, ...]], bool | int],
        dtype: type = bool,
    ) -> NDArray[np.generic]:
        """``answer(taints)`` for every node, evaluated once per distinct taint set, shape (n,)."""
        column = self.table.taint_column
        return self.gather(column.evaluate(question, lambda t: answer(t or ()), dtype))

    def derived(
        self, name: str, compute: Callable[[NodeInfo], V | None]
    ) -> tuple[Int32, Sequence[V]]:
        """An interned column of a plugin's own: codes int32 (n,) (-1: None) and distinct values.

        ``compute`` may read everything of the NodeInfo but its pods' order and how they fare (their
        status, save what it reports of resources); it runs again for rows that changed.
        ``name`` identifies it (start it with the plugin's name).
        """
        column = self.table.derived_column(name, compute)
        return self.gather(column.codes), column.values  # type: ignore[return-value]

    def index_of(self, node_name: str) -> int:
        """Row of a node in ``self``; -1 where it is not among them."""
        row = self.table.row_of.get(node_name, -1)
        if self.rows is None or row < 0:
            return row
        hits = np.flatnonzero(self.rows == row)
        return int(hits[0]) if len(hits) else -1

    def get(self, node_name: str) -> NodeInfo | None:
        """The NodeInfo of a node, or None where it is not among these."""
        row = self.index_of(node_name)
        return None if row < 0 else self[row]

    def subset(self, rows: Rows) -> NodeInfos:
        """Some of these nodes: ``rows`` are positions in ``self``."""
        absolute = rows if self.rows is None else self.rows[rows]
        return NodeSubset(self.table, absolute)


class NodeTable(NodeInfos):
    """All nodes of a snapshot. The Snapshot alone calls ``rebuild`` and ``refresh_row``.

    Columns that follow from the Node object alone (labels, taints, images) are refreshed only when
    that object is another one; sums are refreshed whenever the NodeInfo changed.
    """

    __slots__ = (
        "_claims_seen",
        "_companions",
        "_derived",
        "_infos",
        "_labels",
        "_log",
        "_log_start",
        "_names",
        "_nodes_seen",
        "_taints",
        "_used_labels",
        "column_affinity",
        "column_allocatable",
        "column_allowed_pods",
        "column_nonzero",
        "column_pods",
        "column_requested",
        "column_required_anti_affinity",
        "column_unschedulable",
        "nodes_with_affinity",
        "nodes_with_required_anti_affinity",
        "resource_columns",
        "resource_names",
        "row_of",
        "static_version",
        "used_pvcs",
    )

    def __init__(self, infos: Sequence[NodeInfo] = ()) -> None:
        self.resource_names: tuple[str, ...] = CORE_RESOURCES
        self.resource_columns: dict[str, int] = {n: i for i, n in enumerate(CORE_RESOURCES)}
        self._infos: list[NodeInfo] = []
        self._names: tuple[str, ...] = ()
        self.row_of: dict[str, int] = {}
        self._nodes_seen: list[object] = []
        #: every column of a label that anybody holds; all are kept up to date
        self._labels: WeakValueDictionary[str, InternedColumn[str]] = WeakValueDictionary()
        #: those that were asked for lately, the latest last
        self._used_labels: dict[str, InternedColumn[str]] = {}
        self._taints: InternedColumn[tuple[Taint, ...]] | None = None
        self._derived: dict[str, _Derived] = {}
        self._log: list[int] = []
        self._log_start = 0
        #: Grows whenever a Node object changes or nodes come and go; keys caches of plugins.
        self.static_version = 0
        self._companions: dict[str, Any] = {}
        r = len(self.resource_names)
        self.column_allocatable: Int64 = np.zeros((0, r), dtype=np.int64)
        self.column_requested: Int64 = np.zeros((0, r), dtype=np.int64)
        self.column_nonzero: Int64 = np.zeros((0, 2), dtype=np.int64)
        self.column_pods: Int64 = np.zeros(0, dtype=np.int64)
        self.column_allowed_pods: Int64 = np.zeros(0, dtype=np.int64)
        self.column_unschedulable: Bool = np.zeros(0, dtype=bool)
        self.column_affinity: Bool = np.zeros(0, dtype=bool)
        self.column_required_anti_affinity: Bool = np.zeros(0, dtype=bool)
        #: How many nodes have pods with pod (anti-)affinity, with required anti-affinity.
        self.nodes_with_affinity = 0
        self.nodes_with_required_anti_affinity = 0
        #: "namespace/claim" -> number of pods on these nodes that use it.
        self.used_pvcs: Counter[str] = Counter()
        self._claims_seen: list[Mapping[str, int]] = []
        self.rebuild(infos)

    # -- Sequence ------------------------------------------------------------------------------

    @overload
    def __getitem__(self, index: int) -> NodeInfo: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[NodeInfo]: ...
    def __getitem__(self, index: int | slice) -> NodeInfo | Sequence[NodeInfo]:
        return self._infos[index]

    def __len__(self) -> int:
        return len(self._infos)

    def __iter__(self) -> Iterator[NodeInfo]:
        return iter(self._infos)

    @property
    def names(self) -> tuple[str, ...]:
        return self._names

    @property
    def table(self) -> NodeTable:
        return self

    @property
    def rows(self) -> None:
        return None

    # -- columns -------------------------------------------------------------------------------

    @property
    def rows_with_affinity(self) -> Rows:
        """intp, ascending: nodes with pods that have pod affinity or anti-affinity."""
        return np.flatnonzero(self.column_affinity)

    @property
    def rows_with_required_anti_affinity(self) -> Rows:
        """intp, ascending: nodes with pods that have required anti-affinity."""
        return np.flatnonzero(self.column_required_anti_affinity)

    @property
    def taint_column(self) -> InternedColumn[tuple[Taint, ...]]:
        if self._taints is None:
            self._taints = InternedColumn([_taints(info) for info in self._infos])
        return self._taints

    def label_column(self, key: str) -> InternedColumn[str]:
        column = self._used_labels.pop(key, None)
        if column is None:
            column = self._labels.get(key)
        if column is None:
            column = InternedColumn([_label(info, key) for info in self._infos])
            self._labels[key] = column
        # Pods name these keys, so there is no end of them. A column that nobody has asked for
        # lately goes, unless somebody still holds it: then it is kept up to date.
        while len(self._used_labels) >= MAX_LABEL_COLUMNS:
            self._used_labels.pop(next(iter(self._used_labels)))
        self._used_labels[key] = column
        return column

    def derived_column(
        self, name: str, compute: Callable[[NodeInfo], V | None]
    ) -> InternedColumn[V]:
        known = self._derived.pop(name, None)
        if known is None or known.seen < self._log_start:
            known = _Derived(InternedColumn([compute(info) for info in self._infos]))
        else:
            for row in self._changed_rows(known.seen):
                known.column.set(row, compute(self._infos[row]))
        known.seen = self.change_count
        while len(self._derived) >= MAX_DERIVED_COLUMNS:
            self._derived.pop(next(iter(self._derived)))
        self._derived[name] = known  # last in the dict: most recently used
        return known.column

    @property
    def change_count(self) -> int:
        """How often a row has changed; see ``rows_changed_since``."""
        return self._log_start + len(self._log)

    def rows_changed_since(self, change_count: int) -> Collection[int] | None:
        """Rows that changed after ``change_count`` was read; None where that is too long ago, or
        nodes have come or gone since."""
        first = change_count - self._log_start
        if first < 0:
            return None
        changed = self._log[first:]
        return changed if len(changed) < 2 else set(changed)

    def _changed_rows(self, since: int) -> set[int]:
        return set(self._log[since - self._log_start :])

    def companion(self, name: str, make: Callable[[], C]) -> C:
        """What is kept along with this table for as long as it lives, made when first asked for.
        ``name`` identifies it and its type; it follows the table by ``rows_changed_since``."""
        known: C | None = self._companions.get(name)
        if known is None:
            known = self._companions[name] = make()
        return known

    # -- mutators, for the Snapshot --------------------------------------------------------------

    def rebuild(self, infos: Sequence[NodeInfo]) -> None:
        """Take over another list of nodes. What is known of those that stay moves with them; only
        nodes that are new, or another copy than before, are looked at."""
        before = self._infos
        row_of = self.row_of
        moved = [row_of.get(info.name, -1) for info in infos]
        fresh = [row for row, old in enumerate(moved) if old < 0 or before[old] is not infos[row]]
        self.static_version += 1
        self._infos = list(infos)
        self._names = tuple(info.name for info in infos)
        self.row_of = {name: row for row, name in enumerate(self._names)}
        # Numbers go on, so that what was noted before cannot be taken for up to date.
        self._log_start = self.change_count + 1
        self._log = []
        self._derived.clear()
        self._move_columns(moved)
        for row in fresh:
            self.refresh_row(row, infos[row])

    def _move_columns(self, moved: Sequence[int]) -> None:
        """Row i is now what row ``moved[i]`` was; where that is -1 it is blank."""
        for row in set(range(len(self._nodes_seen))).difference(moved):
            self._refresh_claims(row, {})  # its node is gone
        nodes_seen, claims_seen = self._nodes_seen, self._claims_seen
        self._nodes_seen = [None if old < 0 else nodes_seen[old] for old in moved]
        self._claims_seen = [{} if old < 0 else claims_seen[old] for old in moved]
        rows = np.array(moved, dtype=np.intp)
        blank = rows < 0
        for name in _COLUMNS:
            setattr(self, name, _moved(getattr(self, name), rows, blank))
        self.nodes_with_affinity = int(np.count_nonzero(self.column_affinity))
        self.nodes_with_required_anti_affinity = int(
            np.count_nonzero(self.column_required_anti_affinity)
        )
        for key, column in tuple(self._labels.items()):
            if not column.move(rows):
                del self._labels[key]
                self._used_labels.pop(key, None)
        if self._taints is not None and not self._taints.move(rows):
            self._taints = None

    def replace_row(self, row: int, info: NodeInfo) -> None:
        """Row ``row`` is now ``info``, which differs by the status of its pods alone."""
        self._infos[row] = info

    def refresh_row(self, row: int, info: NodeInfo) -> None:
        """Row ``row`` is now ``info``."""
        self._infos[row] = info
        if self._nodes_seen[row] is not info.node:
            self._refresh_static(row, info)
        self._refresh_sums(row, info)
        self._note_change(row)

    def _refresh_sums(self, row: int, info: NodeInfo) -> None:
        requested = info.requested
        for name in requested:
            if name not in self.resource_columns:
                self._add_resource(name)
        self.column_requested[row] = [requested.get(name, 0) for name in self.resource_names]
        self.column_nonzero[row, 0] = info.nonzero_cpu
        self.column_nonzero[row, 1] = info.nonzero_memory
        self.column_pods[row] = len(info.pods)
        has = bool(info.pods_with_affinity)
        if has is not self.column_affinity.item(row):
            self.column_affinity[row] = has
            self.nodes_with_affinity += 1 if has else -1
        has = bool(info.pods_with_required_anti_affinity)
        if has is not self.column_required_anti_affinity.item(row):
            self.column_required_anti_affinity[row] = has
            self.nodes_with_required_anti_affinity += 1 if has else -1
        if info.pvc_ref_counts != self._claims_seen[row]:
            self._refresh_claims(row, info.pvc_ref_counts)

    def _refresh_claims(self, row: int, claims: Mapping[str, int]) -> None:
        used = self.used_pvcs
        for claim, count in self._claims_seen[row].items():
            used[claim] -= count
            if not used[claim]:
                del used[claim]
        used.update(claims)
        self._claims_seen[row] = claims

    def _refresh_static(self, row: int, info: NodeInfo) -> None:
        self._nodes_seen[row] = info.node
        self.static_version += 1
        allocatable = info.allocatable
        for name in allocatable:
            if name not in self.resource_columns and name != "pods":
                self._add_resource(name)
        self.column_allocatable[row] = [allocatable.get(name, 0) for name in self.resource_names]
        self.column_allowed_pods[row] = info.allowed_pod_number
        self.column_unschedulable[row] = info.node is not None and info.node.unschedulable
        for key, column in self._labels.items():
            column.set(row, _label(info, key))
        if self._taints is not None:
            self._taints.set(row, _taints(info))

    def _note_change(self, row: int) -> None:
        """Remember that a row changed, for derived columns, which catch up when asked for. A column
        that lags by more rows than the log holds is cheaper to make anew."""
        self._log.append(row)
        if len(self._log) > 2 * len(self._infos) + 64:
            half = len(self._log) // 2
            del self._log[:half]
            self._log_start += half

    def _add_resource(self, name: str) -> None:
        self.resource_columns[name] = len(self.resource_names)
        self.resource_names = (*self.resource_names, name)
        empty = np.zeros((len(self._infos), 1), dtype=np.int64)
        self.column_allocatable = np.hstack([self.column_allocatable, empty])
        self.column_requested = np.hstack([self.column_requested, empty])


class NodeSubset(NodeInfos):
    """Some rows of a table, in the order of ``rows`` (intp, shape (n,))."""

    __slots__ = ("_rows", "_table")

    def __init__(self, table: NodeTable, rows: Rows) -> None:
        self._table = table
        self._rows = rows

    @overload
    def __getitem__(self, index: int) -> NodeInfo: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[NodeInfo]: ...
    def __getitem__(self, index: int | slice) -> NodeInfo | Sequence[NodeInfo]:
        if isinstance(index, slice):
            return [self._table[int(row)] for row in self._rows[index]]
        return self._table[int(self._rows[index])]

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[NodeInfo]:
        return (self._table[int(row)] for row in self._rows)

    @property
    def names(self) -> Sequence[str]:
        return [self._table.names[int(row)] for row in self._rows]

    @property
    def table(self) -> NodeTable:
        return self._table

    @property
    def rows(self) -> Rows:
        return self._rows


class EmptiedNodes(NodeSubset):
    """Some rows of a table, each as if nothing was on its node: no pods, ports, claims, images.

    Their labels, taints and allocatable resources are as they are, and so is what a plugin counts
    over ``table``. kube-scheduler 1.36 scores on such nodes after an extender has sent nodes back.
    """

    __slots__ = ("_bare",)

    def __init__(self, table: NodeTable, rows: Rows) -> None:
        super().__init__(table, rows)
        self._bare: list[NodeInfo] | None = None

    @property
    def _infos(self) -> list[NodeInfo]:
        if self._bare is None:
            self._bare = [NodeInfo(self._table[int(row)].node) for row in self._rows]
        return self._bare

    @overload
    def __getitem__(self, index: int) -> NodeInfo: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[NodeInfo]: ...
    def __getitem__(self, index: int | slice) -> NodeInfo | Sequence[NodeInfo]:
        return self._infos[index]

    def __iter__(self) -> Iterator[NodeInfo]:
        return iter(self._infos)

    def gather_sums(self, column: NDArray[np.generic]) -> NDArray[np.generic]:
        return np.zeros_like(self.gather(column))

    def derived(
        self, name: str, compute: Callable[[NodeInfo], V | None]
    ) -> tuple[Int32, Sequence[V]]:
        column = InternedColumn([compute(info) for info in self._infos])
        return column.codes, column.values

    def subset(self, rows: Rows) -> NodeInfos:
        return EmptiedNodes(self._table, self._rows[rows])


def _moved(column: NDArray[Any], rows: Rows, blank: Bool) -> NDArray[Any]:
    if not len(column):
        return np.zeros((len(rows), *column.shape[1:]), dtype=column.dtype)
    moved = column[rows]
    moved[blank] = 0
    return moved


def _label(info: NodeInfo, key: str) -> str | None:
    return info.node.labels.get(key) if info.node is not None else None


def _taints(info: NodeInfo) -> tuple[Taint, ...] | None:
    return info.node.taints if info.node is not None else None
