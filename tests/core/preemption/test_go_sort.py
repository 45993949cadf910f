"""The order that Go's sort.Slice leaves, also of equals and of nonsensical comparisons."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from scheduler_core.framework.preemption.go_sort import go_sorted

numbers = st.lists(st.integers(-1_000, 1_000), max_size=120)


def by_first(a: tuple[int, int], b: tuple[int, int]) -> bool:
    return a[0] < b[0]


@given(numbers)
def test_sorts(items: list[int]) -> None:
    assert go_sorted(items, lambda a, b: a < b) == sorted(items)


@given(st.lists(st.integers(0, 3), max_size=200))
def test_sorts_many_equals(items: list[int]) -> None:
    assert go_sorted(items, lambda a, b: a < b) == sorted(items)


@given(st.lists(st.integers(0, 2), max_size=12))
def test_keeps_the_order_of_equals_up_to_twelve(keys: list[int]) -> None:
    items = [(key, place) for place, key in enumerate(keys)]
    assert go_sorted(items, by_first) == sorted(items)


def test_leaves_a_long_run_of_equals_as_it_is() -> None:
    items = [(0, place) for place in range(60)]
    assert go_sorted(items, by_first) == items


def test_reverses_up_to_twelve_that_all_claim_to_be_first() -> None:
    assert go_sorted(list(range(12)), lambda a, b: True) == list(range(11, -1, -1))


def test_thirteen_that_all_claim_to_be_first_are_not_simply_reversed() -> None:
    """From there on it is no longer insertion sort."""
    found = go_sorted(list(range(13)), lambda a, b: True)
    assert sorted(found) == list(range(13))
    assert found != list(range(12, -1, -1))


def organ_pipe(length: int) -> list[int]:
    return [*range(length // 2), *range(length - length // 2, 0, -1)]


def test_sorts_what_makes_bad_pivots() -> None:
    """Long enough, and unbalanced enough, for patterns to be broken and for the heap."""
    for length in (50, 333, 2_000):
        for items in (organ_pipe(length), [i * 7919 % 101 for i in range(length)]):
            assert go_sorted(items, lambda a, b: a < b) == sorted(items)


def test_sorts_against_an_adversary() -> None:
    """McIlroy's killer: values are decided while they are compared, so that every pivot is bad and
    only the heap ends it in time."""
    size, gas = 400, 10**9
    value = [gas] * size
    state = {"solid": 0, "candidate": 0, "comparisons": 0}

    def less(a: int, b: int) -> bool:
        state["comparisons"] += 1
        if value[a] == value[b] == gas:
            frozen = a if a == state["candidate"] else b
            value[frozen] = state["solid"]
            state["solid"] += 1
        if value[a] == gas:
            state["candidate"] = a
        elif value[b] == gas:
            state["candidate"] = b
        return value[a] < value[b]

    found = go_sorted(list(range(size)), less)
    assert [value[i] for i in found] == sorted(value)
    assert state["comparisons"] < size * size // 4


@given(numbers, st.randoms(use_true_random=False))
def test_nonsense_comparisons_lose_nothing(items: list[int], random: object) -> None:
    found = go_sorted(items, lambda a, b: random.random() < 0.5)  # type: ignore[attr-defined]
    assert Counter(found) == Counter(items)
