from __future__ import annotations

import json
import struct
from typing import Any

import numpy as np
import pytest
from django.contrib.auth.models import User
from django.test import Client

from dashboard import heatmap, permits
from dashboard.models import Cluster, CycleMatrix, RunState, SchedulerRun, WaitingPod
from dashboard.permits import Target
from dashboard.recording import BatchWriter
from dashboard.told import Batch, Told
from tests.dashboard.factory import NOW, binding, cycle, listing, matrix, resolved, usage, wait

pytestmark = pytest.mark.django_db

CYCLE_ROW = {
    "sequence", "commit_seq", "pod", "namespace", "name", "uid", "pod_group", "attempt", "profile",
    "priority", "outcome", "node", "score", "ties", "nodes_total", "nodes_feasible",
    "duration_ms", "started_at", "message", "plugin", "bound", "has_matrix",
}  # fmt: skip
QUEUE_ROW = {
    "pod", "uid", "position", "priority", "attempts", "added_at", "backoff_until", "plugin",
    "reason", "pod_group",
}  # fmt: skip
WAITING_ROW = {
    "id", "uid", "pod", "namespace", "name", "node", "pod_group", "group_min_member", "profile",
    "priority", "since", "deadline", "pending", "needs_approval", "requested_by", "requests",
    "state", "message", "resolved_by", "resolved_at", "decision", "cycle", "commit_seq",
    "gang_uid", "node_use", "terms", "approvals", "approvers_needed",
}  # fmt: skip


@pytest.fixture
def recorded(run: SchedulerRun) -> SchedulerRun:
    """Cycles 1 to 6: scheduled, failed twice, waiting; the first matrix expired, one dropped."""
    record(
        run,
        cycle(1, "old", matrix=matrix()),
        cycle(2, "web-1", "unschedulable", matrix=matrix(seed=2)),
        cycle(3, "web-1", "scheduled", attempt=2, matrix=matrix(seed=3)),
        binding(3, "web-1"),
        cycle(4, "none", "error", nodes_total=0),
        cycle(5, "held", "waiting", matrix=matrix(), pod_group="default/gang"),
        wait(5, "held", pod_group="default/gang", group_min_member=2),
        cycle(6, "done", "waiting"),
        wait(6, "done"),
        resolved(6, "done"),
        listing=listing(3),
        usage=usage(),
    )
    CycleMatrix.objects.filter(run=run, sequence=1).delete()
    run.cycles.filter(sequence=6).update(matrix_dropped=True, has_nodes=True)
    run.refresh_from_db()
    return run


def record(run: SchedulerRun, *records: Any, **listings: Any) -> None:
    told = [Told(item, int(NOW)) for item in records]
    name = f"b{run.commit_seq}"
    BatchWriter(run.pk).write(Batch(name, told, second=int(NOW), wall_at=NOW, **listings))
    RunState.objects.filter(run=run).update(clock_at=None)
    run.refresh_from_db()


def url(run: SchedulerRun, rest: str) -> str:
    return f"/api/runs/{run.pk}/{rest}"


def post(client: Client, path: str, body: Any, **extra: Any) -> Any:
    return client.post(path, json.dumps(body), content_type="application/json", **extra)


def held(run: SchedulerRun) -> WaitingPod:
    return WaitingPod.objects.get(run=run, name="held")


# --- reading ----------------------------------------------------------------------------------


def test_overview(recorded: SchedulerRun, as_viewer: Client) -> None:
    body = as_viewer.get(url(recorded, "overview")).json()
    assert set(body) == {
        "type", "run", "from", "seq", "state", "throughput", "depths", "totals", "usage",
        "recorder",
    }  # fmt: skip
    assert (body["type"], body["run"], body["seq"]) == (
        "overview",
        recorded.pk,
        recorded.commit_seq,
    )
    assert body["totals"] == {
        "scheduled": 2, "unschedulable": 1, "error": 1, "waiting": 2, "skipped": 0, "bound": 1,
        "bind_failed": 0,
    }  # fmt: skip
    assert body["throughput"][-1][1:] == [2, 1, 1]
    assert body["depths"][-1][1:] == [3, 0, 0, 0, 0, 0]
    assert body["usage"]["nodes"] == 3
    assert set(body["recorder"]) == {
        "queued", "matrices_dropped", "rows_refused", "back_pressure_seconds",
    }  # fmt: skip


