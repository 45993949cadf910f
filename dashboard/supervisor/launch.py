"""Become a program that does not outlive its supervisor: ``launch.py SUPERVISOR_PID PROGRAM ...``.

Linux kills this process when the supervisor dies, however that happens; the request survives
the exec below. Elsewhere nothing of the kind exists, and `leftovers` cleans up at the next start.
Run with ``-S -E`` so that the detour costs a few milliseconds; standard library only.
"""

import os
import signal
import sys

PR_SET_PDEATHSIG = 1
COMMAND_NOT_FOUND = 127


def die_with(supervisor: int) -> None:
    import ctypes

    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    # The supervisor may have died before the request was made.
    if os.getppid() != supervisor:
        sys.exit(1)


def main() -> None:
    supervisor, program = int(sys.argv[1]), sys.argv[2:]
    if sys.platform == "linux":
        die_with(supervisor)
    try:
        os.execvp(program[0], program)  # noqa: S606 - no shell is the point
    except OSError as error:
        sys.stderr.write(f"{program[0]} cannot be started: {error.strerror}\n")
        sys.exit(COMMAND_NOT_FOUND)


if __name__ == "__main__":
    main()
