"""Looking at a run's configuration and changing it, as the page does it over HTTP."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.contrib.auth.models import User
from django.test import Client

from dashboard import configuration
from dashboard.models import AuditEntry, SchedulerRun
from dashboard.yaml_places import hide_secrets, line_of
from tests.dashboard.factory import FakePublisher, make_run

pytestmark = pytest.mark.django_db(transaction=True)

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
PERCENTAGE = HEAD + "percentageOfNodesToScore: 50\n"
#: As somebody with access to files has written it.
WITH_PATH = f"""{HEAD}profiles:
  - schedulerName: default-scheduler
    plugins:
      score:
        enabled:
          - name: examples.plugins.blinking_lights:BlinkingLights
            weight: 1
          - name: examples.plugins.prefer_node_label:PreferNodeLabel
            weight: 5
    pluginConfig:
      - name: PreferNodeLabel
        args:
          label: alibabacloud.com/gpu-card-model
          value: T4
"""
WITH_KEY = f"""{HEAD}extenders:
  - urlPrefix: https://extender.test/
    filterVerb: filter
    enableHTTPS: true
    tlsConfig:
      certData: Y2VydA==
      keyData: c2VjcmV0
"""


@pytest.fixture
def run(db: None) -> SchedulerRun:
    return make_run(config=HEAD)


def get(client: Client, run: SchedulerRun) -> dict[str, Any]:
    answer = client.get(f"/api/runs/{run.pk}/config")
    assert answer.status_code == 200
    return dict(answer.json())


def post(client: Client, run: SchedulerRun, text: Any, **body: Any) -> Any:
    whole = {"text": text, "version": 1, "comment": "", **body}
    return client.post(
        f"/api/runs/{run.pk}/config", json.dumps(whole), content_type="application/json"
    )


# --- looking ------------------------------------------------------------------------------------


def test_what_a_viewer_sees(run: SchedulerRun, as_viewer: Client) -> None:
    body = get(as_viewer, run)
    assert body["text"] == HEAD
    assert (body["version"], body["applied_version"], body["completed_version"]) == (1, 0, 1)
    assert (body["changed_by"], body["changed_at"], body["error"], body["history"]) == (
        "", None, "", [],
    )  # fmt: skip
    completed = yaml.safe_load(body["completed"])
    assert completed["percentageOfNodesToScore"] == 100
    (profile,) = body["profiles"]
    assert (profile["name"], profile["percentage"]) == ("default-scheduler", 100)
    points = {row["point"]: row["plugins"] for row in profile["points"]}
    assert points["queueSort"] == [{"name": "PrioritySort", "weight": None}]
    assert {"name": "TaintToleration", "weight": 3} in points["score"]


def test_the_completed_one_is_the_one_in_use(run: SchedulerRun, as_viewer: Client) -> None:
    SchedulerRun.objects.filter(pk=run.pk).update(
        config=PERCENTAGE, config_version=2, applied_config=HEAD, applied_config_version=1
    )
    body = get(as_viewer, run)
    assert (body["text"], body["version"], body["completed_version"]) == (PERCENTAGE, 2, 1)
    assert yaml.safe_load(body["completed"])["percentageOfNodesToScore"] == 100


def test_a_text_that_means_nothing_is_shown_with_its_faults(as_viewer: Client) -> None:
    run = make_run("odd", config=HEAD + "percentageOfNodesToScore: 101\n")
    body = get(as_viewer, run)
    assert (body["completed"], body["profiles"]) == ("", [])
    (fault,) = body["faults"]
    assert (fault["path"], fault["line"]) == ("percentageOfNodesToScore", 3)


def test_private_keys_are_for_those_who_may_change_them(
    as_viewer: Client, as_operator: Client
) -> None:
    run = make_run("tls", config=WITH_KEY)
    seen = get(as_viewer, run)
    assert "c2VjcmV0" not in json.dumps(seen)
    assert 'keyData: "(hidden)"' in seen["text"]
    body = get(as_operator, run)
    assert body["text"] == WITH_KEY
    assert "c2VjcmV0" not in body["completed"]
    other = WITH_KEY.replace("c2VjcmV0", "YW5vdGhlcg==").replace("Y2VydA==", "Y2VydDI=")
    difference = configuration.difference(WITH_KEY, other).splitlines()
    assert [line for line in difference if line.startswith(("+", "-"))] == [
        "--- before", "+++ after", "-      certData: Y2VydA==", "+      certData: Y2VydDI=",
    ]  # fmt: skip


def test_a_password_in_a_url_is_for_those_who_may_change_it(
    as_viewer: Client, as_operator: Client
) -> None:
    text = HEAD + (
        "extenders:\n- urlPrefix: http://bot:kst_S3CRET@ext.example:80/x\n  filterVerb: filter\n"
    )
    run = make_run("asks", config=text)
    seen = get(as_viewer, run)
    assert "S3CRET" not in json.dumps(seen)
    assert "http://(hidden)@ext.example:80/x" in seen["text"]
    assert "http://(hidden)@ext.example:80/x" in seen["completed"]
    assert get(as_operator, run)["text"] == text
    assert "S3CRET" not in configuration.difference(HEAD, text)


# --- changing -----------------------------------------------------------------------------------


def test_a_change_is_written_with_who_and_why(
    run: SchedulerRun, as_operator: Client, published: FakePublisher
) -> None:
    answer = post(as_operator, run, PERCENTAGE, comment=" half is enough ")
    assert answer.status_code == 200
    run.refresh_from_db()
    assert (run.config, run.config_version, run.applied_config_version) == (PERCENTAGE, 2, 0)
    entry = AuditEntry.objects.get(run=run)
    assert (entry.verb, entry.username, entry.comment, entry.outcome) == (
        "change_config", "olga", "half is enough", "sent",
    )  # fmt: skip
    assert "+percentageOfNodesToScore: 50" in entry.detail["diff"].splitlines()
    (frame,) = published.of("run")
    assert (frame["seq"], frame["config_version"], frame["applied_config_version"]) == (1, 2, 0)
    body = answer.json()
    assert (body["version"], body["changed_by"]) == (2, "olga")
    (change,) = body["history"]
    assert (change["version"], change["by"], change["comment"]) == (2, "olga", "half is enough")
    assert change["diff"] == entry.detail["diff"]


def test_the_text_that_is_there_is_no_change(as_operator: Client) -> None:
    run = make_run("same", config=HEAD.replace("\n", "\r\n"))
    assert post(as_operator, run, HEAD).status_code == 200
    run.refresh_from_db()
    assert (run.config_version, AuditEntry.objects.count()) == (1, 0)


def test_validation_changes_nothing(run: SchedulerRun, as_operator: Client) -> None:
    answer = post(as_operator, run, PERCENTAGE, validate_only=True, version=None)
    assert answer.status_code == 200
    assert yaml.safe_load(answer.json()["completed"])["percentageOfNodesToScore"] == 50
    assert answer.json()["profiles"][0]["percentage"] == 50
    run.refresh_from_db()
    assert (run.config_version, AuditEntry.objects.count()) == (1, 0)


PROFILE = HEAD + "profiles:\n  - schedulerName: default-scheduler\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            HEAD + "percentageOfNodesToScore: 101\nparallelism: 0\n",
            [
                ("parallelism", "Invalid value: 0: should be an integer value greater", 4),
                ("percentageOfNodesToScore", "Invalid value: 101: not in valid range", 3),
            ],
            id="all faults at once, each with its line",
        ),
        pytest.param(
            PROFILE + "    plugins:\n      filter:\n        enabled:\n          - name: Nope\n",
            [("", 'FilterPlugin "Nope" does not exist', 8)],
            id="a plugin that does not exist",
        ),
        pytest.param(
            PROFILE + "    plugins: {queueSort: {disabled: [{name: '*'}]}}\n",
            [("", "only one queue sort plugin required for profile", None)],
            id="what only making the profile shows",
        ),
        pytest.param(
            PROFILE
            + "    pluginConfig:\n      - name: NodeResourcesBalancedAllocation\n"
            + "        args: {resources: [{name: cpu, weight: 2}]}\n",
            [(None, "resources[0].weight: Invalid value: 2", 7)],
            id="arguments that the plugin refuses",
        ),
        pytest.param(
            HEAD + "profiles: [\n",
            [("", "line 4", 4)],
            id="not YAML",
        ),
        pytest.param("[]", [("", "must be a mapping with apiVersion and kind", None)], id="a list"),
        pytest.param("", [("", "must be a mapping", None)], id="nothing"),
    ],
)
@pytest.mark.parametrize("validate_only", [True, False], ids=["validate", "apply"])
def test_a_faulty_text_is_refused_as_a_whole(
    run: SchedulerRun,
    as_operator: Client,
    text: str,
    expected: list[tuple[str | None, str, int | None]],
    validate_only: bool,
) -> None:
    answer = post(as_operator, run, text, validate_only=validate_only)
    assert answer.status_code == 400
    errors = answer.json()["errors"]
    assert len(errors) == len(expected)
    for found, (path, message, line) in zip(errors, expected, strict=True):
        assert path is None or found["path"] == path
        assert line is None or found["line"] == line
        assert message in f"{found['path']}: {found['message']}"
    run.refresh_from_db()
    assert (run.config, run.config_version, AuditEntry.objects.count()) == (HEAD, 1, 0)


@pytest.mark.parametrize(
    ("body", "path"),
    [
        pytest.param({"text": 5}, "text", id="a number"),
        pytest.param({"text": "\ud800"}, "text", id="half a character"),
        pytest.param({"comment": "x" * 1001}, "comment", id="a long comment"),
        pytest.param({"version": "1"}, "version", id="version as text"),
        pytest.param({"version": True}, "version", id="version as truth"),
        pytest.param({"version": None}, "version", id="no version"),
        pytest.param({"validate_only": 1}, "validate_only", id="a number as truth"),
    ],
)
def test_a_call_that_is_no_change(
    run: SchedulerRun, as_operator: Client, body: dict[str, Any], path: str
) -> None:
    answer = post(as_operator, run, **{"text": PERCENTAGE, **body})
    assert answer.status_code == 400
    assert [error["path"] for error in answer.json()["errors"]] == [path]


def test_the_first_of_two_editors_wins(
    run: SchedulerRun, as_operator: Client, second_operator: User
) -> None:
    configuration.change(run.pk, text=PERCENTAGE, comment="", version=1, user=second_operator)
    answer = post(as_operator, run, HEAD + "parallelism: 8\n")
    assert answer.status_code == 409
    body = answer.json()
    assert "changed to version 2 by otto at 20" in body["error"]
    assert (body["version"], body["changed_by"]) == (2, "otto")
    run.refresh_from_db()
    assert run.config == PERCENTAGE
    assert post(as_operator, run, HEAD + "parallelism: 8\n", version=2).status_code == 200


def test_a_change_between_check_and_write_is_a_conflict(
    run: SchedulerRun, operator: User, second_operator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked = configuration.check

    def slowly(seen: SchedulerRun, text: str) -> Any:
        monkeypatch.setattr(configuration, "check", checked)
        configuration.change(run.pk, text=PERCENTAGE, comment="", version=1, user=second_operator)
        return checked(seen, text)

    monkeypatch.setattr(configuration, "check", slowly)
    with pytest.raises(configuration.Conflict, match="version 2 by otto"):
        configuration.change(run.pk, text=HEAD + "# x\n", comment="", version=1, user=operator)
    run.refresh_from_db()
    assert run.config == PERCENTAGE


# --- who may ------------------------------------------------------------------------------------


def test_a_viewer_may_not_change_or_check(run: SchedulerRun, as_viewer: Client) -> None:
    for validate_only in (True, False):
        answer = post(as_viewer, run, PERCENTAGE, validate_only=validate_only)
        assert answer.status_code == 403
        assert answer.json()["permission"] == "dashboard.control_run"
    assert Client().get(f"/api/runs/{run.pk}/config").status_code == 401


def test_a_foreign_form_cannot_change_it(run: SchedulerRun, operator: User) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(operator)
    assert post(client, run, PERCENTAGE).status_code == 403
    run.refresh_from_db()
    assert run.config == HEAD


def test_code_is_not_imported_because_somebody_posted_its_name(
    run: SchedulerRun, as_operator: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "evil_plugin.py").write_text("raise SystemExit('imported')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    text = WITH_PATH.replace("examples.plugins.blinking_lights:BlinkingLights", "evil_plugin:E")
    answer = post(as_operator, run, text)
    assert answer.status_code == 400
    messages = [error["message"] for error in answer.json()["errors"]]
    refusal = "a dotted path is not allowed here; install it as an entry point"
    assert f'plugin "evil_plugin:E": {refusal}' in messages
    assert (
        answer.json()["errors"][0]["line"]
        == text.splitlines().index("          - name: evil_plugin:E") + 1
    )


def test_paths_that_came_by_file_stay_usable(as_operator: Client) -> None:
    run = make_run("file", config=WITH_PATH)
    assert post(as_operator, run, WITH_PATH).status_code == 200
    changed = WITH_PATH.replace("weight: 5", "weight: 7")
    assert post(as_operator, run, changed).status_code == 200
    assert {"name": "PreferNodeLabel", "weight": 7} in next(
        row["plugins"]
        for row in get(as_operator, run)["profiles"][0]["points"]
        if row["point"] == "score"
    )
    # Once gone, a path does not come back over the network.
    assert post(as_operator, run, HEAD, version=2).status_code == 200
    assert post(as_operator, run, changed, version=3).status_code == 400


def test_a_plugin_that_refuses_its_arguments_when_it_is_made(as_operator: Client) -> None:
    run = make_run("refusing", config=WITH_PATH)
    answer = post(as_operator, run, WITH_PATH.replace("label: ", "lable: "))
    assert answer.status_code == 400
    (error,) = answer.json()["errors"]
    assert (
        'profile for scheduler name default-scheduler: initializing plugin "Prefer'
        in (error["message"])
    )
    assert error["line"] == WITH_PATH.splitlines().index("      - name: PreferNodeLabel") + 1


# --- what the worker answers --------------------------------------------------------------------


def test_a_refusal_quotes_no_password(run: SchedulerRun, published: FakePublisher) -> None:
    wish = configuration.wished(run.pk)
    text = 'extenders[0]: Invalid value: "http://u:geheim@host": must be an object'
    configuration.refused(run.pk, wish, text, fence=None)
    run.refresh_from_db()
    shown = 'extenders[0]: Invalid value: "http://(hidden)@host": must be an object'
    assert run.config_error == shown
    assert published.of("run")[-1]["config_error"] == shown
    assert "geheim" not in str(list(AuditEntry.objects.values()))


def test_answers_of_the_worker(run: SchedulerRun, operator: User, published: FakePublisher) -> None:
    for version, text in ((1, PERCENTAGE), (2, HEAD + "# b\n"), (3, HEAD + "# c\n")):
        configuration.change(run.pk, text=text, comment="", version=version, user=operator)
    wish = configuration.wished(run.pk)
    assert wish == configuration.Wish(4, HEAD + "# c\n")
    old = configuration.Wish(3, HEAD + "# b\n")
    configuration.refused(run.pk, old, "does not work here", fence=None)
    run.refresh_from_db()
    assert run.config_error == "", "version 4 has not been tried yet"
    configuration.applied(run.pk, wish, fence=None)
    run.refresh_from_db()
    assert (run.applied_config, run.applied_config_version) == (wish.text, 4)
    frame = published.of("run")[-1]
    assert (frame["config_version"], frame["applied_config_version"]) == (4, 4)
    assert [(row["version"], row["outcome"]) for row in configuration.history(run)] == [
        (4, "applied"), (3, "refused"), (2, "too_late"),
    ]  # fmt: skip
    assert [row["message"] for row in configuration.history(run)] == [
        "", "does not work here", "Version 3 came before it was used.",
    ]  # fmt: skip


def test_a_long_difference_is_cut() -> None:
    before, after = ("".join(f"# {word} {i}\n" for i in range(5000)) for word in ("old", "new"))
    text = configuration.difference(before, after)
    assert len(text) < configuration.MAX_DIFF + 100
    assert text.endswith(" more lines)")


# --- places -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "message", "line"),
    [
        pytest.param("kind", "", 2, id="a field"),
        pytest.param("profiles[0].plugins.score.enabled[1].name", "", 10, id="deep in a list"),
        pytest.param("profiles[0].pluginConfig[0].args.nope", "", 14, id="a field that is missing"),
        pytest.param("profiles[7]", "", 3, id="an item that is missing"),
        pytest.param("nope", "", None, id="nothing of it is there"),
        pytest.param("", "yaml: line 9: oops", 9, id="a line in the message"),
        pytest.param("", 'plugin "PreferNodeLabel" is odd', 13, id="a name in the message"),
        pytest.param("", "odd", None, id="no place"),
    ],
)
def test_line_of_a_fault(path: str, message: str, line: int | None) -> None:
    assert line_of(WITH_PATH, path, message) == line


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("keyData: abc # x\nb: 1\n", 'keyData: "(hidden)" # x\nb: 1\n', id="plain"),
        pytest.param('{"keyData": "abc"}', '{"keyData": "(hidden)"}', id="JSON"),
        pytest.param(
            "a:\n  keyData: |\n    ab\n    cd\nb: 1\n", 'a:\n  keyData: "(hidden)"\nb: 1\n',
            id="over several lines",
        ),
        pytest.param("é: ü\nkeyData: abc\n", 'é: ü\nkeyData: "(hidden)"\n', id="other letters"),
        pytest.param(
            "urlPrefix: http://bot:kst_S3@ext:80/x # http://a:b@c\n",
            'urlPrefix: "http://(hidden)@ext:80/x" # http://(hidden)@c\n',
            id="a password in a URL and in a comment",
        ),
        pytest.param(
            "urlPrefix: https://kst_S3@ext\n", 'urlPrefix: "https://(hidden)@ext"\n',
            id="a token as the user",
        ),
        pytest.param(
            'urlPrefix: "http:\\u002f/bot:S3@ext"\n', 'urlPrefix: "http://(hidden)@ext"\n',
            id="escaped",
        ),
        pytest.param(
            'urlPrefix: "http://b\\"t:S3@ext"\n', 'urlPrefix: "http://(hidden)@ext"\n',
            id="quotes",
        ),
        pytest.param(
            "urlPrefix: http://b't:S/3@ext\n", 'urlPrefix: "http://(hidden)@ext"\n',
            id="what should have been escaped",
        ),
        pytest.param(
            "urlPrefix: http://ext:80/x@y\n", "urlPrefix: http://ext:80/x@y\n", id="a path",
        ),
        pytest.param("bearerToken: abc\nb: 1\n", 'bearerToken: "(hidden)"\nb: 1\n', id="token"),
        pytest.param(
            'token: {a: "http://u:p@h"}\nb: 1\n', 'token: "(hidden)"\nb: 1\n', id="nested"
        ),
        pytest.param("a: 1\n", "a: 1\n", id="none"),
        pytest.param("", "", id="empty"),
        pytest.param("keyData: [", None, id="not YAML"),
    ],
)  # fmt: skip
def test_secrets_are_hidden(text: str, shown: str | None) -> None:
    assert hide_secrets(text) == shown
