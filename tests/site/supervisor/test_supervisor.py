"""Real small processes: order, restarts, stops, and nothing left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from dashboard.supervisor import supervisor as module
from dashboard.supervisor.process import Child, Program, describe_exit
from dashboard.supervisor.supervisor import ChildKeepsFailingError, Supervisor
from tests.servers import ROOT, wait_for

OBEDIENT = """
import pathlib, signal, sys, time
journal = pathlib.Path(sys.argv[1])
def note(line):
    with journal.open("a") as file:
        file.write(line + "\\n")
def stop(*_):
    note("stopped " + sys.argv[2])
    sys.exit(0)
signal.signal(signal.SIGTERM, stop)
note("started " + sys.argv[2])
while True:
    time.sleep(0.05)
"""
STUBBORN = OBEDIENT.replace("sys.exit(0)", "pass")


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    path = tmp_path / "journal"
    path.touch()
    return path


def program(code: str, journal: Path, name: str, stage: int = 0) -> Program:
    command = [sys.executable, "-S", "-c", code, str(journal), name]
    return Program(name=name, command=command, stage=stage, log=journal.with_name(f"{name}.log"))


def lines(journal: Path) -> list[str]:
    return journal.read_text().splitlines()


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{pid}/stat")
    return not (state.exists() and state.read_text().rsplit(")", 1)[1].split()[0] == "Z")


def signal_when(ready: Callable[[], bool], number: int = signal.SIGTERM) -> threading.Thread:
    """Send this process a signal as soon as ``ready()``."""

    def send() -> None:
        wait_for(ready, "the moment for the signal")
        os.kill(os.getpid(), number)

    thread = threading.Thread(target=send)
    thread.start()
    return thread


@pytest.mark.parametrize("number", module.STOP_SIGNALS, ids=lambda number: number.name)
def test_a_signal_stops_all_children_the_highest_stage_first(journal: Path, number: int) -> None:
    with Supervisor(stop_seconds=5, say=lambda line: None) as supervisor:
        for name, stage in (("broker", 0), ("web", 1), ("beat", 2)):
            supervisor.start(program(OBEDIENT, journal, name, stage))
        sender = signal_when(lambda: len(lines(journal)) == 3, number)
        supervisor.run()
    sender.join()

    assert lines(journal)[3:] == ["stopped beat", "stopped web", "stopped broker"]


def test_a_child_that_ignores_term_is_killed_in_time(journal: Path) -> None:
    with Supervisor(stop_seconds=1.0, say=lambda line: None) as supervisor:
        stubborn = supervisor.start(program(STUBBORN, journal, "stubborn", 1))
        polite = supervisor.start(program(OBEDIENT, journal, "polite", 0))
        wait_for(lambda: len(lines(journal)) == 2, "the start")
        began = time.monotonic()

    assert time.monotonic() - began < 2
    assert stubborn.poll() == -signal.SIGKILL
    assert polite.poll() == 0  # it got its TERM, though the time was used up


def test_a_second_signal_kills_at_once(journal: Path) -> None:
    with Supervisor(stop_seconds=60, say=lambda line: None) as supervisor:
        child = supervisor.start(program(STUBBORN, journal, "stubborn"))
        first = signal_when(lambda: len(lines(journal)) == 1)
        supervisor.run()
        second = signal_when(lambda: "stopped stubborn" in lines(journal), signal.SIGINT)
        began = time.monotonic()
    first.join()
    second.join()

    assert time.monotonic() - began < 10
    assert child.poll() == -signal.SIGKILL


def test_a_signal_during_the_start_stops_what_is_there(journal: Path) -> None:
    reached_run = False
    with Supervisor(stop_seconds=5, say=lambda line: None) as supervisor:
        child = supervisor.start(program(OBEDIENT, journal, "early"))
        sender = signal_when(lambda: len(lines(journal)) == 1, signal.SIGINT)
        supervisor.wait_until(lambda: False, 30)
        reached_run = True
    sender.join()

    assert not reached_run
    assert child.poll() == 0


def test_a_child_that_dies_starts_again_and_people_are_told(journal: Path) -> None:
    said: list[str] = []
    running: list[int] = []
    with Supervisor(
        stop_seconds=5,
        say=said.append,
        changed=lambda children: running.extend(pid for _, pid, _ in children),
    ) as supervisor:
        child = supervisor.start(program(OBEDIENT, journal, "worker"))
        wait_for(lambda: len(lines(journal)) == 1, "the start")
        os.kill(child.pid, signal.SIGKILL)
        assert supervisor.wait_until(lambda: lines(journal).count("started worker") == 2, 10)

    assert said == ["worker ended (killed by SIGKILL); it starts again in 0.2 s."]
    assert len(set(running)) == 2
    assert lines(journal)[-1] == "stopped worker"


def test_a_program_that_never_comes_up_is_given_up_with_its_log_named(
    journal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FIRST_DELAY", 0.01)
    broken = program("raise SystemExit(3)", journal, "web")

    with Supervisor(stop_seconds=1, say=lambda line: None) as supervisor:
        supervisor.start(broken)
        with pytest.raises(ChildKeepsFailingError) as caught:
            supervisor.wait_until(lambda: False, 30)

    expected = f"web ended 6 times in a row (exit code 3); its log is {broken.log}."
    assert str(caught.value) == expected


def test_a_missing_program_is_named(journal: Path) -> None:
    child = Child(Program("x", ["/no/such/program"], 0, log=journal))
    wait_for(lambda: child.poll() is not None, "the end")

    assert child.poll() == 127
    assert journal.read_text() == "/no/such/program cannot be started: No such file or directory\n"


def test_what_a_child_started_ends_with_it(journal: Path) -> None:
    code = "import subprocess, sys, time\n"
    code += "p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
    code += "open(sys.argv[1], 'a').write(str(p.pid) + '\\n'); time.sleep(600)"
    with Supervisor(stop_seconds=5, say=lambda line: None) as supervisor:
        supervisor.start(program(code, journal, "parent"))
        wait_for(lambda: journal.read_text().endswith("\n"), "the grandchild")

    grandchild = int(journal.read_text())
    wait_for(lambda: not alive(grandchild), "the grandchild's end")


def test_a_big_log_is_put_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dashboard.supervisor.process.LOG_BYTES", 10)
    log = tmp_path / "web.log"
    log.write_text("x" * 11)

    child = Child(Program("web", [sys.executable, "-S", "-c", "print('new')"], 0, log=log))
    wait_for(lambda: child.poll() is not None, "the end")

    assert log.read_text() == "new\n"
    assert (tmp_path / "web.1.log").read_text() == "x" * 11


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells children of a parent's death")
def test_a_killed_supervisor_leaves_nothing_behind(journal: Path) -> None:
    code = textwrap.dedent(
        """
        import sys
        from dashboard.supervisor.process import Program
        from dashboard.supervisor.supervisor import Supervisor
        with Supervisor(stop_seconds=5, say=print) as supervisor:
            for name in ("a", "b"):
                command = [sys.executable, "-S", "-c", sys.argv[2], sys.argv[1], name]
                print(supervisor.start(Program(name, command, 0)).pid, flush=True)
            supervisor.run()
        """
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(journal), STUBBORN],
        cwd=ROOT, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    children = [int(process.stdout.readline()) for _ in range(2)]
    wait_for(lambda: len(lines(journal)) == 2, "the start")

    process.kill()
    process.wait()
    process.stdout.close()

    wait_for(lambda: not any(map(alive, children)), "the children's end", seconds=5)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        pytest.param(0, "exit code 0", id="zero"),
        pytest.param(-9, "killed by SIGKILL", id="known signal"),
        pytest.param(-1000, "killed by signal 1000", id="unknown signal"),
    ],
)
def test_how_a_process_ended_is_said_in_words(code: int, words: str) -> None:
    assert describe_exit(code) == words
