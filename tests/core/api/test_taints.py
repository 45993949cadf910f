"""Which toleration matches which taint."""

from __future__ import annotations

import pytest

from scheduler_core.api import (
    TAINT_UNSCHEDULABLE,
    Taint,
    Toleration,
    find_untolerated,
)

TAINT = Taint("dedicated", "ml", "NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        pytest.param(Toleration("dedicated", "Equal", "ml", "NoSchedule"), True, id="equal"),
        pytest.param(Toleration("dedicated", "", "ml", "NoSchedule"), True, id="no operator"),
        pytest.param(Toleration("dedicated", "Equal", "web", "NoSchedule"), False, id="value"),
        pytest.param(Toleration("dedicated", "", "", "NoSchedule"), False, id="empty value"),
        pytest.param(Toleration("dedicated", "Exists"), True, id="exists, any effect"),
        pytest.param(Toleration("dedicated", "Exists", "x"), True, id="exists ignores the value"),
        pytest.param(Toleration("other", "Exists"), False, id="other key"),
        pytest.param(Toleration("", "Exists"), True, id="empty key, exists"),
        pytest.param(Toleration("", "Equal", "ml"), True, id="empty key, equal value"),
        pytest.param(Toleration("dedicated", "Exists", "", "NoExecute"), False, id="effect"),
        pytest.param(Toleration("dedicated", "Gt", "1"), False, id="Gt never matches"),
        pytest.param(Toleration("dedicated", "Lt", "ml"), False, id="Lt never matches"),
    ],
)
def test_toleration(toleration: Toleration, tolerated: bool) -> None:
    assert toleration.tolerates(TAINT) is tolerated


def test_the_first_untolerated_taint_with_a_scheduling_effect_is_found() -> None:
    soft = Taint("a", "", "PreferNoSchedule")
    evicting = Taint("b", "", "NoExecute")
    assert find_untolerated([soft, evicting, TAINT], []) == evicting
    assert find_untolerated([soft, evicting, TAINT], [Toleration("b", "Exists")]) == TAINT
    assert find_untolerated([soft], []) is None
    assert find_untolerated([soft], [], ("PreferNoSchedule",)) == soft
    assert find_untolerated([soft, TAINT], [Toleration("", "Exists")]) is None


def test_the_taint_of_a_cordoned_node() -> None:
    assert Toleration("node.kubernetes.io/unschedulable", "Exists").tolerates(TAINT_UNSCHEDULABLE)
    assert str(TAINT_UNSCHEDULABLE) == "node.kubernetes.io/unschedulable:NoSchedule"
    assert str(TAINT) == "dedicated=ml:NoSchedule"
