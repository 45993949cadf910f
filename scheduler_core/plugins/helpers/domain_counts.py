"""Counts per topology domain: per value of one node label.

``DomainSums`` are the numbers of one moment and never change; a ``DomainCounter`` makes the next
ones from them by difference. ``DomainCounts`` are such numbers with changes in thought.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from scheduler_core.framework.columns import InternedColumn
from scheduler_core.framework.nodes import Bool, Int64, NodeInfos, NodeTable, Rows
from scheduler_core.plugins.helpers.tally import Count, Recent

__all__ = [
    "DomainCounter",
    "DomainCounts",
    "DomainSums",
    "Topology",
    "added",
    "domain_counter",
    "topology",
]

A = TypeVar("A", bound=NDArray[Any])

#: Topology keys whose domains are kept; most clusters use two or three.
_KEYS_KEPT: Final = 32


class Topology:
    """The domains of one topology key, and which node is in which, at one moment.

    Attributes:
        size: how many domains there are or have been; their numbers are the label's codes.
        domain_of: intp, shape (n,): each node's domain; ``size`` without the label. Where a Node
            changes, but no domain, it stays the same array.
        is_everywhere: every node has the label.
    """

    __slots__ = ("_used", "column", "domain_of", "is_everywhere", "size", "version")

    def __init__(self, table: NodeTable, key: str, before: Topology | None = None) -> None:
        self.version = table.static_version
        self.column: InternedColumn[str] = table.label_column(key)
        self.size = len(self.column.values)
        codes = self.column.codes
        domain_of: Rows = np.where(codes < 0, self.size, codes).astype(np.intp)
        if before and before.size == self.size and np.array_equal(before.domain_of, domain_of):
            domain_of = before.domain_of
        self.domain_of: Rows = _frozen(domain_of)
        self.is_everywhere = bool((codes >= 0).all())
        self._used: int | None = None

    def domain(self, value: str) -> int:
        """The domain of a value; ``size`` where there is none."""
        code = self.column.code_of(value)
        return code if 0 <= code < self.size else self.size

    def domains_of(self, nodes: NodeInfos) -> Rows:
        """intp, shape (n,): ``domain_of`` some nodes of the table."""
        rows = nodes.rows
        return self.domain_of if rows is None else self.domain_of.take(rows)

    def has_label(self, nodes: NodeInfos) -> Bool | None:
        """bool, shape (n,): nodes with the label; None: all of them."""
        return None if self.is_everywhere else self.domains_of(nodes) < self.size

    def count_used(self, nodes: NodeInfos, mask: Bool | None) -> int:
        """How many values these nodes have (where given: those in ``mask``, bool, shape (n,)); a
        missing label is the empty value."""
        if nodes.rows is None and mask is None:
            if self._used is None:
                self._used = self._count_used(self.domain_of)
            return self._used
        domains = self.domains_of(nodes)
        return self._count_used(domains if mask is None else domains[mask])

    def _count_used(self, domains: Rows) -> int:
        used = np.zeros(self.size + 1, dtype=bool)
        used[domains] = True
        empty = self.domain("")
        if empty != self.size and used[empty]:
            used[self.size] = False
        return int(np.count_nonzero(used))


def topology(table: NodeTable, key: str) -> Topology:
    """The domains of a topology key as they are now."""
    kept: Recent[Topology] = table.companion("topologies", lambda: Recent(_KEYS_KEPT))
    known = kept.get(key, lambda: Topology(table, key))
    if known.version != table.static_version:
        known = kept.put(key, Topology(table, key, known))
    return known


class DomainSums:
    """A number for every domain that takes part. Never changes.

    Attributes:
        numbers: int64, shape (size + 1,): by domain; the last is of nodes without the label, 0
            where those do not count.
        exists: bool, shape (size,): domains that take part; None: all of them.
    """

    __slots__ = (
        "_at_minimum",
        "_minimum",
        "_nonzero",
        "_over_table",
        "_positive",
        "_size",
        "exists",
        "numbers",
        "topology",
    )

    def __init__(self, topology: Topology, numbers: Int64, exists: Bool | None = None) -> None:
        self.topology = topology
        self.numbers = _frozen(numbers)
        self.exists = exists
        self._positive: Bool | None = None
        self._over_table: Int64 | None = None
        self._nonzero = -1
        self._size = -1
        self._minimum = 0
        self._at_minimum = 0

    @classmethod
    def of(
        cls,
        table: NodeTable,
        key: str,
        per_node: Int64,
        admitted: Bool | None = None,
        count_unlabelled: bool = False,
    ) -> DomainSums:
        """Sums of ``per_node`` (int64, shape (n,), of all nodes of the table) by domain. With
        ``admitted`` (bool, shape (n,)) only those nodes count, and only their domains exist."""
        domains = topology(table, key)
        slots, size = domains.domain_of, domains.size + 1
        if admitted is None:
            exists = None
        else:
            slots, per_node = slots[admitted], per_node[admitted]
            exists = _frozen(np.bincount(slots, minlength=size)[:-1] > 0)
        # Whole numbers in float64 are exact up to 2**53.
        numbers: Int64 = np.bincount(slots, weights=per_node, minlength=size).astype(np.int64)
        if not count_unlabelled:
            numbers[-1] = 0
        return cls(domains, numbers, exists)

    def changed(self, amounts: dict[int, int]) -> DomainSums:
        """Sums with some more (or less) in some domains."""
        numbers = self.numbers.copy()
        for domain, amount in amounts.items():
            numbers[domain] += amount
        after = DomainSums(self.topology, numbers, self.exists)
        before = self.numbers
        if all((numbers[d] > 0) == (before[d] > 0) for d in amounts):
            after._positive = self._positive
        return after

    def get(self, value: str) -> int:
        """The number of a domain; 0 where there is none."""
        domain = self.topology.domain(value)
        return int(self.numbers[domain]) if domain < self.topology.size else 0

    @property
    def positive(self) -> Bool:
        """bool, shape (size + 1,): domains with more than 0; the same array as long as they are
        the same domains. Nodes without the label (the last) are in none."""
        if self._positive is None:
            self._positive = self.numbers > 0
            self._positive[-1] = False
            self._positive.setflags(write=False)
        return self._positive

    @property
    def nonzero(self) -> int:
        """How many domains have another number than 0."""
        if self._nonzero < 0:
            self._nonzero = int(np.count_nonzero(self.numbers[:-1]))
        return self._nonzero

    def size_and_minimum(self) -> tuple[int, int, int]:
        """How many domains take part, the smallest of their numbers (0 without domains), and how
        many have that."""
        if self._size < 0:
            numbers = self.numbers[:-1]
            if self.exists is not None:
                numbers = numbers[self.exists]
            self._size = len(numbers)
            if len(numbers):
                self._minimum = int(numbers.min())
                self._at_minimum = int(np.count_nonzero(numbers == self._minimum))
        return self._size, self._minimum, self._at_minimum

    def takes_part(self, domain: int) -> bool:
        """Whether a domain (below ``size``) exists."""
        return self.exists is None or bool(self.exists[domain])

    def over_table(self) -> Int64:
        """int64, shape (n,): the number of each node's domain, of all nodes of the table."""
        if self._over_table is None:
            self._over_table = _frozen(self.numbers.take(self.topology.domain_of))
        return self._over_table