def test_an_overview_of_nothing(run: SchedulerRun, as_viewer: Client) -> None:
    body = as_viewer.get(url(run, "overview")).json()
    assert (body["throughput"], body["usage"], body["seq"]) == ([], None, 0)


def test_run(recorded: SchedulerRun, as_viewer: Client) -> None:
    assert as_viewer.get(url(recorded, "run")).json() == {
        "type": "run",
        "run": recorded.pk,
        "seq": recorded.commit_seq,
        "state": "pending",
        "desired_state": "running",
        "message": "",
        "lease": {"fresh": False, "holder": ""},
        "config_version": 1,
        "applied_config_version": 0,
        "config_error": "",
    }


def test_cycles(recorded: SchedulerRun, as_viewer: Client) -> None:
    body = as_viewer.get(url(recorded, "cycles")).json()
    assert [row["sequence"] for row in body["cycles"]] == [1, 2, 3, 4, 5, 6]
    assert all(set(row) == CYCLE_ROW for row in body["cycles"])
    assert (body["from"], body["seq"], body["skipped"]) == (0, recorded.commit_seq, 0)
    third = body["cycles"][2]
    assert (third["bound"], third["has_matrix"], third["duration_ms"]) == (True, True, 2.0)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param("before=4", [1, 2, 3], id="before"),
        pytest.param("before=4&limit=2", [2, 3], id="limit"),
        pytest.param("outcome=waiting", [5, 6], id="outcome"),
        pytest.param("q=WEB", [2, 3], id="part of a name"),
        pytest.param("q=default/web-1", [2, 3], id="namespace and name"),
        pytest.param("q=default/gang", [5], id="pod group"),
        pytest.param("q=node-2&outcome=scheduled", [1, 3], id="node and outcome"),
        pytest.param("q=nothing", [], id="no match"),
        pytest.param("attempts=latest", [1, 3, 4, 5, 6], id="the latest attempt of each pod"),
        pytest.param("attempts=latest&outcome=unschedulable", [], id="outcome of latest attempts"),
        pytest.param("since=0", [1, 2, 3, 4, 5, 6], id="since the beginning"),
        pytest.param("since=99999999999999999999", [], id="since the far future"),
        pytest.param("limit=100000", [1, 2, 3, 4, 5, 6], id="too many"),
    ],
)
def test_some_cycles(
    recorded: SchedulerRun, as_viewer: Client, query: str, expected: list[int]
) -> None:
    body = as_viewer.get(url(recorded, f"cycles?{query}")).json()
    assert [row["sequence"] for row in body["cycles"]] == expected


def test_since_says_what_it_skips(recorded: SchedulerRun, as_viewer: Client) -> None:
    body = as_viewer.get(url(recorded, "cycles?since=0&limit=2")).json()
    assert ([row["sequence"] for row in body["cycles"]], body["skipped"]) == ([5, 6], 4)


def test_a_cycle_whose_binding_ended_later_comes_again(
    recorded: SchedulerRun, as_viewer: Client
) -> None:
    since = recorded.commit_seq
    record(recorded, binding(5, "held"))
    body = as_viewer.get(url(recorded, f"cycles?since={since}")).json()
    assert [(row["sequence"], row["bound"]) for row in body["cycles"]] == [(5, True)]


