"""How deeply a YAML text is nested, before it is read.

PyYAML's C loader composes nodes by recursion in C, which no recursion limit ends: of some ten
thousand levels the process dies. Its parser, which tells events, has no such recursion.
"""

from __future__ import annotations

from typing import Any, Final

import yaml

__all__ = ["MOST_LEVELS", "NestedTooDeeply", "check_levels"]

#: more than any Kubernetes object or configuration has
MOST_LEVELS: Final = 200

_Loader: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class NestedTooDeeply(yaml.MarkedYAMLError):
    """The text could be YAML, but nobody should read it."""


def check_levels(text: str) -> None:
    """Raises:
    NestedTooDeeply: more than ``MOST_LEVELS`` levels. yaml.YAMLError: it is not YAML.
    """
    depth = 0
    for event in yaml.parse(text, _Loader):
        if isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        elif isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MOST_LEVELS:
                problem = f"nested deeper than {MOST_LEVELS} levels"
                mark: Any = event.start_mark
                raise NestedTooDeeply(problem=problem, problem_mark=mark)
