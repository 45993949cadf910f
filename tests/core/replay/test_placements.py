"""The CSV files of placements: the recorded columns, whole or not at all."""

from __future__ import annotations

import gzip
import io

import pytest

from scheduler_core.placements import (
    Placement,
    open_placements,
    read_placements,
    write_placements,
)

ROWS = [
    Placement("default/a", "n1", 3, 467, 2),
    Placement("default/b", message="0/3 nodes are available: 1 Insufficient cpu, 2 Too many pods."),
]
TEXT = (
    "pod,node,feasible_nodes,score,best_nodes,message\n"
    "default/a,n1,3,467,2,\n"
    'default/b,,0,,0,"0/3 nodes are available: 1 Insufficient cpu, 2 Too many pods."\n'
)


def test_the_text_is_that_of_the_recorded_files():
    file = io.StringIO()
    write_placements(file, ROWS)
    assert file.getvalue() == TEXT


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
def test_files_are_read_as_they_were_written(tmp_path, name):
    path = tmp_path / name
    with open_placements(path) as file:
        write_placements(file, ROWS)
        assert not path.exists(), "nothing is there before all is"
    assert read_placements(path) == ROWS
    assert [p.name for p in tmp_path.iterdir()] == [name]
    assert path.stat().st_mode & 0o044, "others may read it, as the umask lets them"


def test_the_same_rows_give_the_same_bytes(tmp_path):
    for name in ("a.csv.gz", "b.csv.gz"):
        with open_placements(tmp_path / name) as file:
            write_placements(file, ROWS)
    assert (tmp_path / "a.csv.gz").read_bytes() == (tmp_path / "b.csv.gz").read_bytes()
    assert gzip.decompress((tmp_path / "a.csv.gz").read_bytes()).decode() == TEXT


def _fail_in_the_middle(path):
    with open_placements(path) as file:
        file.write("half of it")
        raise RuntimeError("the plug was pulled")


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
def test_a_failure_leaves_what_was_there(tmp_path, name):
    path = tmp_path / name
    path.write_text("from last time")
    with pytest.raises(RuntimeError, match="plug"):
        _fail_in_the_middle(path)
    assert path.read_text() == "from last time"
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_a_folder_that_is_not_there_is_known_at_once(tmp_path):
    with pytest.raises(OSError, match="No such file"), open_placements(tmp_path / "no" / "a.csv"):
        pytest.fail("the block must not run")


def test_another_table_is_refused(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("pod,node\ndefault/a,n1\n")
    with pytest.raises(ValueError, match="the columns must be pod, node, feasible_nodes"):
        read_placements(path)
