"""replay, import_trace and check_config as a person types them."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from django.core.management import CommandError, call_command

from dashboard.models import Cluster, Sandbox, SchedulerRun
from scheduler_core.framework.interface import ScorePlugin
from scheduler_core.workloads.trace import TraceError, find_trace

ROOT = Path(__file__).parents[2]
HEAD = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
NONE = "0/4 nodes are available: 4"
IN_VAIN = (
    f"no new claims to deallocate, preemption: {NONE} Preemption is not helpful for scheduling."
)
PLACEMENTS = f"""\
pod,node,feasible_nodes,score,best_nodes,message
default/a,n0,4,462,4,
default/b,n1,4,462,3,
default/c,n3,1,462,1,
default/d,,0,,0,"{NONE} node(s) didn't match Pod's node affinity/selector. {IN_VAIN}"
default/e,,0,,0,"{NONE} Insufficient cpu. {IN_VAIN}"
default/f,n1,4,462,2,
"""


class Reversed(ScorePlugin):
    """An example plugin: the later a node's name, the better."""

    name = "Reversed"

    def __init__(self, args, handle):
        pass

    def score(self, state, pod, node_info):
        return 10 * int(node_info.name[1:])


def run(*arguments: str) -> str:
    out = io.StringIO()
    call_command(*arguments, stdout=out, stderr=io.StringIO())
    return out.getvalue()


def config_file(tmp_path: Path, **profile) -> str:
    path = tmp_path / "scheduler.yaml"
    path.write_text(yaml.safe_dump({**HEAD, "profiles": [profile]}), encoding="utf-8")
    return str(path)


def nodes_of(text: str) -> dict[str, str]:
    rows = csv.DictReader(io.StringIO(text))
    return {row["pod"].removeprefix("default/"): row["node"] for row in rows}


# -- replay ----------------------------------------------------------------------------------------


def test_replay_writes_the_table_to_standard_output(small_trace):
    assert run("replay", *small_trace.arguments(), "--output", "-") == PLACEMENTS


@pytest.mark.parametrize("name", ["out.csv", "out.csv.gz"])
def test_replay_writes_a_file_and_a_summary(small_trace, tmp_path, name):
    path = tmp_path / name
    said = run("replay", *small_trace.arguments(), "--output", str(path))
    data = path.read_bytes()
    assert (gzip.decompress(data) if name.endswith(".gz") else data).decode() == PLACEMENTS
    table = [re.split(r"\s{2,}", line.strip()) for line in said.splitlines()]
    words = {cells[0]: cells[-1] for cells in table}
    assert (words["pods"], words["placed"], words["not placed"]) == ("6", "4", "2")
    assert words["scheduling cycles"] == "6"
    assert "pods/s" in said
    assert {"Filter", "Score"} <= set(words)
    assert str(path) in said


def test_replay_without_output_says_how_it_went(small_trace):
    assert "placed             4" in run("replay", *small_trace.arguments())


def test_another_configuration_changes_the_placements(small_trace, tmp_path):
    strategy = {
        "type": "MostAllocated",
        "resources": [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}],
    }
    args = {"scoringStrategy": strategy}
    config = config_file(tmp_path, pluginConfig=[{"name": "NodeResourcesFit", "args": args}])
    arguments = ["replay", *small_trace.arguments(), "--output", "-"]
    default = nodes_of(run(*arguments))
    packed = nodes_of(run(*arguments, "--config", config))
    assert (default["a"], default["b"], default["f"]) == ("n0", "n1", "n1")
    assert (packed["a"], packed["b"], packed["f"]) == ("n0", "n0", "n0")


def test_an_example_plugin_changes_the_placements(small_trace, tmp_path):
    entry = {"name": f"{__name__}:Reversed", "weight": 10}
    config = config_file(tmp_path, plugins={"score": {"enabled": [entry]}})
    found = nodes_of(run("replay", *small_trace.arguments(), "--output", "-", "--config", config))
    assert (found["a"], found["b"], found["f"]) == ("n3", "n3", "n3")


