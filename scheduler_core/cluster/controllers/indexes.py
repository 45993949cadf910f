"""Sets of completion indexes as a Job's status writes them: `0,2-4`."""

from __future__ import annotations

from collections.abc import Iterable, Set

__all__ = ["missing_indexes", "numbers_of", "text_of"]


def numbers_of(text: str | None) -> set[int]:
    """The numbers that a text such as `0,2-4` names."""
    numbers: set[int] = set()
    for part in filter(None, (text or "").split(",")):
        first, _, last = part.partition("-")
        numbers.update(range(int(first), int(last or first) + 1))
    return numbers


def text_of(numbers: Iterable[int]) -> str:
    """The shortest such text."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(_run_text(first, last) for first, last in runs)


def _run_text(first: int, last: int) -> str:
    if first == last:
        return str(first)
    # As the reference: two in a row are two, three are a range.
    return f"{first},{last}" if last == first + 1 else f"{first}-{last}"


def missing_indexes(completions: int, taken: Set[int], count: int) -> list[int]:
    """The lowest `count` indexes that nobody has."""
    return [number for number in range(completions) if number not in taken][:count]
