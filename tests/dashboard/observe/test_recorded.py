"""What an observer tells, as rows, totals, frames and pages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from dashboard import merging, retention
from dashboard.models import AuditEntry, Cluster, SchedulerRun
from dashboard.observe import selectors, services
from dashboard.observe.frames import rate
from dashboard.observe.models import ObservedPod, ObservedTotals
from dashboard.recorder import Recorder
from scheduler_core.observations import Observation, PluginComparison, Verdict
from tests.dashboard.factory import NOW, FakePublisher, make_run, pod

Make = Callable[..., Recorder]
pytestmark = pytest.mark.django_db(transaction=True)


def seen(sequence: int, name: str, verdict: Verdict, **fields: Any) -> Observation:
    values: dict[str, Any] = {
        "scheduler": "default-scheduler",
        "profile": "default-scheduler",
        "seen_at": NOW,
        "at": NOW + sequence,
        "why": f"because of {verdict}",
    }
    return Observation(sequence, pod(name), verdict, **{**values, **fields})


COMPARED = (
    PluginComparison("NodeResourcesFit", (70, 70, 70), (52, 52, 52)),
    PluginComparison("ImageLocality", (0, 0, 0), (4, 4, 4)),
)


@pytest.fixture
def observing(db: None) -> SchedulerRun:
    return make_run("watch", mode=SchedulerRun.Mode.OBSERVE)


@pytest.fixture
def told(observing: SchedulerRun, make_recorder: Make) -> Callable[..., None]:
    recorder = make_recorder(observing)

    def tell(*records: Observation) -> None:
        for record in records:
            recorder.pod_observed(record)
        assert recorder.flush()

    return tell


def verdicts(run: SchedulerRun) -> dict[str, str]:
    return dict(ObservedPod.objects.filter(run=run).values_list("name", "verdict"))


def counts(run: SchedulerRun) -> dict[str, int]:
    return ObservedTotals.objects.get(run=run).counts


def test_the_latest_word_on_a_pod_stays(
    observing: SchedulerRun, told: Callable[..., None], published: FakePublisher
) -> None:
    told(seen(1, "a", Verdict.PENDING), seen(2, "b", Verdict.PENDING))
    first = ObservedPod.objects.get(name="a")
    told(seen(3, "a", Verdict.DIFFERS, ours="n1", actual="n2", comparison=COMPARED))
    row = ObservedPod.objects.get(name="a")
    assert (row.pk, row.verdict, row.sequence) == (first.pk, "differs", 3)
    assert row.comparison[0] == ["NodeResourcesFit", [70, 70, 70], [52, 52, 52]]
    assert verdicts(observing) == {"a": "differs", "b": "pending"}
    assert counts(observing) == {"differs": 1}
    observing.refresh_from_db()
    assert observing.last_sequence == 3
    frames = published.of("observe")
    assert [(frame["from"], frame["seq"]) for frame in frames] == [(0, 1), (1, 2)]
    assert frames[1]["counts"] == {"differs": 1, "pending": 1}
    assert [line["pod"] for line in frames[1]["pods"]] == ["default/a"]


def test_two_words_in_one_batch(observing: SchedulerRun, told: Callable[..., None]) -> None:
    told(seen(1, "a", Verdict.PENDING), seen(2, "a", Verdict.AGREE))
    assert verdicts(observing) == {"a": "agree"}
    assert counts(observing) == {"agree": 1}


def test_pods_that_are_left_out_are_counted_alone(
    observing: SchedulerRun, told: Callable[..., None], published: FakePublisher
) -> None:
    told(seen(1, "d", Verdict.DAEMON_SET), seen(2, "s", Verdict.PRESET))
    assert verdicts(observing) == {}
    assert counts(observing) == {"daemon_set": 1, "preset": 1}
    assert published.of("observe")[-1]["whole"] == {"agree": 0, "placed": 0}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({}, (0, 0), id="nothing"),
        pytest.param({"agree": 3, "tie": 1, "differs": 1}, (4, 5), id="a tie agrees"),
        pytest.param({"infeasible": 1, "unschedulable": 2}, (0, 3), id="ours cannot"),
        pytest.param({"agree": 1, "gone": 5, "missed": 4, "error": 1}, (1, 1), id="not judged"),
    ],
)
def test_the_rate(given: dict[str, int], expected: tuple[int, int]) -> None:
    found = rate(given)
    assert (found["agree"], found["placed"]) == expected


def test_recent_is_of_the_pods_placed_last(
    observing: SchedulerRun, told: Callable[..., None], make_recorder: Make, monkeypatch: Any
) -> None:
    monkeypatch.setattr("dashboard.observe.frames.RECENT", 2)
    told(*(seen(n, f"p{n}", Verdict.DIFFERS) for n in (1, 2)), seen(3, "c", Verdict.AGREE))
    frame = selectors.observed(observing)
    assert frame["recent"] == {"agree": 1, "placed": 2}
    assert frame["whole"] == {"agree": 1, "placed": 3}


def test_retention_keeps_totals_and_pods_that_wait(
    observing: SchedulerRun, told: Callable[..., None]
) -> None:
    told(seen(1, "waits", Verdict.PENDING))
    told(*(seen(n, f"p{n}", Verdict.AGREE) for n in range(2, 8)))
    assert retention.prune_observed(observing.pk, keep=2) == 4
    assert set(verdicts(observing)) == {"waits", "p6", "p7"}
    assert counts(observing) == {"agree": 6}


def test_frames_merge(
    observing: SchedulerRun, told: Callable[..., None], published: FakePublisher
) -> None:
    told(seen(1, "a", Verdict.PENDING))
    told(seen(2, "a", Verdict.AGREE), seen(3, "b", Verdict.TIE))
    one, two = published.of("observe")
    both = merging.merge("observe", one, two)
    assert isinstance(both, dict)
    assert (both["from"], both["seq"]) == (0, 2)
    assert [(line["pod"], line["verdict"]) for line in both["pods"]] == [
        ("default/a", "agree"),
        ("default/b", "tie"),
    ]


# -- API -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param("", ["c", "b", "a"], id="all, newest last"),
        pytest.param("?verdict=differs", ["b"], id="one verdict"),
        pytest.param("?namespace=default", ["c", "b", "a"], id="its namespace"),
        pytest.param("?namespace=other", [], id="another namespace"),
        pytest.param("?before=3", ["b", "a"], id="earlier ones"),
        pytest.param("?limit=1", ["c"], id="so many"),
        pytest.param("?since=1", ["c"], id="since a commit"),
    ],
)
def test_the_topic_over_http(
    as_viewer: Client,
    observing: SchedulerRun,
    told: Callable[..., None],
    query: str,
    expected: list[str],
) -> None:
    told(seen(1, "a", Verdict.AGREE), seen(2, "b", Verdict.DIFFERS))
    told(seen(3, "c", Verdict.PENDING))
    answer = as_viewer.get(f"/api/runs/{observing.pk}/observe{query}")
    assert answer.status_code == 200
    assert [line["name"] for line in reversed(answer.json()["pods"])] == expected


def test_a_verdict_that_is_none(as_viewer: Client, observing: SchedulerRun) -> None:
    answer = as_viewer.get(f"/api/runs/{observing.pk}/observe?verdict=maybe")
    assert answer.status_code == 400
    assert "verdict" in answer.json()["error"]


# -- pages -----------------------------------------------------------------------------------------


def test_an_observers_pages(as_viewer: Client, observing: SchedulerRun) -> None:
    base = f"/runs/{observing.pk}/"
    assert as_viewer.get(base).headers["Location"] == f"{base}observe/"
    text = as_viewer.get(f"{base}observe/").content.decode()
    assert 'id="observe-table"' in text
    assert "Queues" not in text  # it has no queue to show


def test_one_pod(as_viewer: Client, observing: SchedulerRun, told: Callable[..., None]) -> None:
    told(
        seen(
            1,
            "a",
            Verdict.DIFFERS,
            ours="n1",
            actual="n2",
            ours_total=70,
            actual_total=56,
            comparison=COMPARED,
            why="n2 <b>scores</b> less",
        )
    )
    pk = ObservedPod.objects.get().pk
    text = as_viewer.get(f"/runs/{observing.pk}/observe/{pk}/").content.decode()
    assert "+18 ours" in text
    assert "-4 theirs" in text
    assert "+14" in text
    assert "n2 &lt;b&gt;scores&lt;/b&gt; less" in text
    assert as_viewer.get(f"/runs/{observing.pk}/observe/{pk + 1}/").status_code == 404


@pytest.mark.parametrize("pod_page", ["", "1/"])
def test_pages_need_a_login(client: Client, observing: SchedulerRun, pod_page: str) -> None:
    answer = client.get(f"/runs/{observing.pk}/observe/{pod_page}")
    assert answer.status_code == 302
    assert answer.headers["Location"].startswith("/login/")


# -- how to begin ----------------------------------------------------------------------------------


def test_a_scheduling_run_offers_to_observe_its_cluster(
    as_operator: Client, as_viewer: Client, run: SchedulerRun
) -> None:
    page = f"/runs/{run.pk}/observe/"
    assert "Observe c-run" in as_operator.get(page).content.decode()
    assert "Observe c-run" not in as_viewer.get(page).content.decode()
    answer = as_operator.post(f"{page}add", {"mode": "observe"})
    observer = SchedulerRun.objects.get(mode=SchedulerRun.Mode.OBSERVE)
    assert answer.headers["Location"] == f"/runs/{observer.pk}/observe/"
    assert (observer.cluster_id, observer.name) == (run.cluster_id, "c-run-observer")
    assert (observer.desired_state, observer.state) == ("running", "pending")
    entry = AuditEntry.objects.get(run=observer)
    assert (entry.verb, entry.username, entry.detail) == ("create_run", "olga", {"mode": "observe"})
    # Once is enough.
    again = as_operator.post(f"{page}add", {"mode": "observe"})
    assert again.headers["Location"] == f"/runs/{observer.pk}/observe/"
    assert SchedulerRun.objects.count() == 2
    assert observer.name in as_viewer.get(page).content.decode()


@pytest.mark.parametrize(
    ("mode", "status"),
    [
        pytest.param("dance", 404, id="no such mode"),
        pytest.param("schedule", 404, id="a sandbox has its scheduler"),
    ],
)
def test_runs_that_cannot_be_added(
    as_operator: Client, run: SchedulerRun, mode: str, status: int
) -> None:
    answer = as_operator.post(f"/runs/{run.pk}/observe/add", {"mode": mode})
    assert answer.status_code == status
    assert SchedulerRun.objects.count() == 1


def test_only_who_may_control_runs_adds_them(as_viewer: Client, run: SchedulerRun) -> None:
    answer = as_viewer.post(f"/runs/{run.pk}/observe/add", {"mode": "observe"})
    assert answer.status_code == 403
    assert SchedulerRun.objects.count() == 1


def test_a_real_cluster_that_is_observed_gets_a_scheduler_that_waits(
    as_operator: Client, db: None
) -> None:
    cluster = Cluster.objects.create(name="staging", kind=Cluster.Kind.KUBE)
    observer = services.add_run(None, cluster, SchedulerRun.Mode.OBSERVE)
    page = f"/runs/{observer.pk}/observe/"
    assert "Add a run that schedules" in as_operator.get(page).content.decode()
    as_operator.post(f"{page}add", {"mode": "schedule"})
    run = SchedulerRun.objects.get(mode=SchedulerRun.Mode.SCHEDULE)
    assert (run.desired_state, run.state, run.cluster_id) == ("stopped", "stopped", cluster.pk)
    assert "schedulerName: kubesched" in run.config


def test_the_list_of_clusters_shows_the_run_that_schedules(
    as_operator: Client, run: SchedulerRun
) -> None:
    services.add_run(None, run.cluster, SchedulerRun.Mode.OBSERVE)
    (row,) = as_operator.get("/api/clusters").json()["clusters"]
    assert (row["run"], row["mode"]) == (run.pk, "schedule")
