"""Seeded rounds of faults in one process and virtual time, against a real database.

``KUBESCHED_FAULT_ROUNDS=5000 pytest tests/faults/test_rounds.py`` (or ``--fault-rounds 5000``) runs
more; ``--fault-seed 17`` runs one again. See docs/design/011.
"""

from __future__ import annotations

import os
import re
import time
from collections import Counter

import pytest
from django.contrib.auth.models import User

from tests.faults.checker import Database, Terms, check
from tests.faults.cleaning import throw_away
from tests.faults.story import NOON, TARGETS, TIMEOUTS, Round
from tests.faults.timeline import timeline

pytestmark = [pytest.mark.slow, pytest.mark.timeout(7_200)]

ROUNDS = 200


def rounds_of(config: pytest.Config) -> range:
    """The seeds that were asked for."""
    first = config.getoption("--fault-seed")
    asked = config.getoption("--fault-rounds") or os.environ.get("KUBESCHED_FAULT_ROUNDS")
    if first is None:
        return range(int(asked or ROUNDS))
    return range(first, first + int(asked or 1))


def judge(lived: Round, database: Database) -> list[str]:
    terms = Terms(ended_at=lived.ended_at, away=lived.away, timeouts=TIMEOUTS)
    return [str(found) for found in check(database, lived.cluster_id, lived.run_id, terms)]


def test_rounds(
    people: list[User],
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
    pytestconfig: pytest.Config,
) -> None:
    seeds = rounds_of(pytestconfig)
    failed: list[str] = []
    fired: Counter[str] = Counter()
    answers: Counter[str] = Counter()
    began = time.monotonic()
    for seed in seeds:
        lived = Round(seed, target=TARGETS[seed % len(TARGETS)])
        problems = _live(lived, monkeypatch) or judge(lived, database)
        fired += lived.faults.fired
        answers += Counter(lived.answers)
        if problems:
            failed += [_command(seed), *problems, f"  faults: {lived.faults.log}"]
        if len(seeds) == 1:
            print(timeline(database, lived.cluster_id, lived.run_id, NOON))  # noqa: T201
        throw_away(lived.cluster_id, lived.run_id)
    seconds = time.monotonic() - began
    print(f"{len(seeds)} rounds in {seconds:.0f} s, {fired.total()} faults, {dict(answers)}")  # noqa: T201
    assert not failed, "\n".join(failed[:200])
    if len(seeds) >= ROUNDS:
        assert [point for point in TARGETS if not fired[point]] == [], "faults that never happened"


def _live(lived: Round, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    try:
        lived.run(monkeypatch)
    except Exception as error:  # noqa: BLE001 - told with the seed that repeats it
        import traceback

        return [f"  raised {error!r}", traceback.format_exc()]
    return []


def _command(seed: int) -> str:
    return f"seed {seed}: pytest tests/faults/test_rounds.py --fault-seed {seed}"


def test_a_seed_is_lived_the_same_again(
    people: list[User], database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else nobody could look for the reason of a violation."""
    stories = []
    for _ in range(2):
        lived = Round(3, target=TARGETS[3])
        lived.run(monkeypatch)
        text = timeline(database, lived.cluster_id, lived.run_id, NOON)
        # Rows are numbered on from round to round.
        lines = sorted(re.sub(r"(wait|word) \d+", r"\1", text).splitlines())
        stories.append((lived.faults.log, lived.answers, lines))
    assert stories[0] == stories[1]
