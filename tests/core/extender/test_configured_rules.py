"""What the configuration of extenders means for the whole scheduler."""

from __future__ import annotations

import pytest

from scheduler_core.framework.runtime.framework import ProfileError
from scheduler_core.testing.builders import make_pod
from tests.core.extender.server import keep, keep_all
from tests.core.extender.world import (
    GPU,
    MANAGED,
    Start,
    entry,
    scheduler,
)


def test_resources_that_the_scheduler_shall_ignore(extender: Start) -> None:
    """``ignoredByScheduler`` takes a resource from NodeResourcesFit in every profile."""
    fake = extender({"filter": keep_all})
    managed = [{"name": GPU, "ignoredByScheduler": True}]
    profiles = [{"schedulerName": "default-scheduler"}, {"schedulerName": "second"}]
    h = scheduler(
        entry(fake, "filter", managedResources=managed),
        config={"profiles": profiles},
        pods=[
            make_pod("p").req({GPU: "1"}),
            make_pod("q").req({GPU: "1"}).scheduler_name("second"),
        ],
    )
    assert h.node_of("p") and h.node_of("q")
    assert len(fake.asked("filter")) == 2


def test_a_resource_that_it_only_manages_is_still_counted(extender: Start) -> None:
    fake = extender({"filter": keep_all})
    h = scheduler(entry(fake, "filter", **MANAGED), pods=[make_pod("p").req({GPU: "1"})])
    assert f"Insufficient {GPU}" in h.cycle("p").message
    assert fake.requests == []


def test_they_are_shared_by_all_profiles(extender: Start) -> None:
    fake = extender({"filter": keep("n1")})
    profiles = [{"schedulerName": "default-scheduler"}, {"schedulerName": "second"}]
    h = scheduler(
        entry(fake, "filter"),
        config={"profiles": profiles},
        pods=[make_pod("p"), make_pod("q").scheduler_name("second")],
    )
    assert (h.node_of("p"), h.node_of("q")) == ("n1", "n1")


def test_certificates_that_cannot_be_used_stop_the_scheduler_from_starting() -> None:
    config = {"urlPrefix": "https://h", "filterVerb": "f", "tlsConfig": {"caFile": "/no/such"}}
    with pytest.raises(ProfileError) as failure:
        scheduler(config)
    assert str(failure.value) == (
        "couldn't build extenders: open /no/such: no such file or directory"
    )
