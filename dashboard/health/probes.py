"""Checks of a process, and the answer to a probe.

Without a login, so what is said to everybody is which check failed and not why; the reason is in
the log.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass, field
from typing import Final

from dashboard.health.slis import Slis

__all__ = ["Check", "ProbeAnswer", "Probes"]

log = logging.getLogger(__name__)

#: Seconds after which a check that does not come back has failed.
CHECK_SECONDS: Final = 3.0
#: Least seconds between two lines of the log about the same failure.
_SAY_EVERY: Final = 30.0

#: Returns nothing where all is well, and what is wrong otherwise; may raise.
Check = Callable[[], str | None]


@dataclass(frozen=True, slots=True)
class ProbeAnswer:
    """``status`` is 200, 404 or 500."""

    status: int
    text: str


@dataclass(slots=True)
class Probes:
    """The checks of one process: name -> check. ``healthz`` has those of ``livez``.

    Attributes:
        live: what a restart would mend.
        ready: what has to be right for work to go on, besides.
        slis: how checks have ended.
    """

    live: Mapping[str, Check]
    ready: Mapping[str, Check]
    slis: Slis = field(default_factory=Slis)
    _threads: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(8, thread_name_prefix="probe")
    )
    _under_way: dict[str, Future[str | None]] = field(default_factory=dict)
    _said: dict[str, float] = field(default_factory=dict)

    def answer(self, path: str, verbose: bool, excluded: set[str]) -> ProbeAnswer:
        """The answer to ``/livez``, ``/readyz/database``, ...: ``path`` without the first slash.

        Args:
            verbose: list every check.
            excluded: checks that are left out.
        """
        probe, _, name = path.strip("/").partition("/")
        checks = {**self.live, **self.ready} if probe == "readyz" else {**self.live}
        if name:
            if name not in checks:
                return ProbeAnswer(404, f"there is no check {name} in {probe}\n")
            failed = self._run({name: checks[name]})[name]
            return ProbeAnswer(500, _line(name, True)) if failed else ProbeAnswer(200, "ok")
        known = excluded & set(checks)
        results = self._run({name: c for name, c in checks.items() if name not in known})
        for check, wrong in results.items():
            self.slis.note(check, probe, not wrong)
        lines = [
            f"[+]{name} excluded: ok\n" if name in known else _line(name, bool(results[name]))
            for name in checks
        ]
        if strange := ",".join(f'"{name}"' for name in sorted(excluded - known)):
            lines.append(f"warn: some health checks cannot be excluded: no matches for {strange}\n")
        if any(results.values()):
            return ProbeAnswer(500, "".join([*lines, f"{probe} check failed\n"]))
        if verbose:
            return ProbeAnswer(200, "".join([*lines, f"{probe} check passed\n"]))
        return ProbeAnswer(200, "ok")

    def _run(self, checks: Mapping[str, Check]) -> dict[str, str | None]:
        """Name -> what is wrong; all of them at once. One that has not come back since the last
        probe is not begun again."""
        for name, check in checks.items():
            pending = self._under_way.get(name)
            if pending is None or pending.done():
                self._under_way[name] = self._threads.submit(_guarded, check)
        deadline = time.monotonic() + CHECK_SECONDS
        return {name: self._result(name, deadline) for name in checks}

    def _result(self, name: str, deadline: float) -> str | None:
        try:
            wrong = self._under_way[name].result(max(0.0, deadline - time.monotonic()))
        except FutureTimeout:
            wrong = f"no answer within {CHECK_SECONDS:g} s"
        if wrong:
            self._say(name, wrong)
        return wrong

    def _say(self, name: str, wrong: str) -> None:
        now = time.monotonic()
        if now >= self._said.get(name, 0.0):
            self._said[name] = now + _SAY_EVERY
            log.warning("health check %s failed: %s", name, wrong)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


def _guarded(check: Check) -> str | None:
    try:
        return check()
    except Exception as error:  # noqa: BLE001 - whatever it is, the check has failed
        return f"{type(error).__name__}: {error}"


def _line(name: str, failed: bool) -> str:
    return f"[-]{name} failed: reason withheld\n" if failed else f"[+]{name} ok\n"
