"""PreferNodeLabel: prefers nodes that carry a label, or a label with one value.

Arguments, in ``pluginConfig``::

    - name: PreferNodeLabel
      args:
        label: disktype
        value: ssd          # left out: any value will do
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from scheduler_core.api import Pod
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.errors import PluginConfigError
from scheduler_core.framework.interface import MAX_NODE_SCORE, Handle, ScorePlugin, Scores
from scheduler_core.framework.node_info import NodeInfo
from scheduler_core.framework.nodes import NodeInfos

KNOWN_ARGS = {"label", "value"}


class PreferNodeLabel(ScorePlugin):
    """100 for a node with the label, 0 for one without. Shows both forms of a plugin."""

    name = "PreferNodeLabel"

    def __init__(self, args: Mapping[str, Any], handle: Handle) -> None:
        for unknown in sorted(set(args) - KNOWN_ARGS):
            raise PluginConfigError(unknown, "there is no such argument")
        self._label = _text(args, "label")
        if not self._label:
            raise PluginConfigError("label", "Required value: the name of a node label")
        self._value = _text(args, "value")

    def score(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> int:
        """Plain form: one node."""
        labels = node_info.node.labels if node_info.node is not None else {}
        return MAX_NODE_SCORE if self._likes(labels.get(self._label)) else 0

    def score_nodes(self, state: CycleState, pod: Pod, nodes: NodeInfos) -> Scores:
        """Vector form: all nodes at once. The label is looked at once per distinct value."""
        codes = nodes.label(self._label)  # -1 where the node lacks the label
        liked = [self._likes(value) for value in nodes.label_values(self._label)]
        return np.array([*liked, False])[codes] * np.int64(MAX_NODE_SCORE)

    def _likes(self, value: str | None) -> bool:
        return value is not None and self._value in ("", value)


def _text(args: Mapping[str, Any], field: str) -> str:
    found = args.get(field, "")
    if not isinstance(found, str):
        raise PluginConfigError(field, f"Invalid value: {found!r}: must be a string")
    return found
