"""What a process has used so far, as the kernel counts it."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

__all__ = ["cpu_seconds", "peak_rss_mib"]


def cpu_seconds(pid: int) -> float | None:
    """User and system time of all its threads; None where that cannot be told (not Linux)."""
    with suppress(OSError, ValueError, IndexError):
        # The name in parentheses may hold anything.
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return None


def peak_rss_mib(pid: int) -> float | None:
    """The most memory it has held; None as above."""
    with suppress(OSError, ValueError):
        for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    return None
