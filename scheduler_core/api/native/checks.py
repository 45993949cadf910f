"""Faults that both API versions word alike (kube-apiserver 1.36, declarative validation)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..errors import FieldError, invalid, required
from ..syntax import check_dns_subdomain

__all__ = ["chosen", "name_fault", "too_many", "union_fault"]


def chosen(union: Mapping[str, Any], members: Sequence[str]) -> tuple[str, ...]:
    """Which members of a union are set."""
    return tuple(name for name in members if union.get(name) is not None)


def union_fault(found: Sequence[str], members: Sequence[str], path: str) -> Iterator[FieldError]:
    """Exactly one member of a union must be set."""
    if len(found) == 1:
        return
    names = ", ".join(f"`{name}`" for name in members)
    if not found:
        yield path, invalid("", f"must specify one of: {names}")
        return
    text = "{" + ", ".join(f"`{name}`" for name in found) + "}"
    detail = f"exactly one of {names} is required, but multiple fields are set"
    yield path, invalid(text, detail)


def name_fault(name: Any, path: str) -> Iterator[FieldError]:
    """The name of another object must be there and be one."""
    if not name:
        yield path, required()
        return
    problem = check_dns_subdomain(name) if isinstance(name, str) else ""
    if problem:
        yield path, invalid(name, problem)


def too_many(count: int, most: int) -> str:
    """`Too many: 9: must have at most 8 items`."""
    return f"Too many: {count}: must have at most {most} {'item' if most == 1 else 'items'}"
