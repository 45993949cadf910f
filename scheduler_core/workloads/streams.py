"""Workloads made of streams: things that happen again and again, each at its own pace."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from scheduler_core.ports import Json

from .base import WorkloadCluster

__all__ = ["Draw", "Moment", "Stream", "StreamWorkload"]

#: arrivals that are later than this (the machine slept) are left out
_LONGEST_LAG: Final = 30.0
#: so that a stream without pauses ends; anything longer would thin out one of 1,000 a second
_SHORTEST_PAUSE: Final = 1e-6
_SUFFIX: Final = "bcdfghjklmnpqrstvwxz2456789"


class Draw(random.Random):
    """Chance of one moment: the same for the same seed, stream and number."""

    def suffix(self, length: int = 5) -> str:
        """The end of a generated name."""
        return "".join(self.choices(_SUFFIX, k=length))


@dataclass(frozen=True, slots=True)
class Moment:
    """One thing that happens: the `number`-th of its stream, at `now`."""

    number: int
    now: float
    draw: Draw
    cluster: WorkloadCluster


@dataclass(frozen=True, slots=True)
class Stream:
    """`act` happens first after `first` seconds, then again and again, `pause` seconds apart."""

    act: Callable[[Moment], None]
    pause: Callable[[Draw], float]
    first: float = 0.0


class StreamWorkload(ABC):
    """Runs streams, and what was put off until later."""

    name: str

    def __init__(self, *, seed: int = 1, start: float | None = None) -> None:
        """`start`: time of day at which it begins; None: when it is run for the first time."""
        self._seed = seed
        self._start = start
        self._begun = False
        self._resumed = False
        self._at = 0.0  # when it was run last
        self._next: dict[str, float] = {}
        self._count: dict[str, int] = {}
        self._later: list[tuple[float, str, Json]] = []  # when, what, about what

    @abstractmethod
    def _streams(self) -> Mapping[str, Stream]:
        """By a name that stays the same over restarts."""

    @abstractmethod
    def _set_up(self, cluster: WorkloadCluster) -> None:
        """Make what is there from the beginning; it may be there already."""

    def _do_later(self, what: str, about: Json, cluster: WorkloadCluster, now: float) -> None:
        """Do what `_put_off` asked for."""
        raise ValueError(f"{self.name} puts nothing off, yet {what} is due")

    def _put_off(self, at: float, what: str, about: Json) -> None:
        self._later.append((at, what, about))
        self._later.sort(key=lambda entry: entry[0])

    # -- Workload --------------------------------------------------------------------------------

    def next_deadline(self) -> float | None:
        if not self._begun:
            return self._start or 0.0
        if self._resumed:
            return 0.0
        times = [*self._next.values(), *(at for at, _, _ in self._later[:1])]
        return min(times, default=None)

    def run_due(self, now: float, cluster: WorkloadCluster) -> None:
        if not self._begun:
            self._begin(now, cluster)
        if self._resumed:
            self._shift(max(0.0, now - self._at))
        self._at = now
        while self._later and self._later[0][0] <= now:
            _, what, about = self._later.pop(0)
            self._do_later(what, about, cluster, now)
        for name, stream in self._streams().items():
            self._run(name, stream, now, cluster)

    def state(self) -> Json:
        return {
            "workload": self.name,
            "seed": self._seed,
            "begun": self._begun,
            "at": self._at,
            "next": dict(self._next),
            "count": dict(self._count),
            "later": [list(entry) for entry in self._later],
        }

    def load(self, state: Json) -> None:
        if state.get("workload") != self.name:
            raise ValueError(f"this is the state of {state.get('workload')!r}, not of {self.name}")
        try:
            self._seed = int(state["seed"])
            self._begun = self._resumed = bool(state["begun"])
            self._at = float(state["at"])
            self._next = {str(k): float(v) for k, v in state["next"].items()}
            self._count = {str(k): int(v) for k, v in state["count"].items()}
            self._later = [(float(at), str(what), about) for at, what, about in state["later"]]
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"the state of {self.name} is damaged: {error!r}") from error

    # -- inside ----------------------------------------------------------------------------------

    def _begin(self, now: float, cluster: WorkloadCluster) -> None:
        self._set_up(cluster)
        self._next = {name: now + stream.first for name, stream in self._streams().items()}
        self._begun = True

    def _shift(self, seconds: float) -> None:
        """Go on where it stood, as if no time had passed since."""
        self._next = {name: at + seconds for name, at in self._next.items()}
        self._later = [(at + seconds, what, about) for at, what, about in self._later]
        self._resumed = False

    def _run(self, name: str, stream: Stream, now: float, cluster: WorkloadCluster) -> None:
        at = self._next.setdefault(name, now + stream.first)
        if now - at > _LONGEST_LAG:
            at = now
        while at <= now:
            number = self._count.get(name, 0)
            self._count[name] = number + 1
            draw = Draw(f"{self._seed}/{name}/{number}")
            stream.act(Moment(number, now, draw, cluster))
            at += max(stream.pause(draw), _SHORTEST_PAUSE)
        self._next[name] = at
