"""CoschedulingArgs of scheduler-plugins, v1."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from scheduler_core.api.errors import invalid
from scheduler_core.framework.errors import PluginConfigError

__all__ = ["CoschedulingArgs"]

_PERCENT: Final = 100


@dataclass(frozen=True, slots=True)
class CoschedulingArgs:
    """Attributes:
    permit_waiting_time: seconds that a member waits for its gang, unless the PodGroup says so.
    backoff: seconds for which a gang that was rejected is not tried again; 0: no such pause.
    reject_percentage: a gang that lacks at most this share of its members is not rejected when
        one of them fits nowhere.
    """

    permit_waiting_time: int = 60
    backoff: int = 0
    reject_percentage: int = 10

    @classmethod
    def read(cls, args: Mapping[str, Any]) -> CoschedulingArgs:
        """Absent fields take their defaults.

        Raises:
            PluginConfigError: a negative number, or a percentage above 100.
        """
        return cls(
            _number(args, "permitWaitingTimeSeconds", 60),
            _number(args, "podGroupBackoffSeconds", 0),
            _number(args, "podGroupRejectPercentage", 10, _PERCENT),
        )


def _number(args: Mapping[str, Any], field: str, default: int, largest: int | None = None) -> int:
    found = args.get(field)
    number: int = default if found is None else found
    if number < 0 or (largest is not None and number > largest):
        limits = "[0, inf)" if largest is None else f"[0, {largest}]"
        raise PluginConfigError(field, invalid(number, f"not in valid range {limits}"))
    return number
