"""Questions: work that other threads want done on the scheduler thread."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

__all__ = ["Question"]


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """A message on the inbox: the work, and where its result goes."""

    work: Callable[[], Any]
    answer: Future[Any]

    def settle(self) -> None:
        """Do the work, unless nobody waits for it any more. On the scheduler thread.

        What the work raises goes to whoever asked, never to the loop.
        """
        if not self.answer.set_running_or_notify_cancel():
            return
        try:
            result = self.work()
        except BaseException as exc:  # noqa: BLE001 - it belongs to whoever asked
            self.answer.set_exception(exc)
        else:
            self.answer.set_result(result)
