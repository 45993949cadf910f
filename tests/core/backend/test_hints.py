"""Which events reach which plugins, and what a hint's answer means (4.5)."""

from __future__ import annotations

import pytest

from scheduler_core.backend.queue.hints import QueueingHints, Strategy
from scheduler_core.framework.events import (
    FORCE_ACTIVATE,
    UNSCHEDULABLE_TIMEOUT,
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
)
from scheduler_core.framework.types import QueuedPodInfo
from scheduler_core.testing.builders import make_node, make_pod
from tests.core.backend.harness import PROFILE, always, event, registered

A, R = ActionType, EventResource


def info_of(*plugins: str, pending: tuple[str, ...] = (), profile: str = PROFILE) -> QueuedPodInfo:
    info = QueuedPodInfo(make_pod("p").scheduler_name(profile).obj())
    info.unschedulable_plugins = set(plugins)
    info.pending_plugins = set(pending)
    return info


def hints_of(**plugins: list[ClusterEventWithHint]) -> QueueingHints:
    return QueueingHints({PROFILE: plugins})


@pytest.mark.parametrize(
    "mine, incoming, matched",
    [
        pytest.param((R.NODE, A.ADD), (R.NODE, A.ADD), True, id="same"),
        pytest.param((R.NODE, A.ADD), (R.NODE, A.DELETE), False, id="other-action"),
        pytest.param((R.NODE, A.ADD), (R.POD, A.ADD), False, id="other-resource"),
        pytest.param((R.POD, A.ADD), (R.ASSIGNED_POD, A.ADD), True, id="Pod-takes-AssignedPod"),
        pytest.param(
            (R.POD, A.UPDATE_POD_LABEL),
            (R.UNSCHEDULABLE_POD, A.UPDATE_POD_LABEL),
            True,
            id="Pod-takes-UnschedulablePod",
        ),
        pytest.param((R.ASSIGNED_POD, A.ADD), (R.POD, A.ADD), False, id="AssignedPod-not-Pod"),
        pytest.param((R.WILDCARD, A.ADD), (R.NODE, A.ADD), True, id="any-resource"),
        pytest.param((R.WILDCARD, A.ADD), (R.NODE, A.DELETE), False, id="any-resource-one-action"),
        pytest.param((R.WILDCARD, A.ALL), (R.NODE, A.DELETE), True, id="everything"),
        pytest.param(
            (R.NODE, A.ADD | A.UPDATE_NODE_LABEL), (R.NODE, A.UPDATE_NODE_LABEL), True, id="one-bit"
        ),
        pytest.param(
            (R.NODE, A.UPDATE_NODE_LABEL),
            (R.NODE, A.UPDATE_NODE_LABEL | A.UPDATE_NODE_TAINT),
            False,
            id="bits-above-the-registered-ones",
        ),
        pytest.param((R.NODE, A.UPDATE), (R.NODE, A.UPDATE_NODE_TAINT), True, id="Update-is-all"),
        pytest.param(
            (R.CSI_NODE, A.UPDATE), (R.CSI_NODE, A.UPDATE), True, id="plain-update-of-other-kinds"
        ),
        pytest.param(
            (R.POD, A.UPDATE_POD_LABEL),
            (R.UNSCHEDULABLE_POD, A.UPDATE_OTHER),
            False,
            id="plain-pod-update-is-not-a-label-change",
        ),
        pytest.param(
            (R.POD, A.UPDATE), (R.UNSCHEDULABLE_POD, A.UPDATE_OTHER), True, id="plain-pod-update"
        ),
        pytest.param((R.NODE, A.ALL), (R.WILDCARD, A.ALL), False, id="wildcard-is-no-node-event"),
    ],
)
def test_matching(
    mine: tuple[EventResource, ActionType],
    incoming: tuple[EventResource, ActionType],
    matched: bool,
) -> None:
    hints = hints_of(P=[registered(*mine)])
    assert hints.plugins_interested(event(*incoming)) == ({"P"} if matched else frozenset())
    assert hints.interests(PROFILE, "P", event(*incoming)) is matched


def raising(pod, old, new):  # type: ignore[no-untyped-def]
    raise RuntimeError("boom")


NODE_ADD = event(R.NODE, A.ADD)
QUEUE, SKIP = always(QueueingHint.QUEUE), always(QueueingHint.SKIP)


