"""How many things of each kind are on each node: pods by namespace and labels, affinity terms.

A cluster has few kinds and many things. What is asked about a pod or a term ("does this selector
match it?") is asked once per kind; the number of matches per node is then a sum over arrays. This
is the one place that keeps counts from cycle to cycle: per cycle only the nodes that changed are
looked at in Python.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Final, Generic, NamedTuple, TypeVar

import numpy as np

from scheduler_core.framework.node_info import NodeInfo
from scheduler_core.framework.nodes import Bool, Int32, Int64, NodeInfos

__all__ = ["PodKind", "Tally", "pod_tally"]

K = TypeVar("K", bound=Hashable)

#: A node's things: (kind, how many) of each.
Bag = frozenset[tuple[K, int]]

#: How many questions a tally remembers the answers to.
_MAX_QUESTIONS: Final = 64

#: Bags that nodes had before are kept until there are this many per node.
_BAGS_PER_NODE: Final = 4
_FEW_BAGS: Final = 1024


class _Growing:
    """An int64 array that is appended to."""

    __slots__ = ("_array", "_size")

    def __init__(self) -> None:
        self._array: Int64 = np.empty(64, dtype=np.int64)
        self._size = 0

    def extend(self, values: Sequence[int]) -> None:
        size = self._size + len(values)
        if size > len(self._array):
            larger = np.empty(max(size, 2 * len(self._array)), dtype=np.int64)
            larger[: self._size] = self._array[: self._size]
            self._array = larger
        self._array[self._size : size] = values
        self._size = size

    @property
    def array(self) -> Int64:
        return self._array[: self._size]


class Tally(Generic[K]):
    """Kinds of things and how many of each are on each node of the snapshot.

    Args:
        name: identifies ``kinds_of``; tallies of one name share the work per changed node.
        kinds_of: the kind of every thing on a node, one entry per thing.

    Distinct bags (what one node holds) are interned by the node table; their contents lie here as
    parallel arrays: bag, kind, how many.
    """

    def __init__(self, name: str, kinds_of: Callable[[NodeInfo], Iterable[K]]) -> None:
        self._name = name
        self._kinds_of = kinds_of
        self._epoch = 0
        self._codes: Int32 = np.empty(0, dtype=np.int32)
        self._taken = 0
        self._forget(())

    def update(self, nodes: NodeInfos) -> None:
        """Bring the counts up to date with the snapshot of ``nodes``."""
        bags = self._read(nodes)
        if len(bags) > _BAGS_PER_NODE * len(self._codes) + _FEW_BAGS:
            self._epoch += 1  # under another name: the table begins anew, without old bags
            bags = self._read(nodes)
        if bags is not self._bags:
            self._forget(bags)
        for number in range(self._taken, len(bags)):
            self._take(number, bags[number])
        self._taken = len(bags)

    @property
    def kinds(self) -> Sequence[K]:
        """All kinds; some may have no thing of theirs on a node any more."""
        return self._kinds

    def answers(self, question: Hashable, asks: Callable[[K], bool]) -> Bool:
        """``asks(kind)`` of every kind, bool, shape (kinds,). ``question`` identifies ``asks``."""
        known = self._answers.pop(question, None)
        done = 0 if known is None else len(known)
        if known is None or done < len(self._kinds):
            fresh = np.fromiter(map(asks, self._kinds[done:]), dtype=bool)
            known = fresh if known is None else np.concatenate([known, fresh])
        while len(self._answers) >= _MAX_QUESTIONS:
            self._answers.pop(next(iter(self._answers)))
        self._answers[question] = known  # last in the dict: most recently used
        return known

    def totals(self, weights: Int64 | Bool) -> Int64:
        """Sum of the weights of all things on each node.

        Args:
            weights: of each kind, whole numbers or bool, shape (kinds,).

        Returns:
            int64, shape (n,), for the rows of the node table as of ``update``.
        """
        per_entry = weights[self._entry_kinds.array] * self._entry_counts.array
        # One more bag than there are: code -1, a node with nothing, reads the last, which is 0.
        per_bag = np.bincount(
            self._entry_bags.array, weights=per_entry, minlength=len(self._bags) + 1
        )
        totals: Int64 = per_bag.astype(np.int64)[self._codes]
        return totals

    def _read(self, nodes: NodeInfos) -> Sequence[Bag[K]]:
        self._codes, bags = nodes.table.derived(f"{self._name}#{self._epoch}", self._bag)
        return bags

    def _bag(self, info: NodeInfo) -> Bag[K] | None:
        counts = Counter(self._kinds_of(info))
        return frozenset(counts.items()) if counts else None

    def _forget(self, bags: Sequence[Bag[K]]) -> None:
        self._bags = bags
        self._taken = 0
        self._kinds: list[K] = []
        self._index: dict[K, int] = {}
        self._answers: dict[Hashable, Bool] = {}
        self._entry_bags = _Growing()
        self._entry_kinds = _Growing()
        self._entry_counts = _Growing()

    def _take(self, number: int, bag: Bag[K]) -> None:
        self._entry_bags.extend([number] * len(bag))
        self._entry_kinds.extend([self._number_of(kind) for kind, _ in bag])
        self._entry_counts.extend([count for _, count in bag])

    def _number_of(self, kind: K) -> int:
        number = self._index.get(kind)
        if number is None:
            number = self._index[kind] = len(self._kinds)
            self._kinds.append(kind)
        return number


class PodKind(NamedTuple):
    """All that selectors and namespaces can tell of a pod on a node."""

    namespace: str
    labels: frozenset[tuple[str, str]]
    terminating: bool


def pod_tally() -> Tally[PodKind]:
    """Pods by kind."""
    return Tally("Tally/pods", _pod_kinds)


def _pod_kinds(info: NodeInfo) -> Iterable[PodKind]:
    return [
        PodKind(pod.namespace, frozenset(pod.labels.items()), pod.is_terminating)
        for pod in info.pods
    ]
