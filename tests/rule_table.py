"""Tables that say which named test covers which rule, and the check that each of them is there.

A case is ``file::test``, ``file::Class::test``, or either with ``[id]``; files are below tests/.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

__all__ = ["Rules", "all_cases", "missing"]

TESTS = Path(__file__).parent

#: section -> rule -> cases
Rules = Mapping[str, Mapping[str, Sequence[str]]]


def all_cases(rules: Rules) -> list[Any]:
    """One parameter for each rule, named after it."""
    return [
        pytest.param(cases, id=f"{section}: {rule}")
        for section, found in rules.items()
        for rule, cases in found.items()
    ]


def missing(case: str) -> str:
    """What is not there of a case, or ""."""
    name, _, rest = case.partition("::")
    test, bracket, wanted = rest.partition("[")
    if not (TESTS / name).exists():
        return f"there is no tests/{name}"
    ids = _tests(name).get(test)
    if ids is None:
        return f"{name} has no {test}"
    wanted = wanted.removesuffix("]")
    if bracket and wanted not in ids:
        return f"{name}: {test} has no case {wanted}"
    return ""


@cache
def _tests(name: str) -> Mapping[str, frozenset[str]]:
    """Test -> texts in its decorators, and in what of the module they name: its ids are there."""
    tree = ast.parse((TESTS / name).read_text(encoding="utf-8"))
    values = {target: node.value for node in tree.body for target in _assigned(node)}
    found: dict[str, frozenset[str]] = {}
    for prefix, function in _functions(tree):
        texts: set[str] = set()
        for decorator in function.decorator_list:
            texts |= _texts(decorator, values, set())
        found[f"{prefix}{function.name}"] = frozenset(texts)
        # A class need not be named.
        found[function.name] = found.get(function.name, frozenset()) | texts
    return found


def _functions(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef]]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield "", node
        elif isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef):
                    yield f"{node.name}::", inner


def _assigned(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.Assign):
        return [target.id for target in node.targets if isinstance(target, ast.Name)]
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
        return [node.target.id]
    return []


def _texts(node: ast.AST, values: Mapping[str, ast.expr | None], seen: set[str]) -> set[str]:
    texts: set[str] = set()
    for inner in ast.walk(node):
        if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
            texts.add(inner.value)
        elif isinstance(inner, ast.Name) and inner.id not in seen:
            value = values.get(inner.id)
            if value is not None:
                texts |= _texts(value, values, seen | {inner.id})
    return texts
