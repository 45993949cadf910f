"""`manage.py evaluate` as a person types it: inputs, outputs, faults."""

from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from scheduler_core.testing.builders import make_node, make_pod

ROOT = Path(__file__).parents[3]
CONFIG = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [
        {
            "schedulerName": "default-scheduler",
            "plugins": {"multiPoint": {"disabled": [{"name": "DynamicResources"}]}},
        }
    ],
}
NODES = [make_node(f"n{i}").capacity(cpu="4", pods="10").raw() for i in range(2)]
BOUND = make_pod("bound").req(cpu="3").node("n0").raw()
PODS = [make_pod("p").req(cpu="2").raw(), make_pod("q").namespace("team").req(cpu="9").raw()]


def scenario(**more: Any) -> dict[str, Any]:
    return {
        "name": "one",
        "config": json.dumps(CONFIG),
        "objects": [*NODES, BOUND, *PODS],
        "pending": ["default/p", "team/q"],
        **more,
    }


def without(obj: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in obj.items() if key not in keys}


def bare(*objects: dict[str, Any]) -> list[dict[str, Any]]:
    """As items of a simulator's export: without kind and apiVersion."""
    return [without(obj, "kind", "apiVersion") for obj in objects]


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def to_file(data: Any, name: str = "input.json") -> str:
        path = tmp_path / name
        text = data if isinstance(data, str) else json.dumps(data)
        if name.endswith(".gz"):
            path.write_bytes(gzip.compress(text.encode()))
        else:
            path.write_text(text, encoding="utf-8")
        return str(path)

    return to_file


def run(*arguments: str) -> str:
    out = io.StringIO()
    call_command("evaluate", *arguments, stdout=out, stderr=io.StringIO())
    return out.getvalue()


def documents(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def chosen(text: str) -> dict[str, str]:
    (document,) = documents(text)
    return {result["pod"]: result.get("chosen", "") for result in document["results"]}


# -- inputs ----------------------------------------------------------------------------------------


def test_one_document_a_line_in_the_order_of_the_file(write: Any) -> None:
    lines = [json.dumps(scenario(name=name)) for name in ("b", "a")]
    found = documents(run(write("\n".join([*lines, ""]))))
    assert [document["name"] for document in found] == ["b", "a"]
    (first, second) = found[0]["results"]
    assert (first["pod"], first["status"], first["chosen"]) == ("default/p", "Feasible", "n1")
    assert (second["pod"], second["status"]) == ("team/q", "Unschedulable")
    assert second["message"] == (
        "0/2 nodes are available: 2 Insufficient cpu. preemption: "
        "0/2 nodes are available: 2 Preemption is not helpful for scheduling."
    )


EXPORT = {
    "nodes": bare(*NODES),
    "pods": bare(BOUND, *PODS),
    "namespaces": [],
    "schedulerConfig": CONFIG,
}
LIST = {"apiVersion": "v1", "kind": "List", "items": [*NODES, BOUND, *PODS]}


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(json.dumps(scenario()), id="a scenario"),
        pytest.param(json.dumps(scenario(), indent=2), id="a scenario over many lines"),
        pytest.param(json.dumps(scenario(expected=[{}, {}])), id="with answers"),
        pytest.param(json.dumps(scenario(config=CONFIG)), id="the configuration as an object"),
        pytest.param(json.dumps(without(scenario(), "config")), id="without a configuration"),
        pytest.param(json.dumps(without(scenario(), "pending")), id="every pod without a node"),
        pytest.param(json.dumps(without(scenario(), "name")), id="without a name"),
        pytest.param("\n\n" + json.dumps(scenario()) + "\n\n", id="between blank lines"),
        pytest.param(json.dumps(EXPORT), id="a simulator's export"),
        pytest.param(json.dumps(without(EXPORT, "schedulerConfig")), id="without its config"),
        pytest.param(json.dumps(LIST), id="a kubectl List on one line"),
        pytest.param(json.dumps(LIST, indent=4), id="a kubectl List"),
    ],
)
@pytest.mark.parametrize("name", ["input.json", "input.json.gz"])
def test_inputs(write: Any, data: str, name: str) -> None:
    assert chosen(run(write(data, name))) == {"default/p": "n1", "team/q": ""}


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps(LIST)))
    (document,) = documents(run("-"))
    assert document["name"] == "standard input"
    assert len(document["results"]) == 2


def test_a_snapshot_has_the_name_of_its_file(write: Any) -> None:
    path = write(LIST)
    assert documents(run(path))[0]["name"] == path


