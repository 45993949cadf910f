"""CycleState: what plugins share during the scheduling of one pod."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol, TypeVar, cast

T = TypeVar("T")


class Cloneable(Protocol):
    """State data that needs more than sharing when the CycleState is cloned."""

    def clone(self) -> Any: ...


class StateNotFound(KeyError):
    """A key that no plugin has written in this cycle."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key

    def __str__(self) -> str:
        return f'failed to read "{self.key}" from cycleState: not found'


class Timings:
    """Seconds used by extension points and by plugins in one cycle, and what they answered."""

    __slots__ = ("plugins", "points", "statuses")

    def __init__(self) -> None:
        #: extension point -> seconds
        self.points: dict[str, float] = {}
        #: (extension point, plugin) -> seconds
        self.plugins: dict[tuple[str, str], float] = {}
        #: (extension point, plugin or "" for all of them) -> label of a code other than Success
        self.statuses: dict[tuple[str, str], str] = {}

    def clear(self) -> None:
        """Begin anew: what is here has been taken. Records have the same mappings."""
        self.points = {}
        self.plugins = {}
        self.statuses = {}

    def add_point(self, point: str, seconds: float) -> None:
        self.points[point] = self.points.get(point, 0.0) + seconds

    def add_plugin(self, point: str, plugin: str, seconds: float) -> None:
        self.add((point, plugin), seconds)

    def add(self, key: tuple[str, str], seconds: float) -> None:
        """``add_plugin`` for callers that keep the pair of extension point and plugin."""
        plugins = self.plugins
        plugins[key] = plugins[key] + seconds if key in plugins else seconds


class CycleState:
    """Key-value store for one scheduling context; gone when the pod's cycle ends.

    ``skip_filter_plugins`` and ``skip_score_plugins`` hold the names of plugins that answered
    Skip at PreFilter and PreScore. ``pods_to_activate`` maps "namespace/name" to the pod that
    shall be moved to activeQ after a successful cycle.
    """

    __slots__ = (
        "_data",
        "gang_runs",
        "pod_group_cycle",
        "pods_to_activate",
        "skip_filter_plugins",
        "skip_score_plugins",
        "timings",
    )

    def __init__(self, timings: Timings | None = None) -> None:
        self._data: dict[str, Any] = {}
        self.skip_filter_plugins: frozenset[str] = frozenset()
        self.skip_score_plugins: frozenset[str] = frozenset()
        self.pods_to_activate: dict[str, Any] = {}
        #: True while a native pod group is tried as a whole (1.36, ``schedule_one_podgroup``).
        self.pod_group_cycle = False
        #: The pod was let go with its gang before, and others of it are bound: its quorum is no
        #: question any more.
        self.gang_runs = False
        #: Where the time of this cycle went; the runtime writes it.
        self.timings = timings if timings is not None else Timings()

    def write(self, key: str, value: object) -> None:
        self._data[key] = value

    def read(self, key: str, kind: type[T] | None = None) -> T:
        """The value under ``key``.

        Raises:
            StateNotFound: nobody wrote it in this cycle.
            TypeError: it is not of the asked kind.
        """
        if key not in self._data:
            raise StateNotFound(key)
        value = self._data[key]
        if kind is not None and not isinstance(value, kind):
            raise TypeError(f'"{key}" in cycleState is {type(value).__name__}, not {kind.__name__}')
        return cast(T, value)

    def get(self, key: str) -> Any | None:
        """The value under ``key``, or None."""
        return self._data.get(key)

    def delete(self, key: str) -> None:
        self._data.pop(key, None)

    def keys(self) -> Iterable[str]:
        return self._data.keys()

    def contents(self) -> dict[str, Any]:
        """What was written, as a dict of its own; the values are shared."""
        return self._data.copy()

    def refill(self, contents: Mapping[str, Any]) -> None:
        """Hold just these keys and values."""
        self._data = dict(contents)

    def clear(self) -> None:
        """Forget what plugins wrote and who skips."""
        self._data = {}
        self.skip_filter_plugins = self.skip_score_plugins = frozenset()
        self.pods_to_activate = {}

    def clone(self) -> CycleState:
        """A copy whose cloneable values are cloned too (preemption's dry run, two-pass filter)."""
        twin = CycleState()
        twin._data = {key: _cloned(value) for key, value in self._data.items()}
        twin.skip_filter_plugins = self.skip_filter_plugins
        twin.skip_score_plugins = self.skip_score_plugins
        twin.pods_to_activate = self.pods_to_activate
        twin.pod_group_cycle = self.pod_group_cycle
        twin.gang_runs = self.gang_runs
        twin.timings = self.timings
        return twin


def _cloned(value: Any) -> Any:
    """A clone of a `Cloneable`. Asked for by its method: `isinstance` with a protocol walks over
    the classes anew each time, and was a third of a preemption."""
    clone = getattr(value, "clone", None)
    return value if clone is None else clone()
