"""Whether a checked configuration can be run: every plugin is made once, nothing is scheduled."""

from __future__ import annotations

from scheduler_core.clock import VirtualClock
from scheduler_core.cluster.sandbox import SandboxCluster
from scheduler_core.config import Fault, InvalidConfiguration, SchedulerConfiguration
from scheduler_core.framework.runtime.framework import ProfileError
from scheduler_core.scheduler import Scheduler

__all__ = ["try_to_make"]


def try_to_make(config: SchedulerConfiguration) -> None:
    """Make a scheduler on an empty cluster and forget it.

    Only a plugin itself knows whether it likes its arguments, and only the runtime whether a
    profile has what it needs (kube-scheduler 1.36, the errors of ``profile.NewMap``).

    Raises:
        InvalidConfiguration: it cannot be made, whatever a plugin raises; the text says why.
    """
    try:
        Scheduler(config, SandboxCluster(VirtualClock()))
    except ProfileError as error:
        raise InvalidConfiguration([Fault("", str(error))], config.source) from error
    except Exception as error:
        text = f"a scheduler cannot be made: {type(error).__name__}: {error}"
        raise InvalidConfiguration([Fault("", text)], config.source) from error