def test_kinds_that_scheduling_does_not_look_at_are_left_out(write: Any) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}
    assert chosen(run(write({**LIST, "items": [secret, *LIST["items"]]})))["default/p"] == "n1"


def test_one_pod_alone(write: Any) -> None:
    assert chosen(run(write(LIST), "--pod", "default/p")) == {"default/p": "n1"}
    assert chosen(run(write(LIST), "--pod", "p")) == {"default/p": "n1"}
    assert chosen(run(write(LIST), "--pod", "team/q")) == {"team/q": ""}


def test_another_configuration(write: Any) -> None:
    """Instead of the one in the file."""
    profile = {"schedulerName": "x", "plugins": {"filter": {"disabled": [{"name": "*"}]}}}
    config = write({**CONFIG, "profiles": [profile]}, "config.json")
    assert set(chosen(run(write(scenario()), "--config", config)).values()) != {"n1", ""}


def test_extenders_that_stand_in_the_data_are_not_called(write: Any) -> None:
    """Nobody listens there: calling would be an Error."""
    extender = {"urlPrefix": "http://127.0.0.1:9/", "filterVerb": "filter"}
    config = {**CONFIG, "extenders": [extender]}
    assert chosen(run(write(scenario(config=config))))["default/p"] == "n1"
    assert chosen(run(write({**EXPORT, "schedulerConfig": config})))["default/p"] == "n1"
    (document,) = documents(run(write(scenario()), "--config", write(config, "config.json")))
    assert document["results"][0]["status"] == "Error"


# -- outputs ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["out.jsonl", "out.jsonl.gz"])
def test_output_goes_to_a_file(write: Any, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    source = write(scenario())
    assert run(source, "--output", str(path)) == ""
    data = path.read_bytes()
    text = (gzip.decompress(data) if name.endswith(".gz") else data).decode()
    assert text == run(source)


def test_a_file_that_fails_leaves_no_output(write: Any, tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    faulty = json.dumps(scenario()) + "\n{}\n"
    with pytest.raises(CommandError):
        run(write(faulty), "--output", str(path))
    assert not path.exists()


def test_a_table_for_a_person(write: Any) -> None:
    boss = make_pod("boss").req(cpu="3").priority(9).raw()
    filler = make_pod("filler").req(cpu="4").node("n1").priority(9).raw()
    data = scenario(
        objects=[*NODES, BOUND, filler, boss, *PODS], pending=["default/boss", "team/q"]
    )
    assert run(write(data), "--format", "table").rstrip().splitlines() == [
        "one",
        "",
        "default/boss: Unschedulable",
        "  0/2 nodes are available: 2 Insufficient cpu.",
        "  rejected  by                because",
        "  n0, n1    NodeResourcesFit  Insufficient cpu",
        "  evict from   broken budgets  victims, most important first",
        "  n0 (chosen)  0               default/bound",
        "",
        "team/q: Unschedulable",
        "  0/2 nodes are available: 2 Insufficient cpu. preemption: "
        "0/2 nodes are available: 2 Preemption is not helpful for scheduling.",
        "  rejected  by                because",
        "  n0, n1    NodeResourcesFit  Insufficient cpu",
    ]


def test_a_table_of_scores(write: Any) -> None:
    many = [make_node(f"m{i:02}").capacity(cpu="8", pods="10").raw() for i in range(30)]
    lines = run(
        write(scenario(objects=[*many, PODS[0]], pending=["default/p"])), "--format", "table"
    ).splitlines()
    assert lines[2].startswith("default/p: m00 (total ")
    assert lines[2].endswith(", 30 nodes with it)")
    assert lines[3].split()[:4] == ["node", "total", "TaintToleration", "x3"]
    assert lines[4].split()[0] == "m00"
    assert lines[24] == "  and 10 more nodes that fit"


def test_what_a_terminal_would_act_upon_is_shown_as_a_question_mark(write: Any) -> None:
    text = run(write(scenario(name="\x1b[2Jwiped")), "--format", "table")
    assert "\x1b" not in text
    assert text.startswith("?[2Jwiped")


# -- faults ----------------------------------------------------------------------------------------

NO_CONTAINERS = {**PODS[0], "spec": {}}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("", ["there is nothing in it"], id="an empty file"),
        pytest.param(
            '{"objects": 1}', ["line 1: objects: Invalid value: must be a list"], id="objects"
        ),
        pytest.param(
            json.dumps(scenario()) + '\n{"name": "two",}',
            ["input.json, line 2, column ", "not JSON"],
            id="broken JSON on a later line",
        ),
        pytest.param(
            '{"name": "one",}\n' + json.dumps(scenario()),
            ["input.json, line 1, column ", "not JSON"],
            id="broken JSON on the first line",
        ),
        pytest.param(
            "\n" + json.dumps(scenario()) + '\n\n{"name": "two"}',
            ["input.json, line 4: objects: Required value"],
            id="a line that is no scenario",
        ),
        pytest.param(
            json.dumps(scenario(objects=[NODES[0], NO_CONTAINERS])),
            ["input.json, line 1: object 2: Pod default/p: spec.containers: Required value"],
            id="an object's field",
        ),
        pytest.param(
            json.dumps({**LIST, "items": [NODES[0], NO_CONTAINERS]}),
            ["input.json: items[1]: Pod default/p: spec.containers: Required value"],
            id="an item's field",
        ),
        pytest.param(
            json.dumps(scenario(pending=["default/p", 3])),
            ["line 1: pending[1]: Invalid value: 3"],
            id="a pending pod that is no text",
        ),
        pytest.param(
            json.dumps(scenario(pending=["default/gone"])),
            ["line 1: there is no pod default/gone"],
            id="a pending pod that is not there",
        ),
        pytest.param(
            json.dumps(scenario(pending=["default/bound"])),
            ["line 1: pod default/bound runs on node n0 already"],
            id="a pending pod that runs",
        ),
        pytest.param(
            json.dumps(scenario(name=7)), ["line 1: name: Invalid value: 7"], id="the name"
        ),
        pytest.param(
            json.dumps(scenario(config={**CONFIG, "parallelism": -1})),
            ["line 1: config: parallelism: Invalid value"],
            id="the configuration's field",
        ),
        pytest.param(
            json.dumps(scenario(config=[])),
            ["line 1: config: Invalid value"],
            id="a list as config",
        ),
        pytest.param(
            json.dumps({**EXPORT, "schedulerConfig": {**CONFIG, "parallelism": -1}}),
            ["input.json: schedulerConfig: parallelism: Invalid value"],
            id="the export's configuration",
        ),
    ],
)
def test_faults_say_where(write: Any, text: str, words: list[str]) -> None:
    with pytest.raises(CommandError) as caught:
        run(write(text))
    for word in words:
        assert word in str(caught.value)


