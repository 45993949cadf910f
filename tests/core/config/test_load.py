"""Files, completed documents, and plugins that come from elsewhere."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from scheduler_core.config import (
    InvalidConfiguration,
    default_configuration,
    load_configuration,
    load_configuration_file,
)
from scheduler_core.config.durations import format_duration, parse_duration

from . import fakes
from .conftest import HEAD
from .fakes import fake_registry

HERE = f"{fakes.__name__}"
DATA = Path(__file__).parents[2] / "data"


def names(*given):
    return [{"name": name} for name in given]


def text_of(**fields):
    return json.dumps({**HEAD, **fields})


def test_yaml_and_json_say_the_same(registry):
    fields = {"parallelism": 3, "profiles": [{"schedulerName": "x", "plugins": {}}]}
    from_json = load_configuration(text_of(**fields), registry)
    from_yaml = load_configuration(yaml.safe_dump({**HEAD, **fields}), registry)
    flow = f"{{apiVersion: {HEAD['apiVersion']}, kind: {HEAD['kind']}, parallelism: 3}}"
    assert from_json.completed() == from_yaml.completed()
    assert load_configuration(flow, registry).parallelism == 3


def test_a_file_is_named_in_its_errors(tmp_path, registry):
    path = tmp_path / "scheduler.yaml"
    path.write_text(text_of(parallelism=0), encoding="utf-8")
    with pytest.raises(InvalidConfiguration) as caught:
        load_configuration_file(path, registry)
    assert str(caught.value) == (
        f"{path}: parallelism: Invalid value: 0: should be an integer value greater than zero"
    )


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        pytest.param(None, "cannot be read: No such file or directory", id="missing"),
        pytest.param(b"\xff\xfe\x00", "cannot be read: it is not UTF-8 text", id="not text"),
    ],
)
def test_files_that_cannot_be_read(tmp_path, registry, content, reason):
    path = tmp_path / "x.yaml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InvalidConfiguration) as caught:
        load_configuration_file(path, registry)
    assert str(caught.value) == f"{path}: {reason}"


def test_a_good_file_with_a_byte_order_mark(tmp_path, registry):
    path = tmp_path / "x.json"
    path.write_text("\ufeff" + text_of(parallelism=7), encoding="utf-8")
    config = load_configuration_file(path, registry)
    assert (config.parallelism, config.source) == (7, str(path))


def test_the_completed_document_has_the_shape_of_configz(load):
    profile = load(profiles=[{"plugins": {"filter": {"enabled": names("NodePorts")}}}]).completed()[
        "profiles"
    ][0]
    plugins = profile["plugins"]
    assert plugins["filter"] == {"enabled": [{"name": "NodePorts", "weight": 0}]}
    assert plugins["score"] == {}
    multi = {entry["name"]: entry["weight"] for entry in plugins["multiPoint"]["enabled"]}
    assert list(multi)[:3] == ["SchedulingGates", "PrioritySort", "NodeUnschedulable"]
    assert (multi["TaintToleration"], multi["NodeName"]) == (3, 0)
    assert [entry["name"] for entry in profile["pluginConfig"]] == [
        "NodeAffinity",
        "NodeResourcesBalancedAllocation",
        "NodeResourcesFit",
    ]
    assert profile["pluginConfig"][0]["args"] == {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "NodeAffinityArgs",
    }


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({}, id="default"),
        pytest.param(
            {
                "profiles": [
                    {
                        "percentageOfNodesToScore": 0,
                        "plugins": {
                            "queueSort": {
                                "enabled": names("Coscheduling"),
                                "disabled": names("*"),
                            },
                            "multiPoint": {
                                "enabled": names("Coscheduling", "ManualApproval"),
                                "disabled": names("ImageLocality", "DynamicResources"),
                            },
                            "score": {"enabled": [{"name": "TaintToleration", "weight": 9}]},
                        },
                        "pluginConfig": [{"name": "ManualApproval", "args": {"timeoutSeconds": 5}}],
                    }
                ],
                "extenders": [{"urlPrefix": "http://a", "filterVerb": "f", "httpTimeout": "90s"}],
                "leaderElection": {"leaseDuration": "90s"},
            },
            id="much of everything",
        ),
    ],
)
def test_a_completed_document_means_the_same_when_loaded_again(load, registry, fields):
    first = load(**fields)
    for text in (json.dumps(first.completed()), yaml.safe_dump(first.completed())):
        again = load_configuration(text, registry)
        assert again.completed() == first.completed()
        assert again.profiles == first.profiles
        assert again.extenders == first.extenders


def test_every_recorded_configuration_is_accepted():
    """tests/data/vectors: what the reference ran with. Plugins that do not exist yet may be
    disabled and given arguments."""
    import gzip

    texts = set()
    for path in sorted((DATA / "vectors").glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            texts |= {json.loads(line)["config"] for line in lines}
    assert len(texts) > 10
    for text in texts:
        load_configuration(text, fake_registry())


# -- plugins from elsewhere ------------------------------------------------------------------------


def test_a_plugin_by_its_dotted_path(load):
    dotted = f"{HERE}:Blink"
    config = load(
        profiles=[
            {
                "plugins": {
                    "score": {"enabled": [{"name": dotted, "weight": 4}]},
                    "filter": {"disabled": names(dotted)},
                },
                "pluginConfig": [{"name": dotted, "args": {"colour": "red"}}],
            }
        ]
    )
    profile = config.profiles[0]
    assert profile.plugins["score"][-1] == ("Blink", 4)
    assert profile.plugin_args["Blink"] == {"colour": "red"}
    plugin = config.registry.create("Blink", profile.plugin_args["Blink"], None)
    assert isinstance(plugin, fakes.Blink)
    assert plugin.args["colour"] == "red"
    completed = config.completed()["profiles"][0]
    assert completed["plugins"]["score"]["enabled"] == [{"name": dotted, "weight": 4}]
    assert {"name": dotted, "args": {"colour": "red"}} in completed["pluginConfig"]


def test_the_registry_that_was_handed_in_is_left_alone(load, registry):
    load(profiles=[{"plugins": {"score": {"enabled": names(f"{HERE}:Blink")}}}])
    assert "Blink" not in registry


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        pytest.param(
            "no.such.module:X",
            "cannot be imported: ModuleNotFoundError: No module named 'no'",
            id="no module",
        ),
        pytest.param(
            f"{HERE}:Nothing",
            f"cannot be imported: AttributeError: module '{HERE}' has no attribute 'Nothing'",
            id="no class",
        ),
        pytest.param(
            f"{HERE}:NOT_A_PLUGIN",
            "is not a plugin class (a subclass of scheduler_core's Plugin)",
            id="no plugin",
        ),
        pytest.param(
            f"{HERE}:Nameless", 'has no name (set the class attribute "name")', id="no name"
        ),
        pytest.param(f"{HERE}:Pointless", "implements no extension point", id="no extension point"),
        pytest.param(
            f"{HERE}:PretendsToBeNodeName",
            'there is another plugin named "NodeName"',
            id="the name of another",
        ),
        pytest.param("a b:c", 'must have the form "package.module:Class"', id="no path"),
    ],
)
def test_dotted_paths_that_lead_nowhere(faults, name, reason):
    lines = faults(profiles=[{"plugins": {"filter": {"enabled": names(name)}}}])
    assert lines == [f'profiles[0].plugins.filter.enabled[0].name: plugin "{name}": {reason}']


def test_text_from_the_network_imports_nothing(registry):
    dotted = "this_would_be_imported:X"
    text = text_of(profiles=[{"plugins": {"filter": {"enabled": names(dotted)}}}])
    with pytest.raises(InvalidConfiguration) as caught:
        load_configuration(text, registry, dotted_plugins=False)
    assert caught.value.lines() == [
        f'profiles[0].plugins.filter.enabled[0].name: plugin "{dotted}": a dotted path is not '
        "allowed here; install it as an entry point"
    ]


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A package with three entry points is installed."""
    info = tmp_path / "somebody-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: somebody\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[kubesched.plugins]\n"
        f"Installed = {HERE}:Installed\n"
        f"Misnamed = {HERE}:Blink\n"
        "Broken = no.such.module:X\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))


