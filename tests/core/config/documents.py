"""Fields of configurations, for tests of what is wrong with them."""

from __future__ import annotations

V1 = "kubescheduler.config.k8s.io/v1"


def names(*given):
    return [{"name": name} for name in given]


def profile(**fields):
    return {"profiles": [fields]}


def plugins(**sets):
    return profile(plugins=sets)


def plugin_config(name, args):
    return profile(pluginConfig=[{"name": name, "args": args}])


PROFILE = "initializing profiles: creating profile for scheduler name default-scheduler: "