def test_a_configuration_in_the_data_does_not_import_modules(write: Any) -> None:
    plugin = {"name": "tests.traces.test_commands:Reversed"}
    profile = {"schedulerName": "x", "plugins": {"score": {"enabled": [plugin]}}}
    with pytest.raises(CommandError, match="line 1: config: "):
        run(write(scenario(config={**CONFIG, "profiles": [profile]})))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        pytest.param(b"\xff\xfe", "not UTF-8 text", id="not text"),
        pytest.param(gzip.compress(b"{}" * 500)[:20], "damaged gzip data", id="half a file"),
    ],
)
def test_files_that_are_no_text(tmp_path: Path, data: bytes, words: str) -> None:
    path = tmp_path / "input.gz"
    path.write_bytes(data)
    with pytest.raises(CommandError, match=words):
        run(str(path))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"nope\.json cannot be read: No such file"):
        run(str(tmp_path / "nope.json"))


@pytest.mark.parametrize("name", ["a/b/c", "/p", "team/", ""])
def test_a_pods_name_that_is_none(write: Any, name: str) -> None:
    with pytest.raises(CommandError, match="is not NAMESPACE/NAME"):
        run(write(LIST), "--pod", name)


# -- as a program ----------------------------------------------------------------------------------


def program(*arguments: str, text: str, data_dir: Path) -> subprocess.CompletedProcess[str]:
    """Without any of the settings that a server has."""
    kept = ("PATH", "LANG", "TZ")
    environment = {key: os.environ[key] for key in kept if key in os.environ}
    return subprocess.run(
        [sys.executable, "manage.py", "evaluate", *arguments],
        input=text,
        cwd=ROOT,
        env={**environment, "HOME": str(data_dir)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_as_a_program_without_database_or_broker(tmp_path: Path) -> None:
    done = program("-", text=json.dumps(scenario()), data_dir=tmp_path)
    assert (done.returncode, chosen(done.stdout)) == (0, {"default/p": "n1", "team/q": ""})
    assert "1 scenario, 2 pods, " in done.stderr, "what it says of itself is not in the output"


def test_a_fault_ends_it_with_a_status(tmp_path: Path) -> None:
    done = program("-", text="[]", data_dir=tmp_path)
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    assert "standard input" in done.stderr
