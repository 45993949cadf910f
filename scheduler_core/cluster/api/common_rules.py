"""What the rules of several kinds have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from scheduler_core.api.errors import FieldError, invalid, unsupported
from scheduler_core.ports import Json

__all__ = ["IMMUTABLE", "Rule", "as_json", "changed_faults", "choice_faults", "name_faults"]

#: (the object that is there or None, the new one) -> faults
Rule = Callable[[Json | None, Json], Iterator[FieldError]]

IMMUTABLE: Final = "field is immutable"


def changed_faults(
    old: Json | None, new: Json, fields: Sequence[str], path: str = ""
) -> Iterator[FieldError]:
    for field in fields if old is not None else ():
        if (old or {}).get(field) != new.get(field):
            yield f"{path}{field}", invalid(new.get(field), IMMUTABLE)


def choice_faults(path: str, value: Any, choices: Sequence[str]) -> Iterator[FieldError]:
    if value is not None and value not in choices:
        yield path, unsupported(value, choices)


def name_faults(path: str, value: Any, check: Callable[[str], str]) -> Iterator[FieldError]:
    problem = check(value) if value else ""
    if problem:
        yield path, invalid(value, problem)


def as_json(value: Any) -> str:
    return invalid(value, "").removeprefix("Invalid value: ").removesuffix(": ")
