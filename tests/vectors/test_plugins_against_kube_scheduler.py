"""Every existing plugin answers as kube-scheduler 1.36.2 did, in both forms."""

from __future__ import annotations

import pytest

from tests.vectors.harness import FAMILIES, Replay, scenarios


@pytest.mark.parametrize("family", FAMILIES)
def test_plugins_decide_as_recorded(family: str) -> None:
    found = []
    decisions = 0
    for scenario in scenarios(family):
        replay = Replay(scenario)
        for answer in scenario["expected"]:
            decisions += 1
            found += [
                f"{scenario['name']} {answer['pod']}: {difference}"
                for difference in replay.differences(answer)
            ]
    assert decisions == 800
    assert not found, f"{len(found)} differences, the first:\n" + "\n".join(found[:10])


def test_there_are_recordings() -> None:
    assert {"resources", "taints", "nodeaffinity", "ports", "images", "config"} <= set(FAMILIES)
