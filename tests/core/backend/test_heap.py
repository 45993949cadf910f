from __future__ import annotations

import heapq
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler_core.backend.heap import SLACK, KeyedHeap


class Item:
    def __init__(self, name: str, rank: int) -> None:
        self.name = name
        self.rank = rank


def by_rank(a: Item, b: Item) -> bool:
    return a.rank < b.rank


def heap_of(*ranks: int) -> tuple[KeyedHeap[Item], list[Item]]:
    heap: KeyedHeap[Item] = KeyedHeap(by_rank)
    items = [Item(f"i{n}", rank) for n, rank in enumerate(ranks)]
    for item in items:
        heap.add(item.name, item)
    return heap, items


def drain(heap: KeyedHeap[Item]) -> list[str]:
    names = []
    while (item := heap.pop()) is not None:
        names.append(item.name)
    return names


def test_pops_in_order_and_equals_in_order_of_entry() -> None:
    heap, _ = heap_of(2, 1, 2, 1, 0)
    assert drain(heap) == ["i4", "i1", "i3", "i0", "i2"]


def test_an_empty_heap_has_nothing_to_peek_or_pop() -> None:
    heap, _ = heap_of()
    assert heap.peek() is None
    assert heap.pop() is None


def test_a_removed_item_never_comes_up() -> None:
    heap, items = heap_of(1, 2, 3)
    assert heap.remove("i0") is items[0]
    assert heap.remove("i0") is None
    assert "i0" not in heap
    assert len(heap) == 2
    assert heap.peek() is items[1]
    assert drain(heap) == ["i1", "i2"]


def test_an_item_of_the_same_key_replaces_the_old_one() -> None:
    heap, _ = heap_of(1, 2)
    heap.add("i0", Item("new", 3))
    assert len(heap) == 2
    assert drain(heap) == ["i1", "new"]


@pytest.mark.parametrize(
    "rank, order",
    [
        pytest.param(9, ["i1", "i2", "i0"], id="goes-back"),
        pytest.param(0, ["i0", "i1", "i2"], id="stays-first"),
        pytest.param(1, ["i0", "i1", "i2"], id="unchanged-keeps-its-turn"),
        pytest.param(2, ["i0", "i1", "i2"], id="ties-keep-the-turn-of-entry"),
    ],
)
def test_fix_after_a_change_in_place(rank: int, order: list[str]) -> None:
    heap, items = heap_of(1, 2, 2)
    before = Item("i0", items[0].rank)
    items[0].rank = rank
    heap.fix("i0", before)
    assert len(heap) == 3
    assert drain(heap) == order


def test_what_a_fixed_item_leaves_behind_does_not_disturb_the_others() -> None:
    heap, items = heap_of(0, 1, 5, 2, 3)
    before = Item("i1", 1)
    items[1].rank = 9
    heap.fix("i1", before)
    assert drain(heap) == ["i0", "i3", "i4", "i2", "i1"]


def test_ordered_lists_what_pop_would_give_and_takes_nothing_out() -> None:
    heap, _ = heap_of(3, 1, 2)
    heap.remove("i1")
    assert [item.name for item in heap.ordered()] == ["i2", "i0"]
    assert drain(heap) == ["i2", "i0"]


def test_many_removed_items_do_not_pile_up() -> None:
    heap, _ = heap_of(*range(10 * SLACK))
    for n in range(10 * SLACK):
        heap.remove(f"i{n}")
    assert len(heap._array) <= SLACK


def test_a_less_function_that_raises_loses_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def broken(a: Item, b: Item) -> bool:
        raise RuntimeError("boom")

    heap: KeyedHeap[Item] = KeyedHeap(broken)
    for n in range(20):
        heap.add(f"i{n}", Item(f"i{n}", 0))
    assert drain(heap) == [f"i{n}" for n in range(20)]
    assert len(caplog.records) == 1
    assert "taken in order of entry" in caplog.text


Operation = tuple[str, int, int]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["add", "remove", "fix", "pop", "ordered"]),
            st.integers(0, 15),
            st.integers(0, 5),
        )
    )
)
def test_behaves_like_a_sorted_list(operations: list[Operation]) -> None:
    heap: KeyedHeap[Item] = KeyedHeap(by_rank)
    model: dict[str, tuple[int, int]] = {}
    entries = 0
    for name, n, rank in operations:
        key = f"i{n}"
        if name == "add":
            heap.add(key, Item(key, rank))
            model[key] = (rank, entries)
            entries += 1
        elif name == "remove":
            assert (heap.remove(key) is not None) == (model.pop(key, None) is not None)
        elif name == "fix" and key in model:
            item = heap.get(key)
            assert item is not None
            before = Item(key, item.rank)
            item.rank = rank
            heap.fix(key, before)
            model[key] = (rank, model[key][1])
        elif name == "pop":
            first = min(model, key=lambda k: model[k], default=None)
            popped: Any = heap.pop()
            assert (popped and popped.name) == first
            model.pop(first or "", None)
        elif name == "ordered":
            assert [i.name for i in heap.ordered()] == sorted(model, key=lambda k: model[k])
        assert len(heap) == len(model)
    assert drain(heap) == heapq.nsmallest(len(model), model, key=lambda k: model[k])
