"""Errors of making and running plugins."""

from __future__ import annotations


class PluginConfigError(ValueError):
    """A plugin refuses its arguments. ``path`` is relative to them, as in
    ``scoringStrategy.resources[0].weight``; the text is ``path: message``."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(f"{path}: {message}" if path else message)
        self.path = path
        self.message = message