@pytest.mark.parametrize(
    "hint, info, strategy",
    [
        pytest.param(SKIP, info_of("P"), Strategy.SKIP, id="skip-stays"),
        pytest.param(QUEUE, info_of("P"), Strategy.AFTER_BACKOFF, id="queue"),
        pytest.param(None, info_of("P"), Strategy.AFTER_BACKOFF, id="no-hint-always-queues"),
        pytest.param(raising, info_of("P"), Strategy.AFTER_BACKOFF, id="a-hint-that-raises-queues"),
        pytest.param(QUEUE, info_of("Q"), Strategy.SKIP, id="another-plugin-rejected-it"),
        pytest.param(QUEUE, info_of(pending=("P",)), Strategy.IMMEDIATELY, id="pending-plugin"),
        pytest.param(SKIP, info_of(pending=("P",)), Strategy.SKIP, id="pending-plugin-skips"),
        pytest.param(
            QUEUE, info_of("P", pending=("P",)), Strategy.IMMEDIATELY, id="pending-beats-the-rest"
        ),
        pytest.param(SKIP, info_of(), Strategy.AFTER_BACKOFF, id="no-plugin-recorded"),
        pytest.param(
            SKIP, info_of("P", profile="other"), Strategy.AFTER_BACKOFF, id="unknown-profile"
        ),
    ],
)
def test_strategy(hint, info: QueuedPodInfo, strategy: Strategy) -> None:  # type: ignore[no-untyped-def]
    hints = hints_of(P=[registered(R.NODE, A.ADD, hint)])
    assert hints.strategy(info, NODE_ADD, None, make_node("n").obj()) is strategy


def test_a_later_pending_plugin_beats_an_earlier_queue() -> None:
    hints = hints_of(P=[registered(R.NODE, A.ADD, QUEUE)], Q=[registered(R.NODE, A.ADD, QUEUE)])
    assert hints.strategy(info_of("P", pending=("Q",)), NODE_ADD, None, None) is (
        Strategy.IMMEDIATELY
    )


def test_one_queue_among_skips_is_enough() -> None:
    hints = hints_of(P=[registered(R.NODE, A.ADD, SKIP)], Q=[registered(R.NODE, A.ADD, QUEUE)])
    assert hints.strategy(info_of("P", "Q"), NODE_ADD, None, None) is Strategy.AFTER_BACKOFF


def test_a_hint_gets_the_waiting_pod_and_both_objects() -> None:
    seen = []
    hints = hints_of(
        P=[registered(R.NODE, A.UPDATE_NODE_LABEL, lambda *a: seen.append(a) or QueueingHint.SKIP)]
    )
    info = info_of("P")
    old, new = make_node("n").obj(), make_node("n").label(a="b").obj()
    hints.strategy(info, event(R.NODE, A.UPDATE_NODE_LABEL), old, new)
    assert seen == [(info.pod, old, new)]


def test_a_raising_hint_is_logged_with_plugin_and_event(caplog: pytest.LogCaptureFixture) -> None:
    hints_of(P=[registered(R.NODE, A.ADD, raising)]).strategy(info_of("P"), NODE_ADD, None, None)
    assert "queueing hint of plugin P for NodeAdd raised" in caplog.text


@pytest.mark.parametrize(
    "wildcard, target, strategy",
    [
        pytest.param(UNSCHEDULABLE_TIMEOUT, None, Strategy.AFTER_BACKOFF, id="timeout"),
        pytest.param(FORCE_ACTIVATE, "p", Strategy.AFTER_BACKOFF, id="aimed-at-this-pod"),
        pytest.param(FORCE_ACTIVATE, "other", Strategy.SKIP, id="aimed-at-another-pod"),
    ],
)
def test_wildcard_events(wildcard: ClusterEvent, target: str | None, strategy: Strategy) -> None:
    hints = hints_of(P=[registered(R.NODE, A.ADD, SKIP)])
    pod = None if target is None else make_pod(target).obj()
    assert hints.strategy(info_of("P"), wildcard, None, pod) is strategy


@pytest.mark.parametrize(
    "actions, added",
    [
        pytest.param([A.ADD], True, id="Add-alone-gets-it"),
        pytest.param([A.ADD | A.UPDATE_NODE_LABEL], True, id="Add-with-label-gets-it"),
        pytest.param([A.ADD | A.UPDATE_NODE_TAINT], False, id="has-it"),
        pytest.param([A.ADD, A.UPDATE_NODE_TAINT], False, id="has-it-apart"),
        pytest.param([A.UPDATE_NODE_LABEL], False, id="no-Add"),
    ],
)
def test_node_add_brings_node_taint_with_always_queue(
    actions: list[ActionType], added: bool
) -> None:
    hints = hints_of(P=[registered(R.NODE, action, SKIP) for action in actions])
    taint = event(R.NODE, A.UPDATE_NODE_TAINT)
    found = hints.strategy(info_of("P"), taint, None, None)
    assert found is (Strategy.AFTER_BACKOFF if added else Strategy.SKIP)


def test_profiles_have_hints_of_their_own() -> None:
    hints = QueueingHints(
        {
            "one": {"P": [registered(R.NODE, A.ADD, SKIP)]},
            "two": {"P": [registered(R.NODE, A.ADD, QUEUE)]},
        }
    )
    assert hints.strategy(info_of("P", profile="one"), NODE_ADD, None, None) is Strategy.SKIP
    assert (
        hints.strategy(info_of("P", profile="two"), NODE_ADD, None, None) is Strategy.AFTER_BACKOFF
    )