def added(some: DomainSums, more: DomainSums) -> DomainSums:
    """The sums of two numbers of each domain of one topology, where all domains take part."""
    return DomainSums(some.topology, some.numbers + more.numbers)


class DomainCounter:
    """Sums of a count by domain, which follow it.

    Args:
        admitted: bool, shape (n,), of all nodes of the table: those that count; None: all. It may
            depend on Node objects alone: it is asked again when one has changed.
        count_unlabelled: nodes without the label share a number.
    """

    __slots__ = (
        "_admitted",
        "_admitted_now",
        "_count",
        "_count_unlabelled",
        "_key",
        "_now",
        "_recounts",
        "_seen",
        "_table",
        "recounted",
    )

    def __init__(
        self,
        count: Count[Any],
        table: NodeTable,
        key: str,
        admitted: Callable[[], Bool | None],
        count_unlabelled: bool,
    ) -> None:
        self._count = count
        self._table = table
        self._key = key
        self._admitted = admitted
        self._count_unlabelled = count_unlabelled
        self._admitted_now: Bool | None = None
        self._now: DomainSums | None = None
        self._recounts = -1
        self._seen = 0
        #: How often all nodes were summed up, for tests.
        self.recounted = 0

    def sums(self) -> DomainSums:
        """The sums now: the same object as before where no domain's number has changed."""
        now, count = self._now, self._count
        if (
            now is not None
            and self._recounts == count.recounts
            and now.topology.version == self._table.static_version
        ):
            if self._seen == count.change_count:
                return now
            changes = count.changes_since(self._seen)
            if changes is not None:
                self._seen = count.change_count
                self._now = now = self._apply(now, changes)
                return now
        return self._recount()

    def _apply(self, now: DomainSums, changes: Sequence[tuple[int, int]]) -> DomainSums:
        amounts: dict[int, int] = {}
        admitted, topology = self._admitted_now, now.topology
        for row, amount in changes:
            if admitted is not None and not admitted[row]:
                continue
            domain = int(topology.domain_of[row])
            if domain < topology.size or self._count_unlabelled:
                amounts[domain] = amounts.get(domain, 0) + amount
        amounts = {domain: amount for domain, amount in amounts.items() if amount}
        return now.changed(amounts) if amounts else now

    def _recount(self) -> DomainSums:
        count = self._count
        self.recounted += 1
        self._recounts, self._seen = count.recounts, count.change_count
        self._admitted_now = self._admitted()
        self._now = DomainSums.of(
            self._table, self._key, count.per_node, self._admitted_now, self._count_unlabelled
        )
        return self._now