def test_one_cycle(recorded: SchedulerRun, as_viewer: Client) -> None:
    body = as_viewer.get(url(recorded, "cycles/3")).json()
    assert set(body) >= CYCLE_ROW | {
        "point_seconds", "plugin_seconds", "rejections", "best", "unschedulable_plugins",
        "nominated_node", "victims", "binding", "attempts", "matrix",
    }  # fmt: skip
    assert [row["sequence"] for row in body["attempts"]] == [2, 3]
    assert body["binding"]["bound"] is True
    assert body["best"][0]["plugins"] == {"NodeResourcesFit": [70, 70, 70]}
    assert body["weights"] == {}, "these scores were told one by one, without weights"


@pytest.mark.parametrize(
    ("sequence", "state", "words"),
    [
        pytest.param(1, "expired", "no longer kept", id="expired"),
        pytest.param(6, "dropped", "had to drop", id="dropped"),
        pytest.param(4, "none", "No node was looked at", id="none"),
    ],
)
def test_a_matrix_that_is_gone(
    recorded: SchedulerRun, as_viewer: Client, sequence: int, state: str, words: str
) -> None:
    assert as_viewer.get(url(recorded, f"cycles/{sequence}")).json()["matrix"] == state
    for path in ("matrix", "raw"):
        answer = as_viewer.get(url(recorded, f"cycles/{sequence}/{path}"))
        assert answer.status_code == 404
        assert answer.json()["matrix"] == state
        assert words in answer.json()["error"]


def test_a_matrix_and_its_names(recorded: SchedulerRun, as_viewer: Client) -> None:
    assert as_viewer.get(url(recorded, "cycles/3")).json()["matrix"] == "kept"
    answer = as_viewer.get(url(recorded, "cycles/3/matrix"))
    assert answer["Content-Type"] == "application/octet-stream"
    picture = heatmap.decode(answer.content)
    assert np.array_equal(picture.normalized, matrix(seed=3).normalized)
    assert (picture.meta["pod"], picture.meta["chosen"]) == ("default/web-1", 2)
    names = as_viewer.get(url(recorded, f"nodes?hash={picture.meta['names_hash']}"))
    assert names.json() == {"names": ["node-0", "node-1", "node-2", "node-3"]}
    assert "immutable" in names["Cache-Control"]
    raw = as_viewer.get(url(recorded, "cycles/3/raw")).content
    assert struct.unpack_from("<II", raw) == (2, 4)
    assert np.array_equal(np.frombuffer(raw, "<i4", offset=8).reshape(2, 4), matrix(seed=3).raw)
    latest = heatmap.decode(as_viewer.get(url(recorded, "cycles/latest/matrix")).content)
    assert latest.meta["sequence"] == 5


def test_queues(recorded: SchedulerRun, as_viewer: Client) -> None:
    whole = as_viewer.get(url(recorded, "queues")).json()
    assert set(whole) == {
        "type", "run", "seq", "at", "depths", "active", "backoff", "unschedulable", "gated",
    }  # fmt: skip
    assert all(set(row) == QUEUE_ROW for row in whole["active"])
    page = as_viewer.get(url(recorded, "queues?queue=active&offset=1&limit=1")).json()
    assert set(page) == {"seq", "at", "depths", "queue", "total", "rows"}
    assert (page["total"], [row["position"] for row in page["rows"]]) == (3, [2])


def test_queues_of_nothing(run: SchedulerRun, as_viewer: Client) -> None:
    body = as_viewer.get(url(run, "queues")).json()
    assert (body["active"], body["depths"]["active"]) == ([], 0)
    assert as_viewer.get(url(run, "queues?queue=gated")).json()["total"] == 0


def test_waiting(recorded: SchedulerRun, as_viewer: Client, operator: User) -> None:
    body = as_viewer.get(url(recorded, "waiting")).json()
    assert set(body) == {"type", "run", "from", "seq", "now", "pods"}
    assert {(pod["name"], pod["state"]) for pod in body["pods"]} == {
        ("held", "waiting"),
        ("done", "allowed"),
    }
    assert all(set(pod) == WAITING_ROW for pod in body["pods"])
    assert as_viewer.get(url(recorded, f"waiting?since={body['seq']}")).json()["pods"] == []
    permits.decide(operator, "deny", Target.rows(recorded.pk, [held(recorded).pk]))
    changed = as_viewer.get(url(recorded, f"waiting?since={body['seq']}")).json()
    assert [pod["decision"]["verdict"] for pod in changed["pods"]] == ["deny"]
    assert changed["from"] == body["seq"]


