"""How the interpreter of a process with loops is set: many threads, many long-lived objects."""

from __future__ import annotations

import gc
import sys
from functools import cache
from typing import Final

#: Seconds. A thread that comes back from the database waits so long for one that computes. With
#: 1 ms four busy threads spent a tenth of their time on handing the lock around (950 decisions/s
#: instead of 1,010); the recorder's few, large statements bear the wait.
_SWITCH_SECONDS: Final = 0.005
#: A sandbox's pods are dicts by the ten thousand, and none of them are part of a cycle: with the
#: default of 700 new objects, looking for cycles was a quarter of the process's work.
_GC_THRESHOLDS: Final = (100_000, 20, 20)


@cache
def tune() -> None:
    """Set this process up, once."""
    sys.setswitchinterval(_SWITCH_SECONDS)
    gc.set_threshold(*_GC_THRESHOLDS)
