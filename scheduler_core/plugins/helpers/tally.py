"""How many things of each kind are on each node: pods by namespace and labels, affinity terms.

A cluster has few kinds and many things. What is asked about a pod or a term ("does this selector
match it?") is asked once per kind. A tally belongs to a node table and is shared by all who ask it
the same; it follows the rows that change, pod by pod. Counts belong to a tally and follow it, by
differences: one pod more on one node is one addition for each count that is asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from typing import Any, Final, Generic, NamedTuple, TypeVar

import numpy as np

from scheduler_core.api import Pod
from scheduler_core.framework.node_info import NodeInfo
from scheduler_core.framework.nodes import Int64, NodeTable

__all__ = ["Count", "Kind", "PodKind", "Recent", "Tally", "kept_at_most", "pod_tally"]

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

#: Numbers (of 8 bytes) that may be kept for the counts of one tally, and bounds of how many
#: counts that makes.
_NUMBERS_KEPT: Final = 6_000_000
_FEWEST_KEPT, _MOST_KEPT = 16, 2048

#: Changes that are remembered beside twice as many as there are nodes; who lags further behind
#: counts anew.
_LOG_SLACK: Final = 1024

#: Answers about kinds that are gone are kept until there are so many more than kinds.
_STALE_ANSWERS: Final = 1024


def kept_at_most(nodes: int, arrays: int = 1) -> int:
    """How many things of so many arrays over that many nodes may be kept for later."""
    return max(_FEWEST_KEPT, min(_MOST_KEPT, _NUMBERS_KEPT // (arrays * (nodes + 1))))


class Recent(Generic[V]):
    """A bounded dict: the least recently used goes first."""

    __slots__ = ("_kept", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._kept: dict[Hashable, V] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: Hashable, make: Callable[[], V]) -> V:
        """What is kept under ``key``, made if it is not there."""
        found = self._kept.pop(key, None)
        if found is None:
            return self.put(key, make())
        self._kept[key] = found  # last in the dict: most recently used
        return found

    def put(self, key: Hashable, value: V) -> V:
        """Keep ``value`` under ``key``, in place of what is there."""
        kept = self._kept
        kept.pop(key, None)
        while len(kept) >= self.limit:
            del kept[next(iter(kept))]
        kept[key] = value
        return value

    def clear(self) -> None:
        self._kept.clear()


class Kind(Generic[K]):
    """Things that are alike, and where they are."""

    __slots__ = ("group", "key", "where")

    def __init__(self, key: K, group: str) -> None:
        self.key = key
        self.group = group
        #: node name -> how many there; never 0.
        self.where: dict[str, int] = {}


class Change(NamedTuple, Generic[K]):
    """There are ``amount`` more (or less) of a kind on a node."""

    node: str
    kind: Kind[K]
    amount: int


class Tally(Generic[K]):
    """Kinds of things and how many of each are on each node of a table.

    Args:
        table: followed by its changes.
        pods_of: those pods on a node whose things count.
        kinds_of: the kind of every thing of a pod, one entry per thing.
        group_of: sorts kinds into groups; who asks about some groups looks at those alone.

    Attributes:
        layout: grows when the rows of the table are others than they were, or the tally lost track;
            counts begin anew then.
    """

    def __init__(
        self,
        table: NodeTable,
        pods_of: Callable[[NodeInfo], list[Pod]],
        kinds_of: Callable[[Pod], Iterable[K]],
        group_of: Callable[[K], str],
    ) -> None:
        self.table = table
        self.layout = 0
        #: int64, shape (n,): zeros, read-only, which all counts of nothing share.
        self.nothing: Int64 = np.zeros(0, dtype=np.int64)
        self._pods_of = pods_of
        self._kinds_of = kinds_of
        self._group_of = group_of
        self._seen = -1
        #: node name -> its pods as they were counted; nodes without any are not in it.
        self._held: dict[str, list[Pod]] = {}
        self._kinds: dict[K, Kind[K]] = {}
        self._groups: dict[str, dict[K, Kind[K]]] = {}
        self._log: list[Change[K]] = []
        self._log_start = 0
        self._counts: Recent[Count[K]] = Recent(_FEWEST_KEPT)

    def update(self) -> None:
        """Follow the table. To be called before anything is asked in a cycle."""
        table = self.table
        if self._seen == table.change_count:
            return
        changed = table.rows_changed_since(self._seen)
        self._seen = table.change_count
        if changed is None:
            self._take_all()
            return
        for row in changed:
            info = table[row]
            self._take(info.name, self._pods_of(info))

    def count(
        self, question: Hashable, amount_of: Callable[[K], int], groups: Collection[str] | None
    ) -> Count[K]:
        """Things by node, each for ``amount_of`` its kind; up to date.

        ``question`` identifies ``amount_of``; it is only asked about kinds in ``groups`` (None: in
        all), the others have 0.
        """
        count = self._counts.get(question, lambda: Count(self, amount_of, groups))
        count.update()
        return count

    @property
    def groups(self) -> Collection[str]:
        """Groups of which there is a kind."""
        return self._groups.keys()

    def kinds(self, groups: Collection[str] | None = None) -> Iterator[Kind[K]]:
        """Kinds of which there is something on a node."""
        if groups is None:
            yield from self._kinds.values()
            return
        for group in groups:
            yield from self._groups.get(group, {}).values()

    @property
    def change_count(self) -> int:
        """How many changes there were."""
        return self._log_start + len(self._log)

    def changes_since(self, change_count: int) -> Sequence[Change[K]] | None:
        """Changes after ``change_count`` was read; None if that is too long ago."""
        first = change_count - self._log_start
        return self._log[first:] if first >= 0 else None

    # -- following -----------------------------------------------------------------------------

    def _take_all(self) -> None:
        self.layout += 1
        table = self.table
        self._counts.limit = kept_at_most(len(table))
        self.nothing = np.zeros(len(table), dtype=np.int64)
        self.nothing.setflags(write=False)
        for name in self._held.keys() - table.row_of.keys():
            self._take(name, [])
        for info in table:
            self._take(info.name, self._pods_of(info))

    def _take(self, name: str, pods: list[Pod]) -> None:
        """The pods on a node are now these."""
        before = self._held.get(name, [])
        if before == pods:
            return
        if pods:
            self._held[name] = pods.copy()
        else:
            del self._held[name]
        if pods and pods[:-1] == before:
            self._note(name, [(pods[-1], 1)])
        else:
            self._note(name, _difference(before, pods))

    def _note(self, name: str, pods: Iterable[tuple[Pod, int]]) -> None:
        amounts: dict[Kind[K], int] = {}
        for pod, amount in pods:
            for key in self._kinds_of(pod):
                kind = self._kind(key)
                amounts[kind] = amounts.get(kind, 0) + amount
        for kind, amount in amounts.items():
            if amount:
                self._log.append(Change(name, kind, amount))
                left = kind.where.get(name, 0) + amount
                if left:
                    kind.where[name] = left
                else:
                    del kind.where[name]
            if not kind.where:
                self._forget(kind)
        if len(self._log) > 2 * len(self.table) + _LOG_SLACK:
            half = len(self._log) // 2
            del self._log[:half]
            self._log_start += half

    def _kind(self, key: K) -> Kind[K]:
        kind = self._kinds.get(key)
        if kind is None:
            kind = self._kinds[key] = Kind(key, self._group_of(key))
            self._groups.setdefault(kind.group, {})[key] = kind
        return kind

    def _forget(self, kind: Kind[K]) -> None:
        del self._kinds[kind.key]
        group = self._groups[kind.group]
        del group[kind.key]
        if not group:
            del self._groups[kind.group]


class Count(Generic[K]):
    """A number for every node: things of some kinds, weighted. Made by ``Tally.count``.

    Attributes:
        total: the sum over all nodes.
        recounts: how often everything was counted from scratch; changes do not reach over that.
    """

    __slots__ = (
        "_amount_of",
        "_amounts",
        "_groups",
        "_layout",
        "_log",
        "_log_start",
        "_per_node",
        "_seen",
        "_tally",
        "domains",
        "recounts",
        "total",
    )

    def __init__(
        self,
        tally: Tally[K],
        amount_of: Callable[[K], int],
        groups: Collection[str] | None,
    ) -> None:
        self._tally = tally
        self._amount_of = amount_of
        self._groups = groups
        self._amounts: dict[Kind[K], int] = {}
        self._layout = -1
        self._seen = 0
        self._per_node: Int64 = np.zeros(0, dtype=np.int64)
        self._log: list[tuple[int, int]] = []
        self._log_start = 0
        self.total = 0
        self.recounts = 0
        #: Sums of this by domain, which whoever makes them keeps here.
        self.domains: Recent[Any] = Recent(_FEWEST_KEPT)

    @property
    def per_node(self) -> Int64:
        """int64, shape (n,), by row of the table. Never changes: it is another array when a number
        is another."""
        self._per_node.setflags(write=False)
        return self._per_node

    def update(self) -> None:
        """Follow the tally."""
        tally = self._tally
        if self._layout == tally.layout:
            if self._seen == tally.change_count:
                return
            changes = tally.changes_since(self._seen)
            if changes is not None:
                self._seen = tally.change_count
                self._apply(changes)
                return
        self._recount()

    @property
    def change_count(self) -> int:
        """How many changes of nodes' numbers there were."""
        return self._log_start + len(self._log)

    def changes_since(self, change_count: int) -> Sequence[tuple[int, int]] | None:
        """(row, by how much) after ``change_count`` was read; None if that is too long ago."""
        first = change_count - self._log_start
        return self._log[first:] if first >= 0 else None

    def _apply(self, changes: Iterable[Change[K]]) -> None:
        row_of, amount_of = self._tally.table.row_of, self._amounts.get
        # Most changes are of kinds that do not count; those never asked about (None) may.
        for name, kind, number in [c for c in changes if amount_of(c[1]) != 0]:
            amount = amount_of(kind)
            if amount is None:
                amount = self._ask(kind)
            if amount:
                self._add(row_of[name], amount * number)
        if len(self._log) > len(self._per_node) + _LOG_SLACK:
            half = len(self._log) // 2
            del self._log[:half]
            self._log_start += half

    def _add(self, row: int, amount: int) -> None:
        if not self._per_node.flags.writeable:  # somebody has it
            self._per_node = self._per_node.copy()
        self._per_node[row] += amount
        self.total += amount
        self._log.append((row, amount))

    def _recount(self) -> None:
        tally = self._tally
        self._layout, self._seen = tally.layout, tally.change_count
        self.recounts += 1
        self._log, self._log_start = [], self.change_count
        self._amounts.clear()
        row_of = tally.table.row_of
        per_node = tally.nothing
        for kind in tally.kinds(self._groups):
            amount = self._ask(kind)
            if amount:
                size = len(kind.where)
                rows = np.fromiter(map(row_of.__getitem__, kind.where), dtype=np.intp, count=size)
                numbers = np.fromiter(kind.where.values(), dtype=np.int64, count=size)
                if per_node is tally.nothing:
                    per_node = tally.nothing.copy()
                per_node[rows] += amount * numbers
        self._per_node = per_node
        self.total = int(per_node.sum())

    def _ask(self, kind: Kind[K]) -> int:
        """``amount_of`` a kind, remembered."""
        if len(self._amounts) > 2 * len(self._tally._kinds) + _STALE_ANSWERS:
            self._amounts.clear()
        asked = self._groups is None or kind.group in self._groups
        amount = self._amounts[kind] = self._amount_of(kind.key) if asked else 0
        return amount


def _difference(before: Sequence[Pod], after: Sequence[Pod]) -> Iterator[tuple[Pod, int]]:
    """Pods that came (1) and went (-1). One that changed is another object: it does both."""
    numbers = Counter(map(id, after))
    numbers.subtract(map(id, before))
    pods = {id(pod): pod for pod in (*before, *after)}
    return ((pods[i], number) for i, number in numbers.items() if number)


class PodKind(NamedTuple):
    """All that selectors and namespaces can tell of a pod on a node."""

    namespace: str
    labels: frozenset[tuple[str, str]]
    terminating: bool


def pod_tally(table: NodeTable) -> Tally[PodKind]:
    """Pods by kind, grouped by namespace; one for all who ask."""
    return table.companion(
        "Tally/pods", lambda: Tally(table, _pods, _pod_kind, lambda kind: kind.namespace)
    )


def _pods(info: NodeInfo) -> list[Pod]:
    return info.pods


def _pod_kind(pod: Pod) -> tuple[PodKind]:
    return (PodKind(pod.namespace, frozenset(pod.labels.items()), pod.is_terminating),)