def test_clusters(recorded: SchedulerRun, as_viewer: Client) -> None:
    Cluster.objects.create(name="empty", kind="kube")
    rows = {row["name"]: row for row in as_viewer.get("/api/clusters").json()["clusters"]}
    assert rows["c-run"]["url"] == f"/runs/{recorded.pk}/"
    assert (rows["c-run"]["run"], rows["c-run"]["state"]) == (recorded.pk, "pending")
    assert (rows["empty"]["run"], rows["empty"]["kind"]) == (None, "kube")


# --- doing ------------------------------------------------------------------------------------


def test_deciding_by_id(recorded: SchedulerRun, as_operator: Client) -> None:
    row = held(recorded)
    body = {"pods": [row.pk, row.pk], "verdict": "approve", "comment": "  fine "}
    answer = post(as_operator, url(recorded, "waiting/decide"), body)
    assert answer.status_code == 200
    assert [(r["id"], r["ok"], r["state"]) for r in answer.json()["results"]] == [
        (row.pk, True, "sent")
    ]
    row.refresh_from_db()
    assert row.decision_comment == "fine"


def test_deciding_a_gang_and_being_late(recorded: SchedulerRun, as_operator: Client) -> None:
    path = url(recorded, "waiting/decide")
    assert (
        post(as_operator, path, {"pod_group": "default/gang", "verdict": "deny"}).status_code == 200
    )
    late = post(as_operator, path, {"pod_group": "default/gang", "verdict": "approve"})
    assert late.status_code == 409
    assert "Already denied by olga at " in late.json()["error"]
    assert late.json()["results"][0]["state"] == "sent"
    gone = post(as_operator, path, {"pod_group": "default/none", "verdict": "approve"})
    assert (gone.status_code, gone.json()["error"]) == (
        404,
        'No pod of the group "default/none" waits.',
    )


def test_control(run: SchedulerRun, as_operator: Client) -> None:
    path = url(run, "control")
    answer = post(as_operator, path, {"action": "pause"})
    assert (answer.status_code, answer.json()["desired_state"]) == (200, "paused")
    again = post(as_operator, path, {"action": "pause"})
    assert (again.status_code, again.json()["error"]) == (
        409,
        'Cannot pause the run "run": it is paused.',
    )