@pytest.mark.parametrize(
    ("example", "nodes"),
    [
        pytest.param("demo.yaml", ("n0", "n1", "n1"), id="demo: as the default profile"),
        pytest.param("most-allocated.yaml", ("n0", "n0", "n0"), id="MostAllocated packs"),
        pytest.param("example-plugins.yaml", ("n2", "n2", "n2"), id="a plugin that likes T4"),
    ],
)
def test_the_example_configurations(small_trace, example, nodes):
    config = str(ROOT / "examples" / example)
    found = nodes_of(run("replay", *small_trace.arguments(), "--output", "-", "--config", config))
    assert (found["a"], found["b"], found["f"]) == nodes


def test_without_dynamic_resources_preemption_alone_speaks(small_trace, tmp_path):
    """As the published placements were recorded."""
    disabled = {"multiPoint": {"disabled": [{"name": "DynamicResources"}]}}
    config = config_file(tmp_path, plugins=disabled)
    table = run("replay", *small_trace.arguments(), "--output", "-", "--config", config)
    assert table == PLACEMENTS.replace("no new claims to deallocate, ", "").replace('"', "")


def test_a_profile_of_another_name_gets_the_pods_too(small_trace, tmp_path):
    config = config_file(tmp_path, schedulerName="mine")
    assert (
        run("replay", *small_trace.arguments(), "--output", "-", "--config", config) == PLACEMENTS
    )


def test_seeds(small_trace):
    arguments = ["replay", *small_trace.arguments(), "--output", "-"]
    tables = {run(*arguments, "--seed", str(seed)) for seed in range(8)}
    assert len(tables) > 1
    assert run(*arguments, "--seed", "7") == run(*arguments, "--seed", "7")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param(
            lambda f: f.pods.write_text(f.pods.read_text().replace("b,1000", "b,many")),
            ["the trace is refused", "my_pods.csv, line 3, column cpu_milli", "not a whole number"],
            id="a faulty line",
        ),
        pytest.param(lambda f: f.nodes.unlink(), ["nodes.csv: cannot be read"], id="no such file"),
    ],
)
@pytest.mark.parametrize("command", ["replay", "import_trace"])
@pytest.mark.django_db
def test_a_faulty_trace_is_refused_whole(small_trace, tmp_path, command, change, words):
    change(small_trace)
    out = tmp_path / "out.csv"
    more = ["--output", str(out)] if command == "replay" else []
    with pytest.raises(CommandError) as caught:
        run(command, *small_trace.arguments(), *more)
    for word in words:
        assert word in str(caught.value)
    assert not out.exists()
    assert not Cluster.objects.exists()


def test_a_faulty_configuration_lists_its_faults(small_trace, tmp_path):
    plugins = {"filter": {"enabled": [{"name": "Nope"}]}}
    config = config_file(tmp_path, plugins=plugins, percentageOfNodesToScore=101)
    with pytest.raises(CommandError) as caught:
        run("replay", *small_trace.arguments(), "--config", config)
    first, *faults = str(caught.value).splitlines()
    assert first == f"{config}: 2 faults"
    assert faults[0].endswith(
        "percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]"
    )
    assert faults[1].endswith('FilterPlugin "Nope" does not exist')


def test_an_output_that_cannot_be_written_is_known_before_the_replay(small_trace, tmp_path):
    path = tmp_path / "no" / "such" / "folder.csv"
    with pytest.raises(CommandError, match=r"folder\.csv cannot be written: No such file"):
        run("replay", *small_trace.arguments(), "--output", str(path))


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        pytest.param(["--speed", "0"], "'0' is neither a number above 0 nor max", id="speed 0"),
        pytest.param(["--speed", "fast"], "'fast' is neither", id="no speed"),
        pytest.param(["--speed", "nan"], "'nan' is neither", id="nan"),
        pytest.param(["--seed", "-1"], "'-1' is not a whole number from 0 on", id="seed"),
    ],
)
def test_arguments_that_are_none(small_trace, arguments, reason):
    with pytest.raises(CommandError, match=reason):
        run("replay", *small_trace.arguments(), *arguments)


