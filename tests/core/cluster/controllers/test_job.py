"""Jobs: enough successes, too many failures, indexes, time limits."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_core.cluster.controllers.indexes import missing_indexes, numbers_of, text_of
from scheduler_core.ports import Json, NotFound

from .support import World, template

RUN_SECONDS = "kubesched.io/run-seconds"


def job(run_seconds: str | None = "5", **spec: Any) -> Json:
    of = template(labels={"app": "batch"}, restartPolicy="Never")
    if run_seconds is not None:
        of["metadata"]["annotations"] = {RUN_SECONDS: run_seconds}
    return {
        "metadata": {"name": "batch"},
        "spec": {
            "parallelism": 1,
            "completions": 1,
            "backoffLimit": 6,
            "template": of,
            **spec,
        },
    }


def status(world: World) -> dict[str, Any]:
    found: dict[str, Any] = world.get("Job", "batch")["status"]
    return found


def conditions(world: World) -> dict[str, str]:
    return {c["type"]: c.get("reason", "") for c in status(world).get("conditions", ())}


def test_it_runs_so_many_at_once_until_enough_have_succeeded() -> None:
    world = World()
    world.cluster.create("Job", job(parallelism=2, completions=5))
    world.run(3)
    assert status(world)["active"] == 2
    most = 0
    for _ in range(100):
        world.run(0.5)
        most = max(most, sum(p["status"]["phase"] in ("Pending", "Running") for p in world.pods()))
    assert most == 2
    found = status(world)
    assert (found["succeeded"], found.get("active", 0), found.get("failed", 0)) == (5, 0, 0)
    assert found["completionTime"]
    assert conditions(world)["Complete"] == "CompletionsReached"
    assert len(world.pods()) == 5
    assert all("finalizers" not in p["metadata"] for p in world.pods())


def test_a_pod_that_is_collected_is_counted_first() -> None:
    world = World()
    world.kubelet.stop()
    from scheduler_core.cluster.kubelet import SandboxKubelet

    world.kubelet = SandboxKubelet(world.cluster, stop_seconds=0.0, keep_terminal=1)
    world.cluster.create("Job", job(parallelism=4, completions=12))
    world.run(120)
    assert status(world)["succeeded"] == 12


def test_failures_put_the_next_pod_off_and_too_many_end_it() -> None:
    world = World()
    world.cluster.create("Job", job(None, backoffLimit=2))
    began = world.clock.now()
    times = []
    for _ in range(3):
        while not [p for p in world.pods() if p["status"]["phase"] == "Running"]:
            world.run(1)
        times.append(world.clock.now() - began)
        (running,) = [p for p in world.pods() if p["status"]["phase"] == "Running"]
        world.fail(running)
        world.run(0.5)
    assert times[1] - times[0] >= 10
    assert times[2] - times[1] >= 20
    world.run(30)
    assert status(world)["failed"] == 3
    assert conditions(world)["Failed"] == "BackoffLimitExceeded"


def test_a_job_that_takes_too_long_fails() -> None:
    world = World()
    world.cluster.create("Job", job(None, activeDeadlineSeconds=30))
    world.run(60)
    assert conditions(world)["Failed"] == "DeadlineExceeded"
    assert [p for p in world.pods() if p["status"]["phase"] == "Running"] == []


def test_a_suspended_job_has_no_pods_and_goes_on_when_it_is_resumed() -> None:
    world = World()
    world.cluster.create("Job", job(completions=3, parallelism=3))
    world.run(3)
    world.cluster.patch("Job", "default", "batch", {"spec": {"suspend": True}})
    world.run(10)
    assert list(world.pods()) == []
    assert conditions(world)["Suspended"] == "JobSuspended"
    assert "startTime" not in status(world)
    world.cluster.patch("Job", "default", "batch", {"spec": {"suspend": False}})
    world.run(30)
    assert status(world)["succeeded"] == 3
    assert status(world).get("failed", 0) == 0


def test_an_indexed_job_runs_each_index_once() -> None:
    world = World()
    world.cluster.create("Job", job(completions=5, parallelism=2, completionMode="Indexed"))
    world.run(60)
    assert status(world)["completedIndexes"] == "0-4"
    indexes = {
        p["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"]
        for p in world.pods()
    }
    assert indexes == {"0", "1", "2", "3", "4"}


def test_without_completions_one_success_and_no_work_left_is_the_end() -> None:
    world = World()
    body = job(parallelism=3)
    del body["spec"]["completions"]
    world.cluster.create("Job", body)
    world.run(60)
    assert status(world)["succeeded"] == 3
    assert conditions(world)["Complete"]


def test_it_removes_itself_after_its_time() -> None:
    world = World()
    world.cluster.create("Job", job(ttlSecondsAfterFinished=30))
    world.run(20)
    assert conditions(world)["Complete"]
    world.run(60)
    with pytest.raises(NotFound):
        world.get("Job", "batch")
    assert list(world.pods()) == []


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        pytest.param(set(), "", id="none"),
        pytest.param({3}, "3", id="one"),
        pytest.param({3, 4}, "3,4", id="two in a row"),
        pytest.param({0, 1, 2, 5, 7, 8, 9}, "0-2,5,7-9", id="ranges"),
    ],
)
def test_texts_of_indexes(numbers: set[int], text: str) -> None:
    assert text_of(numbers) == text
    assert numbers_of(text) == numbers


def test_the_lowest_missing_indexes_come_first() -> None:
    assert missing_indexes(6, {0, 2}, 3) == [1, 3, 4]