def test_a_sandbox(as_operator: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dashboard.sandboxes.default_config", lambda: "kind: X")
    answer = post(as_operator, "/api/sandboxes", {"name": "mine", "preset": "small", "speed": 2})
    body = answer.json()
    assert answer.status_code == 201
    assert (body["cluster"], body["url"]) == ("mine", f"/runs/{body['run']}/")
    again = post(as_operator, "/api/sandboxes", {"name": "mine", "preset": "x", "speed": -1})
    assert again.status_code == 400
    assert set(again.json()["errors"]) == {"name", "preset", "speed"}


# --- refusals ---------------------------------------------------------------------------------

READS = (
    "overview", "run", "waiting", "cycles", "queues", "cycles/1", "cycles/1/matrix",
    "cycles/1/raw", "cycles/latest/matrix", f"nodes?hash={'0' * 64}",
)  # fmt: skip
WRITES = ("waiting/decide", "control")


@pytest.mark.parametrize("path", READS)
def test_strangers_read_nothing(run: SchedulerRun, path: str) -> None:
    answer = Client().get(url(run, path))
    assert (answer.status_code, answer["Content-Type"]) == (401, "application/json")
    assert answer.json()["error"]


@pytest.mark.parametrize("path", READS)
def test_a_run_that_is_not_there(as_viewer: Client, run: SchedulerRun, path: str) -> None:
    for run_id in (987654, 2**80):
        answer = as_viewer.get(f"/api/runs/{run_id}/{path}")
        assert (answer.status_code, answer["Content-Type"]) == (404, "application/json")


@pytest.mark.parametrize("path", [*WRITES, "sandboxes"])
def test_who_may_write(run: SchedulerRun, as_viewer: Client, path: str) -> None:
    path = "/api/sandboxes" if path == "sandboxes" else url(run, path)
    assert post(Client(), path, {}).status_code == 401
    refused = post(as_viewer, path, {"name": "x", "action": "pause", "verdict": "deny"})
    assert (refused.status_code, refused["Content-Type"]) == (403, "application/json")
    run.refresh_from_db()
    assert run.desired_state == "running"
    assert Cluster.objects.count() == 1


@pytest.mark.parametrize("path", [*WRITES, "sandboxes"])
def test_a_post_needs_the_csrf_token(run: SchedulerRun, operator: User, path: str) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(operator)
    path = "/api/sandboxes" if path == "sandboxes" else url(run, path)
    answer = post(client, path, {"action": "pause"})
    assert (answer.status_code, answer["Content-Type"]) == (403, "application/json")
    run.refresh_from_db()
    assert run.desired_state == "running"


def test_a_post_with_the_csrf_token(run: SchedulerRun, operator: User) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(operator)
    token = "a" * 32
    client.cookies["csrftoken"] = token
    answer = post(client, url(run, "control"), {"action": "pause"}, HTTP_X_CSRFTOKEN=token)
    assert answer.status_code == 200


@pytest.mark.parametrize(
    ("path", "query"),
    [
        pytest.param("cycles", "since=x", id="since is a word"),
        pytest.param("cycles", "since=-1", id="since is negative"),
        pytest.param("cycles", "limit=0", id="no limit"),
        pytest.param("cycles", "before=1e3", id="a float"),
        pytest.param("cycles", "before=" + "9" * 5000, id="thousands of digits"),
        pytest.param("cycles", "since=٣", id="digits of another script"),
        pytest.param("cycles", "outcome=fine", id="unknown outcome"),
        pytest.param("cycles", "q=%00", id="NUL"),
        pytest.param("cycles", "q=" + "x" * 601, id="long text"),
        pytest.param("queues", "queue=secret", id="unknown queue"),
        pytest.param("queues", "queue=active&offset=x", id="offset is a word"),
        pytest.param("waiting", "since=x", id="since of waiting"),
        pytest.param("nodes", "", id="no hash"),
        pytest.param("nodes", "hash=../etc", id="not a hash"),
    ],
)
def test_odd_questions_are_400(run: SchedulerRun, as_viewer: Client, path: str, query: str) -> None:
    answer = as_viewer.get(url(run, f"{path}?{query}"))
    assert answer.status_code == 400
    assert answer.json()["error"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        pytest.param({}, "verdict", id="empty"),
        pytest.param({"pods": [1], "verdict": "maybe"}, "verdict", id="unknown verdict"),
        pytest.param({"pods": [1], "verdict": ["deny"]}, "verdict", id="a list as verdict"),
        pytest.param({"verdict": "deny"}, "pods", id="nobody named"),
        pytest.param({"verdict": "deny", "pods": [1], "pod_group": "a/b"}, "pods", id="both"),
        pytest.param({"verdict": "deny", "pods": []}, "pods", id="no pods"),
        pytest.param({"verdict": "deny", "pods": "1"}, "pods", id="pods as text"),
        pytest.param({"verdict": "deny", "pods": ["1"]}, "pods", id="ids as text"),
        pytest.param({"verdict": "deny", "pods": [True]}, "pods", id="a truth as id"),
        pytest.param({"verdict": "deny", "pods": [2**70]}, "pods", id="a huge id"),
        pytest.param({"verdict": "deny", "pods": [1.5]}, "pods", id="a float as id"),
        pytest.param({"verdict": "deny", "pod_group": "gang"}, "pod_group", id="no namespace"),
        pytest.param({"verdict": "deny", "pod_group": 7}, "pod_group", id="a number as gang"),
        pytest.param(
            {"verdict": "deny", "pods": [1], "comment": "x" * 1001}, "comment", id="long comment"
        ),
        pytest.param({"verdict": "deny", "pods": [1], "comment": {}}, "comment", id="odd comment"),
        pytest.param(
            {"verdict": "deny", "pods": [1], "comment": "a\ud800b"},
            "comment",
            id="half a character",
        ),
        pytest.param({"verdict": "deny", "pod_group": "a/\ud800"}, "pod_group", id="half a name"),
    ],
)
def test_odd_decisions_name_the_field(
    run: SchedulerRun, as_operator: Client, body: dict[str, Any], field: str
) -> None:
    answer = post(as_operator, url(run, "waiting/decide"), body)
    assert answer.status_code == 400
    assert field in answer.json()["errors"]


