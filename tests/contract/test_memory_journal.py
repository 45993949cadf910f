"""MemoryJournal keeps to the contract of journals."""

from __future__ import annotations

import pytest

from scheduler_core.cluster.journal import MemoryJournal
from tests.contract.journals import JournalContract, Kept


class TestMemoryJournal(JournalContract):
    @pytest.fixture
    def journal(self) -> MemoryJournal:
        return MemoryJournal()

    @pytest.fixture
    def kept(self, journal: MemoryJournal) -> Kept:
        return lambda: journal.writes
