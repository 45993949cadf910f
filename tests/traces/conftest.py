"""A trace of four nodes and a few tasks, in the columns of the public one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

NODES = """\
sn,cpu_milli,memory_mib,gpu,model
n0,8000,16384,0,
n1,8000,16384,0,
n2,8000,16384,2,T4
n3,8000,16384,2,V100M16
"""
POD_COLUMNS = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,"
    "deletion_time,scheduled_time\n"
)
PODS = POD_COLUMNS + (
    "a,1000,2048,0,0,,LS,Running,100,,100\n"
    "b,1000,2048,0,0,,LS,Running,110,200,110\n"
    "c,1000,2048,1,500,V100M16|G2,LS,Running,120,,120\n"
    "d,1000,2048,2,1000,P100,LS,Running,130,,130\n"
    "e,9000,2048,0,0,,BE,Pending,140,150,\n"
    "f,1000,2048,0,0,,BE,Running,200,,200\n"
)


@dataclass(frozen=True)
class Files:
    nodes: Path
    pods: Path

    def arguments(self) -> list[str]:
        return ["--nodes", str(self.nodes), "--pods", str(self.pods)]


@pytest.fixture
def small_trace(tmp_path: Path) -> Files:
    files = Files(tmp_path / "nodes.csv", tmp_path / "my_pods.csv")
    files.nodes.write_text(NODES, encoding="utf-8")
    files.pods.write_text(PODS, encoding="utf-8")
    return files
