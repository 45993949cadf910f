"""PreBinds: pods whose PreBind plugins are at work, so that preemption can stop them."""

from __future__ import annotations

import threading

__all__ = ["PreBinds"]


class PreBinds:
    """Shared by the scheduler thread, which cancels, and binding threads, which begin and end."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: uid -> why it was cancelled, "" while it was not.
        self._running: dict[str, str] = {}

    def begin(self, uid: str) -> None:
        with self._lock:
            self._running[uid] = ""

    def end(self, uid: str) -> str:
        """PreBind is over; why it was cancelled, or ""."""
        with self._lock:
            return self._running.pop(uid, "")

    def cancel(self, uid: str, message: str) -> bool:
        """Have a pod's binding fail once its PreBind plugins return; False where none is at
        work. The first message counts."""
        with self._lock:
            known = self._running.get(uid)
            if known is None:
                return False
            self._running[uid] = known or message
            return True

    def is_cancelled(self, uid: str) -> bool:
        with self._lock:
            return bool(self._running.get(uid))