@pytest.mark.parametrize("action", ["", "explode", None, 5, ["pause"], {"a": 1}])
def test_odd_actions(run: SchedulerRun, as_operator: Client, action: Any) -> None:
    answer = post(as_operator, url(run, "control"), {"action": action})
    assert (answer.status_code, list(answer.json()["errors"])) == (400, ["action"])


@pytest.mark.parametrize(
    ("body", "kind", "status", "words"),
    [
        pytest.param(b"{", "application/json", 400, "not JSON", id="malformed"),
        pytest.param(b"[]", "application/json", 400, "must be a JSON object", id="a list"),
        pytest.param(b"\xff", "application/json", 400, "not JSON", id="not UTF-8"),
        pytest.param(b"[" * 200_000, "application/json", 400, "not JSON", id="deep"),
        pytest.param(b'{"a":"\\u0000"}', "application/json", 400, "NUL", id="NUL"),
        pytest.param(b" " * 300_000, "application/json", 413, "larger than 256 KiB", id="large"),
        pytest.param(b" " * 5_000_000, "application/json", 413, "larger", id="far too large"),
        pytest.param(b"action=pause", "application/x-www-form-urlencoded", 415, "JSON", id="form"),
        pytest.param(b"{}", "text/plain", 415, "application/json", id="text"),
    ],
)
def test_odd_bodies(
    run: SchedulerRun, as_operator: Client, body: bytes, kind: str, status: int, words: str
) -> None:
    answer = as_operator.post(url(run, "control"), body, content_type=kind)
    assert answer.status_code == status
    assert words in answer.json()["error"]


def test_other_methods_and_other_paths(run: SchedulerRun, as_operator: Client) -> None:
    wrong = as_operator.get(url(run, "control"))
    assert (wrong.status_code, wrong["Allow"]) == (405, "POST")
    assert post(as_operator, url(run, "overview"), {}).status_code == 405
    for path in ("/api/nothing", url(run, "nothing"), url(run, "cycles/x")):
        answer = as_operator.get(path)
        assert (answer.status_code, answer["Content-Type"]) == (404, "application/json")
    assert as_operator.get(url(run, "cycles/99")).json()["error"] == (
        "There is no such cycle in this run, or it is no longer kept: the latest 200,000 are."
    )
    assert as_operator.get(url(run, "cycles/latest/matrix")).status_code == 204


def test_answers_are_not_cached(run: SchedulerRun, as_viewer: Client) -> None:
    assert "no-store" in as_viewer.get(url(run, "overview"))["Cache-Control"]
    assert "no-store" in as_viewer.get(url(run, f"nodes?hash={'0' * 64}"))["Cache-Control"]


def test_the_admin_shows_rows_and_changes_none(recorded: SchedulerRun, client: Client) -> None:
    client.force_login(User.objects.create_superuser("root", password="secret"))
    for model in (
        "cluster",
        "schedulerrun",
        "schedulingcycle",
        "waitingpod",
        "auditentry",
        "lease",
    ):
        assert client.get(f"/admin/dashboard/{model}/").status_code == 200
        assert client.get(f"/admin/dashboard/{model}/add/").status_code == 403