def test_a_speed_paces_the_replay(small_trace):
    """100 s of trace at 1,000 times are 0.1 s, whatever else the machine does at least that."""
    said = run("replay", *small_trace.arguments(), "--speed", "1000")
    seconds = float(next(line for line in said.splitlines() if line.startswith("time ")).split()[1])
    assert seconds >= 0.1


def _environment(tmp_path: Path) -> dict[str, str]:
    """No database, no broker, no secret: what a newcomer's shell has."""
    kept = {k: v for k, v in os.environ.items() if k in {"PATH", "HOME", "LANG", "VIRTUAL_ENV"}}
    return {**kept, "KUBESCHED_DATA_DIR": str(tmp_path / "data")}


def test_replay_as_a_program_without_database_or_broker(small_trace, tmp_path):
    done = subprocess.run(
        [sys.executable, "manage.py", "replay", *small_trace.arguments(), "--output", "-"],
        cwd=ROOT,
        env=_environment(tmp_path),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == PLACEMENTS
    assert "placed             4" in done.stderr
    assert not list((tmp_path / "data").glob("*.sqlite3")), "no database was touched"


# -- check_config ----------------------------------------------------------------------------------


def _check(tmp_path, text, *arguments, file=None):
    path = tmp_path / "c.yaml"
    path.write_text(text, encoding="utf-8")
    return subprocess.run(
        [sys.executable, "manage.py", "check_config", file or str(path), *arguments],
        cwd=ROOT,
        env=_environment(tmp_path),
        capture_output=True,
        text=True,
        input=text,
        check=False,
    )


def test_check_config_lists_every_fault_and_ends_with_1(tmp_path):
    text = yaml.safe_dump(
        {
            **HEAD,
            "parallelism": 0,
            "profiles": [{"plugins": {"score": {"enabled": [{"name": "X"}]}}}],
        }
    )
    done = _check(tmp_path, text)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines() == [
        f"{tmp_path / 'c.yaml'}: 2 faults",
        "  parallelism: Invalid value: 0: should be an integer value greater than zero",
        "  initializing profiles: creating profile for scheduler name default-scheduler: "
        'ScorePlugin "X" does not exist',
    ]


@pytest.mark.parametrize(
    ("arguments", "load"),
    [
        pytest.param([], yaml.safe_load, id="yaml"),
        pytest.param(["--output", "json"], json.loads, id="json"),
    ],
)
def test_check_config_prints_the_completed_configuration(tmp_path, arguments, load):
    done = _check(tmp_path, yaml.safe_dump(HEAD), *arguments, file="-")
    assert (done.returncode, done.stderr) == (0, "")
    completed = load(done.stdout)
    assert completed["podMaxBackoffSeconds"] == 10
    assert completed["profiles"][0]["schedulerName"] == "default-scheduler"


class Choosy(ScorePlugin):
    name = "Choosy"

    def __init__(self, args, handle):
        if "colour" not in args:
            raise ValueError("colour: Required value")

    def score(self, state, pod, node_info):
        return 0


def test_check_config_asks_the_plugin_itself(tmp_path, capsys):
    config = config_file(tmp_path, plugins={"score": {"enabled": [{"name": f"{__name__}:Choosy"}]}})
    errors = io.StringIO()
    with pytest.raises(SystemExit) as caught:
        call_command("check_config", config, stderr=errors)
    assert caught.value.code == 1
    assert 'initializing plugin "Choosy": colour: Required value' in errors.getvalue()


# -- import_trace ----------------------------------------------------------------------------------


@pytest.mark.django_db
def test_import_trace_makes_a_sandbox_and_a_run(small_trace):
    said = run("import_trace", *small_trace.arguments())
    cluster = Cluster.objects.get()
    assert cluster.name == "trace-my-pods"
    assert Sandbox.objects.get(cluster=cluster).workload == {"kind": "trace"}
    made = SchedulerRun.objects.get(cluster=cluster)
    assert "Coscheduling" in made.config
    assert said.splitlines() == [
        "nodes     4 (4 GPUs)",
        "pods      6",
        "events    8",
        "replay    1 min 40 s, 1 times as fast",
        f"sandbox   trace-my-pods (cluster {cluster.pk}, run {made.pk})",
    ]


@pytest.mark.django_db
def test_import_trace_with_a_name_a_speed_and_a_configuration(small_trace, tmp_path):
    config = config_file(tmp_path, schedulerName="default-scheduler")
    said = run(
        "import_trace", *small_trace.arguments(), "--name", "mine", "--speed", "50",
        "--config", config,
    )  # fmt: skip
    sandbox = Sandbox.objects.get(cluster__name="mine")
    assert sandbox.workload == {"kind": "trace", "speed": 50.0}
    assert SchedulerRun.objects.get().config == Path(config).read_text()
    assert "replay    0 min 2 s, 50 times as fast" in said


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        pytest.param(["--name", "No Name!"], "name: Use at most 63 lower-case", id="name"),
        pytest.param(["--speed", "max"], "'max' is neither a number above 0 nor fit", id="speed"),
    ],
)
def test_import_trace_refuses(small_trace, arguments, reason):
    with pytest.raises(CommandError, match=reason):
        run("import_trace", *small_trace.arguments(), *arguments)
    assert not Cluster.objects.exists()


