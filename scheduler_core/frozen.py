"""Dataclasses of which every cycle makes some."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

__all__ = ["frozen_record"]

T = TypeVar("T")


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(field,))
def frozen_record(cls: type[T]) -> type[T]:
    """A dataclass with slots, compared by identity, that mypy holds frozen.

    At run time nothing refuses a write. What ``dataclass(frozen=True)`` does instead makes objects
    half as dear again, which for the records of a cycle is 2 us of the 100 that it takes.
    """
    return dataclass(slots=True, eq=False)(cls)
