"""Reading what a plugin wrote into the CycleState earlier in the cycle."""

from __future__ import annotations

from typing import TypeVar

from scheduler_core.framework.cycle_state import CycleState, StateNotFound

__all__ = ["read_state"]

T = TypeVar("T")


def read_state(state: CycleState, key: str, kind: type[T], verb: str) -> T:
    """``state.read(key, kind)``, with the words that the plugin has for "not there": kube-scheduler
    1.36 has ``reading "X" from cycleState: not found`` and others, plugin by plugin.

    Raises:
        LookupError: nobody wrote it, as when the earlier extension point is switched off.
    """
    try:
        return state.read(key, kind)
    except StateNotFound:
        raise LookupError(f'{verb} "{key}" from cycleState: not found') from None
