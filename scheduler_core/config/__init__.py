"""KubeSchedulerConfiguration (kubescheduler.config.k8s.io/v1): load, default, check, expand."""

from scheduler_core.config.defaults import DEFAULT_PLUGINS, default_args
from scheduler_core.config.errors import Fault, InvalidConfiguration
from scheduler_core.config.load import (
    configuration_from,
    default_configuration,
    load_configuration,
    load_configuration_file,
)
from scheduler_core.config.types import (
    ClientConnection,
    Extender,
    ExtenderTLS,
    LeaderElection,
    ManagedResource,
    PluginRef,
    Profile,
    SchedulerConfiguration,
)

__all__ = [
    "DEFAULT_PLUGINS",
    "ClientConnection",
    "Extender",
    "ExtenderTLS",
    "Fault",
    "InvalidConfiguration",
    "LeaderElection",
    "ManagedResource",
    "PluginRef",
    "Profile",
    "SchedulerConfiguration",
    "configuration_from",
    "default_args",
    "default_configuration",
    "load_configuration",
    "load_configuration_file",
]
