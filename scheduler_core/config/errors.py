"""How a faulty configuration is reported: every fault at once, each with its field path."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Fault", "Faults", "InvalidConfiguration"]


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong.

    Attributes:
        path: the field, for example ``profiles[0].plugins.filter.enabled[1]``; "" where the text
            names the place itself (strict decoding, faults found while profiles are made).
        message: the reason, in kube-scheduler's words where it has such a check.
    """

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class InvalidConfiguration(ValueError):
    """A configuration that cannot be used.

    ``str()`` joins several faults as kube-scheduler does, ``[a, b]``, after the name of the file.

    Attributes:
        faults: everything that is wrong, at least one entry, in the order of the checks.
        source: the file the text came from, or "".
    """

    def __init__(self, faults: Sequence[Fault], source: str = "") -> None:
        super().__init__(tuple(faults), source)
        self.faults = tuple(faults)
        self.source = source

    def __str__(self) -> str:
        lines = [str(fault) for fault in self.faults]
        text = lines[0] if len(lines) == 1 else f"[{', '.join(lines)}]"
        return f"{self.source}: {text}" if self.source else text

    def lines(self) -> list[str]:
        """One line per fault, without the file's name."""
        return [str(fault) for fault in self.faults]


class Faults(list[Fault]):
    """Collects faults; the same text is kept once."""

    def add(self, path: str, message: str) -> None:
        fault = Fault(path, message)
        if fault not in self:
            self.append(fault)
