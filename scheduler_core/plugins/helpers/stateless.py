"""Parent of plugins that need neither arguments nor the scheduler around them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scheduler_core.framework.interface import Handle, Plugin

__all__ = ["StatelessPlugin"]


class StatelessPlugin(Plugin):
    """Takes what every plugin is made of, and keeps none of it."""

    def __init__(self, _args: Mapping[str, Any], _handle: Handle) -> None:
        super().__init__()
