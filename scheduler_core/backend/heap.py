"""A heap whose items are found, replaced and removed by key."""

from __future__ import annotations

import heapq
import logging
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

T = TypeVar("T")

log = logging.getLogger(__name__)

#: So many removed entries may lie in the heap before it is rebuilt without them, besides as many
#: as there are live ones.
SLACK = 64


class _Order(Generic[T]):
    """The less function, which may be a plugin's and may raise: then the order of entry decides,
    and the log says so once. An exception inside ``heapq`` would lose an item."""

    __slots__ = ("failed", "less")

    def __init__(self, less: Callable[[T, T], bool]) -> None:
        self.less = less
        self.failed = False

    def note_failure(self) -> None:
        if not self.failed:
            self.failed = True
            log.exception("the queue's less function raised; such pods are taken in order of entry")


class _ByLess(Generic[T]):
    """An item's rank where only the less function knows it: no two are equal, the order of entry
    decides, so that a comparison asks ``less`` once or twice."""

    __slots__ = ("item", "order", "sequence")

    def __init__(self, item: T, order: _Order[T], sequence: int) -> None:
        self.item = item
        self.order = order
        self.sequence = sequence

    def __lt__(self, other: _ByLess[T]) -> bool:
        less, is_first = self.order.less, self.sequence < other.sequence
        try:
            return less(self.item, other.item) or (is_first and not less(other.item, self.item))
        except Exception:  # noqa: BLE001 - see _Order
            self.order.note_failure()
            return is_first

    def ties(self, other: _ByLess[T]) -> bool:
        """Whether the less function puts neither of the two first."""
        less = self.order.less
        try:
            return not less(self.item, other.item) and not less(other.item, self.item)
        except Exception:  # noqa: BLE001 - see _Order
            self.order.note_failure()
            return True


class _Entry(Generic[T]):
    __slots__ = ("item", "key", "live", "rank", "sequence")

    def __init__(self, key: str, item: T, sequence: int, rank: Any) -> None:
        self.key = key
        self.item = item
        self.sequence = sequence
        self.rank = rank
        self.live = True


class KeyedHeap(Generic[T]):
    """Items ordered by ``less``; equal ones in order of entry.

    Removed entries stay in the array, marked, until they come up: add, remove and fix cost
    O(log n), pop O(log n) amortised.

    ``sort_key`` gives the same order as ``less`` by numbers or texts to compare, where there is
    such a thing: then comparisons cost next to nothing.
    """

    __slots__ = ("_array", "_entries", "_next", "_order", "_sort_key")

    def __init__(
        self, less: Callable[[T, T], bool], sort_key: Callable[[T], Any] | None = None
    ) -> None:
        self._order = _Order(less)
        self._sort_key = sort_key
        #: (rank, sequence, entry): the first two decide, as no two sequences are the same.
        self._array: list[tuple[Any, int, _Entry[T]]] = []
        self._entries: dict[str, _Entry[T]] = {}
        self._next = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: str) -> bool:
        return key in self._entries

    def __iter__(self) -> Iterator[T]:
        """All items, in no particular order."""
        return (entry.item for entry in self._entries.values())

    def get(self, key: str) -> T | None:
        entry = self._entries.get(key)
        return None if entry is None else entry.item

    def add(self, key: str, item: T) -> None:
        """Put an item in; one that has this key already goes out."""
        self.remove(key)
        self._push(key, item, self._next)
        self._next += 1

    def fix(self, key: str, before: T) -> None:
        """The item under ``key`` was changed in place; ``before`` is a copy from before.

        It keeps its turn among equals.
        """
        entry = self._entries[key]
        item = entry.item
        rank = self._rank(item, entry.sequence)
        if isinstance(entry.rank, _ByLess):
            entry.rank.item = before  # what is left behind must compare as it did
            if rank.ties(entry.rank):
                entry.rank.item = item
                return
        elif rank == entry.rank:
            return
        entry.live = False
        self._push(key, item, entry.sequence)

    def remove(self, key: str) -> T | None:
        entry = self._entries.pop(key, None)
        if entry is None:
            return None
        entry.live = False
        if len(self._array) > 2 * len(self._entries) + SLACK:
            self._array = [e for e in self._array if e[2].live]
            heapq.heapify(self._array)
        return entry.item

    def peek(self) -> T | None:
        """The first item, or None."""
        array = self._array
        while array and not array[0][2].live:
            heapq.heappop(array)
        return array[0][2].item if array else None

    def pop(self) -> T | None:
        """Take the first item out; None where there is none."""
        while self._array:
            entry = heapq.heappop(self._array)[2]
            if entry.live:
                del self._entries[entry.key]
                return entry.item
        return None

    def ordered(self) -> list[T]:
        """All items in the order in which they would be popped."""
        # A sorted array is a heap too; kept, it makes the next sort nearly linear.
        self._array = [e for e in self._array if e[2].live]
        self._array.sort()
        return [entry.item for _, _, entry in self._array]

    def _push(self, key: str, item: T, sequence: int) -> None:
        entry = _Entry(key, item, sequence, self._rank(item, sequence))
        self._entries[key] = entry
        heapq.heappush(self._array, (entry.rank, sequence, entry))

    def _rank(self, item: T, sequence: int) -> Any:
        if self._sort_key is None:
            return _ByLess(item, self._order, sequence)
        return self._sort_key(item)
