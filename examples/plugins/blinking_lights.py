"""BlinkingLights: prefers the node with the most blinking lights.

How many lights a node has is written on it, as a label or, where there is no such label, as an
annotation: ``example.com/blinking-lights: "7"``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scheduler_core.api import Pod
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.interface import Handle, ScorePlugin, Scores
from scheduler_core.framework.node_info import NodeInfo
from scheduler_core.framework.nodes import NodeInfos
from scheduler_core.plugins.helpers.normalize import default_normalize

LIGHTS = "example.com/blinking-lights"


class BlinkingLights(ScorePlugin):
    """Score: the number of lights; NormalizeScore: the node with most of them gets 100."""

    name = "BlinkingLights"

    def __init__(self, args: Mapping[str, Any], handle: Handle) -> None:
        """Neither arguments nor the scheduler around it are needed."""

    def score(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> int:
        node = node_info.node
        if node is None:
            return 0
        text = node.labels.get(LIGHTS, node.annotations.get(LIGHTS, ""))
        # isdecimal() alone would accept digits of other scripts.
        return int(text) if text.isascii() and text.isdecimal() else 0

    def normalize_score(
        self, state: CycleState, pod: Pod, nodes: NodeInfos, scores: Scores
    ) -> Scores:
        return default_normalize(scores)