def domain_counter(
    count: Count[Any],
    table: NodeTable,
    key: str,
    *,
    among: Hashable = None,
    admitted: Callable[[], Bool | None] = lambda: None,
    count_unlabelled: bool = False,
) -> DomainCounter:
    """The counter of a count's domains; one for all who ask the same. ``among`` identifies
    ``admitted``."""
    kept: Recent[DomainCounter] = count.domains
    return kept.get(
        (key, among, count_unlabelled),
        lambda: DomainCounter(count, table, key, admitted, count_unlabelled),
    )


class DomainCounts:
    """Sums that change for pods that are added or removed in thought.

    Clones share the sums and keep only their own changes, so preemption's dry run can have many.
    """

    __slots__ = ("_changed", "sums")

    def __init__(self, sums: DomainSums) -> None:
        self.sums = sums
        #: value -> its number, where that is not the one in ``sums`` any more.
        self._changed: dict[str, int] = {}

    @property
    def is_changed(self) -> bool:
        """Whether a number differs from ``sums`` in thought."""
        return bool(self._changed)

    def get(self, value: str) -> int:
        """The number of a domain; 0 where it takes no part."""
        known = self._changed.get(value)
        return self.sums.get(value) if known is None else known

    def add(self, value: str, amount: int) -> None:
        """Change the number of a domain, which takes part from now on."""
        self._changed[value] = self.get(value) + amount

    def by_domain(self) -> Int64:
        """int64, shape (size + 1,): the number of each domain; the last entry is for nodes without
        the label."""
        if not self._changed:
            return self.sums.numbers
        numbers = self.sums.numbers.copy()
        for value, number in self._changed.items():
            domain = self.sums.topology.domain(value)
            if domain < self.sums.topology.size:
                numbers[domain] = number
        return numbers

    def positive(self) -> Bool:
        """bool, shape (size + 1,): domains with more than 0."""
        return self.by_domain() > 0 if self._changed else self.sums.positive

    def is_zero(self) -> bool:
        """Whether every domain's number is 0."""
        if any(self._changed.values()):
            return False
        overridden = sum(1 for value in self._changed if self.sums.get(value))
        return self.sums.nonzero == overridden

    def size_and_minimum(self) -> tuple[int, int]:
        """How many domains take part, and the smallest of their numbers (0 without domains)."""
        size, minimum, at_minimum = self.sums.size_and_minimum()
        if not self._changed:
            return size, minimum
        sums, topology = self.sums, self.sums.topology
        domains = [topology.domain(value) for value in self._changed]
        known = [d for d in domains if d < topology.size and sums.takes_part(d)]
        lowest = [*self._changed.values()]
        if at_minimum > sum(1 for d in known if sums.numbers[d] == minimum):
            lowest.append(minimum)
        elif size > len(known):
            untouched = np.ones(topology.size, dtype=bool) if sums.exists is None else sums.exists
            untouched = untouched.copy()
            untouched[known] = False
            lowest.append(int(sums.numbers[:-1][untouched].min()))
        return size - len(known) + len(self._changed), min(lowest)

    def clone(self) -> DomainCounts:
        twin = DomainCounts(self.sums)
        twin._changed = self._changed.copy()
        return twin


def _frozen(array: A) -> A:
    array.setflags(write=False)
    return array
