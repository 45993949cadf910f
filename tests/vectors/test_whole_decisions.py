"""`manage.py evaluate` gives every recorded answer of kube-scheduler 1.36.2, field by field.

Prints the agreements per family and field.
"""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from django.core.management import call_command

from tests.vectors.harness import DATA, FAMILIES, scenarios

Answer = Mapping[str, Any]

FIELDS = (
    "pod",
    "status",
    "preFilter",
    "filtered",
    "feasible",
    "raw",
    "normalized",
    "weights",
    "total",
    "best",
    "chosen",
    "message",
    "preemption.status",
    "preemption.candidates",
    "preemption.nominated",
    "unschedulablePlugins",
)
#: Of eleven families with 800 answers each.
ANSWERS_PER_FAMILY = 800


def flat(answer: Answer) -> dict[str, Any]:
    """The fields of an answer. A node's reasons are a set: the reference lists resources in random
    order."""
    fields = {key: value for key, value in answer.items() if key != "preemption"}
    fields |= {f"preemption.{key}": value for key, value in answer.get("preemption", {}).items()}
    fields["filtered"] = {
        node: {**status, "reasons": set(status["reasons"])}
        for node, status in answer.get("filtered", {}).items()
    }
    return fields


def evaluated(family: str) -> Iterator[tuple[str, list[Answer]]]:
    out = io.StringIO()
    file = DATA / f"{family}.jsonl.gz"
    call_command("evaluate", str(file), stdout=out, stderr=io.StringIO())
    for line in out.getvalue().splitlines():
        document = json.loads(line)
        assert list(document) == ["name", "results"]
        yield document["name"], document["results"]


def agreement_table(family: str, whole: int, answers: int, agreements: Counter[str]) -> str:
    rows = [f"  {field:<22} {agreements[field]:>4}" for field in FIELDS]
    return "\n".join([f"\n{family}: {whole} of {answers} answers agree", *rows])


@pytest.mark.parametrize("family", FAMILIES)
def test_every_answer_is_as_recorded(family: str, capsys: pytest.CaptureFixture[str]) -> None:
    agreements: Counter[str] = Counter()
    differences: list[str] = []
    answers = whole = 0
    for scenario, (name, results) in zip(scenarios(family), evaluated(family), strict=True):
        assert name == scenario["name"]
        for found, expected in zip(results, scenario["expected"], strict=True):
            answers += 1
            mine, theirs = flat(found), flat(expected)
            assert set(mine) | set(theirs) <= set(FIELDS)
            wrong = [field for field in FIELDS if mine.get(field) != theirs.get(field)]
            agreements.update(field for field in FIELDS if field not in wrong)
            whole += not wrong
            differences += [
                f"{name} {expected['pod']} {field}: {mine.get(field)} instead of "
                f"{theirs.get(field)}"
                for field in wrong
            ]
    with capsys.disabled():
        print(agreement_table(family, whole, answers, agreements))  # noqa: T201 - asked for
    assert not differences, f"{len(differences)} differences, the first:\n" + "\n".join(
        difference[:1_000] for difference in differences[:10]
    )
    assert whole == answers == ANSWERS_PER_FAMILY


def test_all_families_are_here() -> None:
    assert len(FAMILIES) * ANSWERS_PER_FAMILY == 8_800