@pytest.mark.django_db
def test_import_trace_twice_needs_another_name(small_trace):
    run("import_trace", *small_trace.arguments())
    with pytest.raises(CommandError, match='A cluster named "trace-my-pods" exists already'):
        run("import_trace", *small_trace.arguments())
    assert Cluster.objects.count() == 1


@pytest.mark.django_db
def test_import_trace_with_a_faulty_configuration_stores_nothing(small_trace, tmp_path):
    config = config_file(tmp_path, percentageOfNodesToScore=-1)
    with pytest.raises(CommandError, match="percentageOfNodesToScore: Invalid value: -1"):
        run("import_trace", *small_trace.arguments(), "--config", config)
    assert not Cluster.objects.exists()


# -- a folder --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        pytest.param(
            ["a_nodes.csv", "a_pods.csv"], ("a_nodes.csv", "a_pods.csv"), id="one of each"
        ),
        pytest.param(
            [
                "openb_node_list_all_node.csv",
                "openb_node_list_gpu_node.csv",
                "openb_pod_list_cpu050.csv",
                "openb_pod_list_default.csv",
            ],
            ("openb_node_list_all_node.csv", "openb_pod_list_default.csv"),
            id="the folder as it is published",
        ),
        pytest.param(
            ["openb_nodes.csv", "openb_pods_cpu250.csv", "openb_pods_default.csv"],
            ("openb_nodes.csv", "openb_pods_default.csv"),
            id="renamed",
        ),
    ],
)
def test_which_files_of_a_folder_are_meant(tmp_path, names, expected):
    for name in names:
        (tmp_path / name).touch()
    nodes, pods = find_trace(tmp_path)
    assert (nodes.name, pods.name) == expected


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        pytest.param(["a_pods.csv"], r"no table of nodes \(\*node\*\.csv\)", id="no nodes"),
        pytest.param(
            ["nodes.csv", "a_pods.csv", "b_pods.csv"],
            r"which table of pods is meant\? There are a_pods\.csv, b_pods\.csv",
            id="two tables of pods",
        ),
    ],
)
def test_folders_that_are_not_clear(tmp_path, names, reason):
    for name in names:
        (tmp_path / name).touch()
    with pytest.raises(TraceError, match=reason):
        find_trace(tmp_path)
