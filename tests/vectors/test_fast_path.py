"""The recorded answers of kube-scheduler 1.36.2 again, by the path that reuses and patches.

Each pod is evaluated twice while some nodes look otherwise than recorded, so that what is known of
pods like it is kept of another state; then these nodes are as recorded, and the answer is worked
out by asking about them alone. It must be the recorded one, field by field. (The plain path gives
the same answers: ``test_whole_decisions``.)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager

import numpy as np
import pytest

from scheduler_core.evaluation import Evaluation
from scheduler_core.framework.node_info import NodeInfo
from scheduler_core.framework.nodes import NodeTable
from scheduler_core.plugins.registry import in_tree_registry
from scheduler_core.scenarios import ScenarioReader, text_lines
from tests.vectors.harness import DATA, FAMILIES, scenarios
from tests.vectors.test_whole_decisions import ANSWERS_PER_FAMILY, flat

#: So many changed nodes are patched, however few nodes there are.
MOST_CHANGED = 4
#: Answers that must come by patches, of 800: the others are full passes for a reason (PreFilter
#: turns the pod down or picks its nodes, or pods are nominated).
LEAST_PATCHED = 300


@contextmanager
def otherwise(table: NodeTable, rows: Sequence[int]) -> Iterator[None]:
    """Some nodes without their pods, for a while."""
    infos = {row: table[row] for row in rows}
    for row, info in infos.items():
        table.refresh_row(row, NodeInfo(info.node))
    try:
        yield
    finally:
        for row, info in infos.items():
            table.refresh_row(row, info)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_answer_is_as_recorded(family: str, capsys: pytest.CaptureFixture[str]) -> None:
    chance = np.random.default_rng(1)
    differences: list[str] = []
    answers: Counter[str] = Counter()
    file = DATA / f"{family}.jsonl.gz"
    read = ScenarioReader(in_tree_registry()).read(text_lines(file), file.name)
    for recorded, scenario in zip(scenarios(family), read, strict=True):
        objects, config = scenario.snapshot.objects, scenario.config
        with closing(Evaluation(objects, config, reuse=True)) as evaluation:
            for expected in recorded["expected"]:
                framework = evaluation.framework("")
                table, cache = framework.nodes.table, framework.equivalence
                count = min(MOST_CHANGED, len(table))
                with otherwise(table, chance.choice(len(table), count, replace=False).tolist()):
                    evaluation.evaluate(expected["pod"])
                    evaluation.evaluate(expected["pod"])
                patched = cache.patched
                found = evaluation.evaluate(expected["pod"])
                answers["patched" if cache.patched > patched else "in full"] += 1
                if flat(found) != flat(expected):
                    differences.append(f"{scenario.name} {expected['pod']}: {found}"[:1_000])
    with capsys.disabled():
        print(f"\n{family}: {answers['patched']} answers patched, {answers['in full']} in full")  # noqa: T201 - as in test_whole_decisions
    assert not differences, f"{len(differences)} differences, the first:\n" + differences[0]
    assert answers.total() == ANSWERS_PER_FAMILY
    assert answers["patched"] >= LEAST_PATCHED
