"""A sort that leaves equal elements in the order in which Go's ``sort.Slice`` leaves them.

Which of several equally important pods is evicted depends on that order, and kube-scheduler's
comparison says "before" both ways for pods without a start time: only the same sequence of
comparisons and swaps gives the same victims. The method is pattern-defeating quicksort (Peters,
arXiv 2106.05123) with Go's constants: insertion sort up to 12 elements, heapsort after too many
bad pivots, a fixed xorshift generator to break patterns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Generic, TypeVar

__all__ = ["go_sorted"]

T = TypeVar("T")
Less = Callable[[T, T], bool]

_MAX_INSERTION: Final = 12
_SHORTEST_NINTHER: Final = 50
_SHORTEST_SHIFTING: Final = 50
_MAX_SHIFTS: Final = 5
#: Swaps of a ninther of which every comparison was out of order.
_ALL_SWAPPED: Final = 12
_UINT64: Final = (1 << 64) - 1


def go_sorted(items: list[T], less: Less[T]) -> list[T]:
    """A sorted copy; ``less(a, b)``: a belongs before b (it need not be consistent)."""
    run = _Run(list(items), less)
    run.sort(0, len(items), len(items).bit_length())
    return run.data


class _Run(Generic[T]):
    """One sort in place; ranges are half open, as ``data[a:b]``."""

    __slots__ = ("_less", "data")

    def __init__(self, data: list[T], less: Less[T]) -> None:
        self.data = data
        self._less = less

    def sort(self, a: int, b: int, bad_pivots_left: int) -> None:
        balanced = partitioned = True
        while (length := b - a) > _MAX_INSERTION:
            if bad_pivots_left == 0:
                self._heap_sort(a, b)
                return
            if not balanced:
                self._break_patterns(a, b)
                bad_pivots_left -= 1
            pivot, swaps = self._choose_pivot(a, b)
            if swaps == _ALL_SWAPPED:  # most likely descending
                self.data[a:b] = self.data[a:b][::-1]
                pivot = (b - 1) - (pivot - a)
                swaps = 0
            if balanced and partitioned and swaps == 0 and self._finish_if_nearly_sorted(a, b):
                return
            if a > 0 and not self._before(a - 1, pivot):  # many equals: set them apart
                a = self._partition_equal(a, b, pivot)
                continue
            middle, partitioned = self._partition(a, b, pivot)
            left, right = middle - a, b - middle
            balanced = min(left, right) >= length // 8
            if left < right:
                self.sort(a, middle, bad_pivots_left)
                a = middle + 1
            else:
                self.sort(middle + 1, b, bad_pivots_left)
                b = middle
        self._insertion_sort(a, b)

    def _before(self, i: int, j: int) -> bool:
        return self._less(self.data[i], self.data[j])

    def _swap(self, i: int, j: int) -> None:
        data = self.data
        data[i], data[j] = data[j], data[i]

    def _insertion_sort(self, a: int, b: int) -> None:
        for i in range(a + 1, b):
            j = i
            while j > a and self._before(j, j - 1):
                self._swap(j, j - 1)
                j -= 1

    # -- pivot -----------------------------------------------------------------------------------

    def _choose_pivot(self, a: int, b: int) -> tuple[int, int]:
        """The pivot's place, and how many comparisons found their elements out of order."""
        quarter = (b - a) // 4
        i, j, k = a + quarter, a + 2 * quarter, a + 3 * quarter
        swaps = 0
        if b - a >= _SHORTEST_NINTHER:
            i, more = self._median(i - 1, i, i + 1)
            swaps += more
            j, more = self._median(j - 1, j, j + 1)
            swaps += more
            k, more = self._median(k - 1, k, k + 1)
            swaps += more
        j, more = self._median(i, j, k)
        return j, swaps + more

    def _median(self, i: int, j: int, k: int) -> tuple[int, int]:
        swaps = 0
        if self._before(j, i):
            i, j, swaps = j, i, swaps + 1
        if self._before(k, j):
            j, swaps = k, swaps + 1
        if self._before(j, i):
            j, swaps = i, swaps + 1
        return j, swaps

    def _break_patterns(self, a: int, b: int) -> None:
        length = b - a
        state = length
        mask = (1 << length.bit_length()) - 1
        middle = a + (length // 4) * 2
        for i in range(middle - 1, middle + 2):
            state ^= (state << 13) & _UINT64
            state ^= state >> 7
            state ^= (state << 17) & _UINT64
            other = state & mask
            if other >= length:
                other -= length
            self._swap(i, a + other)

    # -- partitions --------------------------------------------------------------------------------

    def _partition(self, a: int, b: int, pivot: int) -> tuple[int, bool]:
        """Smaller ones left of the pivot; its new place, and whether it was so already."""
        self._swap(a, pivot)
        i, j = a + 1, b - 1
        already = True
        while True:
            while i <= j and self._before(i, a):
                i += 1
            while i <= j and not self._before(j, a):
                j -= 1
            if i > j:
                self._swap(j, a)
                return j, already
            already = False
            self._swap(i, j)
            i += 1
            j -= 1

    def _partition_equal(self, a: int, b: int, pivot: int) -> int:
        """Those equal to the pivot first; where the larger ones begin."""
        self._swap(a, pivot)
        i, j = a + 1, b - 1
        while True:
            while i <= j and not self._before(a, i):
                i += 1
            while i <= j and self._before(a, j):
                j -= 1
            if i > j:
                return i
            self._swap(i, j)
            i += 1
            j -= 1

    def _finish_if_nearly_sorted(self, a: int, b: int) -> bool:
        i = a + 1
        for _ in range(_MAX_SHIFTS):
            while i < b and not self._before(i, i - 1):
                i += 1
            if i == b:
                return True
            if b - a < _SHORTEST_SHIFTING:
                return False
            self._swap(i, i - 1)
            if i - a >= 2:
                self._shift_left(i - 1)
            if b - i >= 2:
                self._shift_right(i + 1, b)
        return False

    def _shift_left(self, start: int) -> None:
        for j in range(start, 0, -1):
            if not self._before(j, j - 1):
                return
            self._swap(j, j - 1)

    def _shift_right(self, start: int, b: int) -> None:
        for j in range(start, b):
            if not self._before(j, j - 1):
                return
            self._swap(j, j - 1)

    # -- heapsort ----------------------------------------------------------------------------------

    def _heap_sort(self, a: int, b: int) -> None:
        length = b - a
        for root in range((length - 1) // 2, -1, -1):
            self._sift_down(a, root, length)
        for end in range(length - 1, -1, -1):
            self._swap(a, a + end)
            self._sift_down(a, 0, end)

    def _sift_down(self, first: int, root: int, end: int) -> None:
        while (child := 2 * root + 1) < end:
            if child + 1 < end and self._before(first + child, first + child + 1):
                child += 1
            if not self._before(first + root, first + child):
                return
            self._swap(first + root, first + child)
            root = child