def test_a_plugin_by_its_entry_point(installed, load):
    config = load(profiles=[{"plugins": {"multiPoint": {"enabled": names("Installed")}}}])
    assert config.profiles[0].plugins["filter"][-1].name == "Installed"
    assert "Installed" in config.registry


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        pytest.param(
            "Misnamed",
            f'its entry point {HERE}:Blink is a plugin named "Blink"',
            id="named otherwise",
        ),
        pytest.param(
            "Broken",
            "its entry point no.such.module:X cannot be loaded: ModuleNotFoundError: No module "
            "named 'no'",
            id="broken",
        ),
    ],
)
def test_entry_points_that_lead_nowhere(installed, faults, name, reason):
    lines = faults(profiles=[{"plugins": {"multiPoint": {"enabled": names(name)}}}])
    assert lines == [f'profiles[0].plugins.multiPoint.enabled[0].name: plugin "{name}": {reason}']


def test_configuration_loads_without_django():
    code = (
        "import sys, scheduler_core.config;"
        "bad = {'django', 'celery', 'channels', 'redis', 'kubernetes'} & set(sys.modules);"
        "sys.exit(', '.join(sorted(bad)) or 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[3])


# -- durations -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "nanoseconds", "printed"),
    [
        pytest.param("15s", 15_000_000_000, "15s", id="seconds"),
        pytest.param("600s", 600_000_000_000, "10m0s", id="minutes"),
        pytest.param("1h2m3.5s", 3_723_500_000_000, "1h2m3.5s", id="all of them"),
        pytest.param("1500ms", 1_500_000_000, "1.5s", id="milliseconds"),
        pytest.param("20ms", 20_000_000, "20ms", id="below a second"),
        pytest.param("1.5us", 1_500, "1.5µs", id="microseconds"),
        pytest.param("7ns", 7, "7ns", id="nanoseconds"),
        pytest.param("-1s", -1_000_000_000, "-1s", id="negative"),
        pytest.param("0", 0, "0s", id="a bare 0"),
        pytest.param(".5s", 500_000_000, "500ms", id="no whole part"),
    ],
)
def test_durations(text, nanoseconds, printed):
    assert parse_duration(text) == nanoseconds
    assert format_duration(nanoseconds) == printed


@pytest.mark.parametrize(
    "text", ["", "15", "s", "1d", "1s ", "1 s", "--1s", "9" * 40 + "h", "1" * 99]
)
def test_no_durations(text):
    with pytest.raises(ValueError, match="duration"):
        parse_duration(text)


@given(st.integers(-(2**63) + 1, 2**63 - 1))
def test_durations_survive_printing(nanoseconds):
    assert parse_duration(format_duration(nanoseconds)) == nanoseconds


def test_the_default_configuration_is_its_own_completion(registry):
    config = default_configuration(registry)
    assert load_configuration(json.dumps(config.completed()), registry).profiles == config.profiles
