"""Registry: plugin name -> factory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from scheduler_core.framework.interface import EXTENSION_POINTS, Handle, Plugin, PluginFactory


@dataclass(frozen=True, slots=True)
class RegistryEntry:
    """How to make a plugin, and its class (which tells the extension points it implements)."""

    name: str
    plugin_class: type[Plugin]
    factory: PluginFactory

    @property
    def extension_points(self) -> frozenset[str]:
        return frozenset(
            point for point, base in EXTENSION_POINTS.items() if issubclass(self.plugin_class, base)
        )


class Registry(Mapping[str, RegistryEntry]):
    """The plugins that a configuration may name. A plugin class is its own factory:
    ``cls(args, handle)``."""

    def __init__(self, *classes: type[Plugin]) -> None:
        self._entries: dict[str, RegistryEntry] = {}
        for plugin_class in classes:
            self.register(plugin_class.name, plugin_class)

    def register(
        self, name: str, plugin_class: type[Plugin], factory: PluginFactory | None = None
    ) -> None:
        """Add a plugin.

        Raises:
            ValueError: the name is empty or taken.
        """
        if not name:
            raise ValueError(f"{plugin_class.__name__} has no name")
        if name in self._entries:
            raise ValueError(f"a plugin named {name} already exists")
        self._entries[name] = RegistryEntry(name, plugin_class, factory or plugin_class)

    def merged(self, other: Mapping[str, RegistryEntry]) -> Registry:
        """This registry and ``other`` in one.

        Raises:
            ValueError: a name is in both.
        """
        answer = Registry()
        answer._entries = dict(self._entries)
        for entry in other.values():
            answer.register(entry.name, entry.plugin_class, entry.factory)
        return answer

    def create(self, name: str, args: Mapping[str, Any], handle: Handle) -> Plugin:
        """A new instance of the plugin.

        Raises:
            KeyError: no such plugin.
        """
        return self._entries[name].factory(args, handle)

    def __getitem__(self, name: str) -> RegistryEntry:
        return self._entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)
