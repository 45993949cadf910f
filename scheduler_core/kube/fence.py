"""Who may write: everybody, the holder of a lease while it is valid, or nobody."""

from __future__ import annotations

import math
from typing import Protocol

from scheduler_core.ports import ApiError

__all__ = ["NO_FENCE", "READ_ONLY", "Fence", "Gate", "LeaseLost"]


class LeaseLost(ApiError):
    """This process does not hold the lease any more, so it writes nothing more."""

    def __init__(self, message: str) -> None:
        super().__init__(503, "LeaseLost", message)


class Fence(Protocol):
    def check(self) -> float:
        """Seconds from now on within which a write has to be over; may be infinite.

        Raises:
            ApiError: nothing may be written.
        """


class _NoFence:
    def check(self) -> float:
        return math.inf


class _ReadOnly:
    def check(self) -> float:
        raise ApiError(403, "Forbidden", "this cluster is only observed: nothing is written to it")


#: No election: this process is the only one.
NO_FENCE: Fence = _NoFence()
#: For evaluation without writes.
READ_ONLY: Fence = _ReadOnly()


class Gate:
    """A fence that is put up later."""

    def __init__(self, fence: Fence) -> None:
        self.fence = fence

    def check(self) -> float:
        return self.fence.check()
