"""Traces: strict reading, the documented mapping, order, and live replay."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler_core.api.validation import validate
from scheduler_core.workloads.trace import (
    Action,
    Timeline,
    TraceError,
    TraceNode,
    TracePod,
    TraceWorkload,
    find_trace,
    load_trace,
    node_object,
    pod_object,
    trace_events,
)
from tests.contract.support import Recorder
from tests.core.workloads.fakes import START, World

NODES = "sn,cpu_milli,memory_mib,gpu,model\n"
PODS = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,"
    "creation_time,deletion_time,scheduled_time\n"
)
GOOD_NODE = "n0,32000,262144,2,T4\n"
GOOD_POD = "p0,4000,8192,1,500,T4|P100,LS,Running,10,20,11\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "nodes.csv").write_text(NODES + GOOD_NODE)
    (tmp_path / "pods.csv").write_text(PODS + GOOD_POD)
    return tmp_path


def load(folder: Path) -> None:
    load_trace(folder / "nodes.csv", folder / "pods.csv")


def test_a_good_trace(folder: Path) -> None:
    trace = load_trace(folder / "nodes.csv", folder / "pods.csv")
    assert trace.nodes == (TraceNode("n0", 32000, 262144, 2, "T4"),)
    assert trace.pods == (TracePod("p0", 4000, 8192, 1, 500, ("T4", "P100"), 10, 20),)


def test_columns_may_stand_in_any_order(folder: Path) -> None:
    (folder / "nodes.csv").write_text("model,gpu,memory_mib,cpu_milli,sn\nT4,2,262144,32000,n0\n")
    trace = load_trace(folder / "nodes.csv", folder / "pods.csv")
    assert trace.nodes == (TraceNode("n0", 32000, 262144, 2, "T4"),)


def test_an_empty_deletion_time_means_never(folder: Path) -> None:
    (folder / "pods.csv").write_text(PODS + "p0,1,1,0,0,,BE,Pending,0,,\n")
    assert load_trace(folder / "nodes.csv", folder / "pods.csv").pods[0].deleted is None


@pytest.mark.parametrize(
    ("text", "line", "column", "reason"),
    [
        pytest.param("", 1, "", "the columns must be sn,cpu_milli", id="empty file"),
        pytest.param(NODES, 0, "", "the table has no rows", id="header alone"),
        pytest.param(
            "sn,cpu,memory_mib,gpu,model\n", 1, "", "missing: cpu_milli; unknown: cpu", id="header"
        ),
        pytest.param(NODES + "n0,1,1,0\n", 2, "", "4 fields instead of 5", id="too few fields"),
        pytest.param(NODES + "n0,1,1,0,,\n", 2, "", "6 fields instead of 5", id="too many fields"),
        pytest.param(
            NODES + "n0,abc,1,0,\n", 2, "cpu_milli", '"abc" is not a whole number', id="text"
        ),
        pytest.param(
            NODES + "n0,1.5,1,0,\n", 2, "cpu_milli", '"1.5" is not a whole number', id="fraction"
        ),
        pytest.param(
            NODES + "n0,-1,1,0,\n", 2, "cpu_milli", '"-1" is not a whole number', id="negative"
        ),
        pytest.param(
            NODES + "n0,١,1,0,\n", 2, "cpu_milli", "is not a whole number", id="other digits"
        ),
        pytest.param(
            NODES + "n0,,1,0,\n", 2, "cpu_milli", '"" is not a whole number', id="nothing"
        ),
        pytest.param(
            NODES + "n0,1,9999999999999,0,\n", 2, "memory_mib", "is more than", id="too large"
        ),
        pytest.param(NODES + ",1,1,0,\n", 2, "sn", "a name is required", id="no name"),
        pytest.param(NODES + "N_0,1,1,0,\n", 2, "sn", "RFC 1123 subdomain", id="bad name"),
        pytest.param(
            NODES + GOOD_NODE + GOOD_NODE, 3, "sn", '"n0" is on line 2 already', id="twice"
        ),
        pytest.param(
            NODES + "n0,1,1,2,\n", 2, "model", "a card model is required", id="GPUs of no model"
        ),
        pytest.param(
            NODES + "n0,1,1,0,T4\n", 2, "model", '"T4" on a node without GPUs', id="model alone"
        ),
        pytest.param(NODES + "n0,1,1,2,a b\n", 2, "model", "a valid label must", id="bad model"),
        pytest.param(NODES + '"n0,1,1,0,\n', 2, "", "not CSV", id="open quote"),
    ],
)
def test_a_faulty_table_of_nodes(
    folder: Path, text: str, line: int, column: str, reason: str
) -> None:
    (folder / "nodes.csv").write_text(text)
    with pytest.raises(TraceError) as caught:
        load(folder)
    fault = caught.value.faults[0]
    assert (fault.line, fault.column) == (line, column)
    assert reason in fault.reason
    where = f"{folder / 'nodes.csv'}" + (f", line {line}" if line else "")
    assert str(caught.value).startswith(where)


@pytest.mark.parametrize(
    ("row", "column", "reason"),
    [
        pytest.param("p1,1,1,1,0,,LS,R,0,,", "gpu_milli", "0 of a GPU", id="nothing of a GPU"),
        pytest.param("p1,1,1,1,1001,,LS,R,0,,", "gpu_milli", "is more than 1000", id="too much"),
        pytest.param(
            "p1,1,1,2,500,,LS,R,0,,", "gpu_milli", "several GPUs can only be had whole", id="halves"
        ),
        pytest.param("p1,1,1,0,0,T4,LS,R,0,,", "gpu_spec", "a pod without GPUs", id="no GPUs"),
        pytest.param("p1,1,1,1,9,T4||G2,LS,R,0,,", "gpu_spec", "model is required", id="gap"),
        pytest.param("p1,1,1,0,0,,LS,R,,5,", "creation_time", '"" is not a whole', id="no time"),
        pytest.param(
            "p1,1,1,0,0,,LS,R,9,5,", "deletion_time", "5 is before the creation_time 9", id="order"
        ),
        pytest.param("p1,1,1,0,0,,LS,R,9,10,x", "scheduled_time", '"x" is not', id="scheduled"),
    ],
)
def test_a_faulty_table_of_pods(folder: Path, row: str, column: str, reason: str) -> None:
    (folder / "pods.csv").write_text(PODS + GOOD_POD + row + "\n")
    with pytest.raises(TraceError) as caught:
        load(folder)
    (fault,) = caught.value.faults
    assert (fault.file, fault.line, fault.column) == (str(folder / "pods.csv"), 3, column)
    assert reason in fault.reason


def test_every_fault_of_both_files_is_told_the_first_twenty_in_words(folder: Path) -> None:
    (folder / "nodes.csv").write_text(NODES + "n0,x,y,0,\n")
    (folder / "pods.csv").write_text(PODS + "p0,a,1,0,0,,LS,R,0,,\n" * 30)
    with pytest.raises(TraceError) as caught:
        load(folder)
    assert len(caught.value.faults) == 32
    lines = str(caught.value).splitlines()
    assert len(lines) == 21
    assert lines[-1] == "and 12 more faults"


def test_a_file_that_cannot_be_read(folder: Path) -> None:
    (folder / "nodes.csv").unlink()
    (folder / "pods.csv").write_bytes(PODS.encode() + b"p\xff")
    with pytest.raises(TraceError) as caught:
        load(folder)
    assert [str(fault).removeprefix(str(folder)) for fault in caught.value.faults] == [
        "/nodes.csv: cannot be read: No such file or directory",
        "/pods.csv, line 2: is not UTF-8 text",
    ]


def test_the_files_of_a_folder(folder: Path) -> None:
    assert find_trace(folder) == (folder / "nodes.csv", folder / "pods.csv")
    (folder / "openb_pods_default.csv").write_text("")
    assert find_trace(folder)[1].name == "openb_pods_default.csv"


@pytest.mark.parametrize(
    ("names", "message"),
    [
        pytest.param([], r"no table of nodes \(\*node\*\.csv\) in this folder", id="none"),
        pytest.param(
            ["a_nodes.csv", "b_nodes.csv", "pods.csv"],
            "which table of nodes is meant\\? There are a_nodes.csv, b_nodes.csv",
            id="two",
        ),
    ],
)
def test_a_folder_that_is_not_clear(tmp_path: Path, names: list[str], message: str) -> None:
    for name in names:
        (tmp_path / name).write_text("")
    with pytest.raises(TraceError, match=message):
        find_trace(tmp_path)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="there is no such folder"):
        find_trace(tmp_path / "absent")


# -- mapping -------------------------------------------------------------------------------------


def test_a_node_as_documented() -> None:
    assert node_object(TraceNode("n0", 96000, 393216, 8, "G2")) == {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": "n0",
            "labels": {"kubernetes.io/hostname": "n0", "alibabacloud.com/gpu-card-model": "G2"},
        },
        "spec": {},
        "status": {
            kind: {
                "cpu": "96000m",
                "memory": "393216Mi",
                "pods": "256",
                "alibabacloud.com/gpu-milli": "8000",
            }
            for kind in ("capacity", "allocatable")
        },
    }


def test_a_node_without_gpus_says_nothing_of_them() -> None:
    node = node_object(TraceNode("n0", 32000, 262144, 0, ""))
    assert node["metadata"]["labels"] == {"kubernetes.io/hostname": "n0"}
    assert set(node["status"]["capacity"]) == {"cpu", "memory", "pods"}


def test_a_pod_as_documented() -> None:
    pod = pod_object(TracePod("p0", 4000, 8192, 2, 1000, ("T4", "P100"), 0, None))
    (container,) = pod["spec"]["containers"]
    assert container["resources"] == {
        "requests": {"cpu": "4000m", "memory": "8192Mi", "alibabacloud.com/gpu-milli": "2000"},
        "limits": {"alibabacloud.com/gpu-milli": "2000"},
    }
    required = pod["spec"]["affinity"]["nodeAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]
    assert required == {
        "nodeSelectorTerms": [
            {
                "matchExpressions": [
                    {
                        "key": "alibabacloud.com/gpu-card-model",
                        "operator": "In",
                        "values": ["T4", "P100"],
                    }
                ]
            }
        ]
    }
    assert pod["metadata"]["namespace"] == "default"
    assert "priority" not in pod["spec"]
    assert validate(pod) == []


def test_events_in_the_documented_order() -> None:
    def pod(name: str, created: int, deleted: int | None) -> TracePod:
        return TracePod(name, 1, 1, 0, 0, (), created, deleted)

    pods = [pod("c", 5, 9), pod("a", 5, None), pod("b", 0, 5), pod("same", 7, 7)]
    assert [(e.time, e.action.name, e.pod.name) for e in trace_events(pods)] == [
        (0, "ADD", "b"),
        (5, "DELETE", "b"),
        (5, "ADD", "c"),
        (5, "ADD", "a"),
        (7, "ADD", "same"),
        (9, "DELETE", "c"),
    ]


# -- timeline ------------------------------------------------------------------------------------


def test_idle_times_are_cut_short() -> None:
    timeline = Timeline([0, 10, 1_000_010, 1_000_020], speed=2.0, idle=600)
    assert [timeline.offset(index) for index in range(4)] == [0.0, 5.0, 305.0, 310.0]
    assert timeline.duration == 310.0
    assert timeline.trace_time(306.0) == 1_000_010


def test_without_a_speed_it_fits() -> None:
    timeline = Timeline(list(range(0, 360_000, 100)), fit=60.0)
    assert timeline.duration == pytest.approx(60.0)
    assert Timeline([0, 10], fit=60.0).speed == 1.0


@given(st.lists(st.integers(0, 10**7), min_size=1), st.floats(0.1, 10_000))
def test_order_and_simultaneity_stay(times: list[int], speed: float) -> None:
    times.sort()
    timeline = Timeline(times, speed)
    offsets = [timeline.offset(index) for index in range(len(times))]
    assert offsets == sorted(offsets)
    for index in range(1, len(times)):
        assert (times[index] == times[index - 1]) == (offsets[index] == offsets[index - 1])
    assert timeline.offset(0) == 0.0


@pytest.mark.parametrize("speed", [0.0, -1.0, float("nan")])
def test_a_speed_that_is_none(speed: float) -> None:
    with pytest.raises(ValueError, match="speed must be positive"):
        Timeline([0, 1], speed)


# -- live replay ---------------------------------------------------------------------------------


def small_trace() -> tuple[list[TraceNode], list[TracePod]]:
    nodes = [TraceNode(f"n{index}", 8000, 16384, 0, "") for index in range(3)]
    pods = [
        TracePod(f"p{index}", 1000, 1024, 0, 0, (), index * 10, index * 10 + 35)
        for index in range(12)
    ]
    return nodes, pods


def test_pods_come_and_go_at_their_time() -> None:
    nodes, pods = small_trace()
    world = World(TraceWorkload(nodes, pods, START + 100, speed=1.0))
    sink = Recorder()
    world.cluster.list_watch("Pod", sink)
    world.run(99)
    assert sink.seen == [("SYNCED", "")]
    world.run(36.5)
    assert len(world.cluster.list("Node").items) == 3
    assert [p["metadata"]["name"] for p in world.pods()] == ["p1", "p2", "p3"]
    world.run(200)
    assert world.pods() == []
    assert world.runner.next_deadline() is None
    workload = world.runner.workload
    assert isinstance(workload, TraceWorkload)
    assert workload.progress == (24, 24)


def test_a_deletion_waits_for_the_first_decision() -> None:
    nodes, pods = small_trace()
    world = World(TraceWorkload(nodes, pods, START, speed=100.0))
    scheduler, world.scheduler = world.scheduler, None
    sink = Recorder()
    world.cluster.list_watch("Pod", sink)
    world.run(1.5, step=0.05)
    assert len(world.pods()) == 12
    world.scheduler = scheduler
    world.run(1.0, step=0.05)
    assert world.pods() == []
    assert scheduler is not None
    assert scheduler.bound == 12


def test_a_deletion_does_not_wait_for_ever() -> None:
    nodes, pods = small_trace()
    world = World(TraceWorkload(nodes, pods, START, speed=100.0), schedules=False)
    world.run(10, step=0.1)
    assert world.pods() == []


def test_it_goes_on_after_a_restart() -> None:
    nodes, pods = small_trace()
    workload = TraceWorkload(nodes, pods, START, speed=1.0)
    world = World(workload)
    world.run(47)
    names = [p["metadata"]["name"] for p in world.pods()]
    state = json.loads(json.dumps(workload.state()))
    world.clock.advance(10_000)
    again = TraceWorkload(nodes, pods, START, speed=1.0)
    again.load(state)
    world.runner.workload = again
    world.run(1)
    assert [p["metadata"]["name"] for p in world.pods()] == names
    world.run(200)
    assert world.pods() == []
    assert world.scheduler is not None
    assert world.scheduler.bound == 12


def test_the_state_of_another_trace_is_refused() -> None:
    nodes, pods = small_trace()
    state = TraceWorkload(nodes, pods).state()
    with pytest.raises(ValueError, match="not the state of this trace"):
        TraceWorkload(nodes, pods[:5]).load(state)


def test_actions_are_in_order() -> None:
    assert Action.DELETE < Action.ADD


# -- the real one --------------------------------------------------------------------------------


@pytest.mark.traces
@pytest.mark.parametrize(
    ("name", "count"), [("default", 8152), ("gpuspec33", 8152), ("cpu250", 9420)]
)
def test_the_published_traces(trace_folder: Path, name: str, count: int) -> None:
    trace = load_trace(trace_folder / "openb_nodes.csv", trace_folder / f"openb_pods_{name}.csv")
    assert (len(trace.nodes), len(trace.pods)) == (1523, count)
    assert [fault for node in trace.nodes for fault in validate(node_object(node))] == []
    assert [fault for pod in trace.pods[::50] for fault in validate(pod_object(pod))] == []
    workload = TraceWorkload(trace.nodes, trace.pods)
    assert workload.timeline.duration == pytest.approx(300.0)
    # Of 13 million seconds, most of them idle: no 30 seconds of the replay are without pods.
    offsets = [workload.timeline.offset(index) for index in range(workload.progress[1])]
    per_part = [sum(1 for o in offsets if 30 * i <= o < 30 * i + 30) for i in range(10)]
    assert min(per_part) > 500
