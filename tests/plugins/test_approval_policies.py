"""ManualApproval's policies: which pods, which terms, which times; and what is wrong with them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from scheduler_core.api import Pod
from scheduler_core.approval_rules import WeeklyWindow, next_opening, read_rules
from scheduler_core.config import InvalidConfiguration, load_configuration
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.errors import PluginConfigError
from scheduler_core.plugins.manual_approval import ManualApproval
from scheduler_core.plugins.manual_approval.plugin import TERMS
from scheduler_core.plugins.registry import in_tree_registry
from scheduler_core.records import ApprovalTerms, Verdict
from scheduler_core.testing.builders import make_pod, make_pod_group
from tests.plugins.support import FakeHandle


def terms(args: dict[str, Any], pod: Pod, *others: Any) -> ApprovalTerms | None:
    """What the pod has to wait for."""
    handle, state = FakeHandle(), CycleState()
    plugin = ManualApproval(args, handle)
    handle.watch(*others, pod)
    status, _ = plugin.permit(state, pod, "n")
    found = state.get(TERMS)
    assert status.is_wait is (found is not None)
    return found  # type: ignore[no-any-return]


def policy(**conditions: Any) -> dict[str, Any]:
    return {"policies": [{"name": "p", **conditions}]}


PLAIN = make_pod("x").namespace("team-a").priority(10).req(**{"nvidia.com/gpu": "4"})


@pytest.mark.parametrize(
    "args, reason",
    [
        pytest.param(policy(), "policy p: every pod", id="no-condition-is-every-pod"),
        pytest.param(policy(namespaces=["team-a"]), "policy p: namespace team-a", id="namespace"),
        pytest.param(policy(namespaces=["x", "team-*"]), "policy p: namespace team-a", id="glob"),
        pytest.param(policy(namespaces=["b"]), None, id="another-namespace"),
        pytest.param(policy(minPriority=10), "policy p: priority 10", id="from-that-priority-on"),
        pytest.param(policy(minPriority=11), None, id="below-the-priority"),
        pytest.param(policy(maxPriority=10), "policy p: priority 10", id="up-to-that-priority"),
        pytest.param(policy(maxPriority=9), None, id="above-the-priority"),
        pytest.param(policy(moreThanGPUs=3), "policy p: 4 GPUs, more than 3", id="more-gpus"),
        pytest.param(policy(moreThanGPUs=4), None, id="not-more-gpus"),
        pytest.param(policy(moreThanPods=1), None, id="a-lone-pod-is-one"),
        pytest.param(policy(selector={"matchLabels": {"a": "b"}}), None, id="other-labels"),
        pytest.param(
            {**policy(moreThanGPUs=0), "gpuResources": ["amd.com/gpu"]}, None, id="other-gpus"
        ),
        pytest.param(
            policy(namespaces=["team-a"], minPriority=11), None, id="every-condition-has-to-hold"
        ),
    ],
)
def test_which_pods_need_approval(args: dict[str, Any], reason: str | None) -> None:
    found = terms(args, PLAIN.obj())
    assert (found.reason if found else None) == reason


def test_the_first_policy_that_matches_sets_the_terms_and_inherits_the_rest() -> None:
    args = {
        "requesterMayApprove": False,
        "approverGroups": ["ops"],
        "policies": [
            {"name": "no", "namespaces": ["nowhere"], "approvers": 5},
            {"name": "gpus", "moreThanGPUs": 1, "approvers": 2, "atDeadline": "Approve"},
            {"name": "all", "approvers": 3},
        ],
    }
    assert terms(args, PLAIN.obj()) == ApprovalTerms(
        policy="gpus",
        reason="policy gpus: 4 GPUs, more than 1",
        approvers=2,
        requester_may_approve=False,
        groups=("ops",),
        at_deadline=Verdict.APPROVE,
    )


def test_a_pod_that_asks_itself_gets_the_terms_of_the_arguments() -> None:
    pod = make_pod("x").label({"kubesched.io/approval": "required"}).obj()
    found = terms({"approvers": 2, "policies": [{"name": "p", "namespaces": ["b"]}]}, pod)
    assert found is not None
    assert (found.policy, found.approvers, found.reason) == ("", 2, "it asks for it")


class TestGangSizes:
    def gang(self, **conditions: Any) -> ApprovalTerms | None:
        pods = [
            make_pod(f"m{n}").pod_group("g").req(**{"nvidia.com/gpu": "2"}).obj() for n in range(3)
        ]
        return terms(policy(**conditions), pods[0], make_pod_group("g", 5).obj(), *pods[1:])

    def test_pods_are_those_that_there_are_or_have_to_be(self) -> None:
        assert self.gang(moreThanPods=5) is None
        found = self.gang(moreThanPods=4)
        assert found is not None
        assert found.reason == "policy p: 5 pods, more than 4"

    def test_gpus_are_the_whole_gangs(self) -> None:
        assert self.gang(moreThanGPUs=5) is not None
        assert self.gang(moreThanGPUs=6) is None


# --- windows ------------------------------------------------------------------------------------


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def window(days: str, start: int, end: int, zone: str = "UTC") -> WeeklyWindow:
    names = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
    chosen = frozenset(names.index(day) for day in days.split())
    return WeeklyWindow(chosen, start * 60, end * 60, ZoneInfo(zone))


@pytest.mark.parametrize(
    "found, now, opens",
    [
        pytest.param(window("Mon", 8, 18), "2026-11-23T09:00", "2026-11-23T08:00", id="it-is-open"),
        pytest.param(
            window("Mon", 8, 18), "2026-11-23T18:00", "2026-11-30T08:00", id="closed-at-its-end"
        ),
        pytest.param(
            window("Mon", 8, 18), "2026-11-22T09:00", "2026-11-23T08:00", id="opens-tomorrow"
        ),
        pytest.param(
            window("Fri", 22, 6), "2026-11-28T05:00", "2026-11-27T22:00", id="past-midnight"
        ),
        pytest.param(
            window("Mon", 8, 18, "Europe/Berlin"),
            "2026-11-23T07:30",
            "2026-11-23T07:00",
            id="by-the-clocks-of-its-zone",
        ),
        pytest.param(
            window("Sun", 8, 18, "Europe/Berlin"),
            "2026-03-29T05:00",
            "2026-03-29T06:00",
            id="on-the-day-on-which-clocks-change",
        ),
        pytest.param(
            window("Mon", 0, 24), "2026-11-23T23:59", "2026-11-23T00:00", id="the-whole-day"
        ),
    ],
)
def test_windows(found: WeeklyWindow, now: str, opens: str) -> None:
    assert next_opening([found], at(now)) == at(opens)


def test_no_window_never_opens() -> None:
    assert next_opening([], 0.0) is None


# --- faults -------------------------------------------------------------------------------------

FAULTS = [
    pytest.param(
        {"approvers": 0}, "approvers", "Invalid value: 0: not in valid range [1, 10]", id="nobody"
    ),
    pytest.param(
        {"atDeadline": "Shrug"},
        "atDeadline",
        'Unsupported value: "Shrug": supported values: "Deny", "Approve"',
        id="no-such-end",
    ),
    pytest.param(
        {"policies": [{"approvers": 1}]},
        "policies[0].name",
        "Required value: people read it",
        id="no-name",
    ),
    pytest.param(
        {"policies": [{"name": "a"}, {"name": "a"}]},
        "policies[1].name",
        'Duplicate value: "a"',
        id="twice-the-same-name",
    ),
    pytest.param(
        {"policies": [{"name": "a", "moreThanPods": -1}]},
        "policies[0].moreThanPods",
        "Invalid value: -1: not in valid range [0, inf)",
        id="negative-size",
    ),
    pytest.param(
        {"policies": [{"name": "a", "minPriority": 2, "maxPriority": 1}]},
        "policies[0].maxPriority",
        "Invalid value: 1: must be at least minPriority, 2",
        id="no-priority-is-between",
    ),
    pytest.param(
        {"autoApprove": [{"days": ["Monday"]}]},
        "autoApprove[0].days[0]",
        'Unsupported value: "Monday": supported values: '
        '"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"',
        id="no-such-day",
    ),
    pytest.param(
        {"autoApprove": [{"from": "8:00"}]},
        "autoApprove[0].from",
        'Invalid value: "8:00": must be a time such as "08:30"',
        id="no-time",
    ),
    pytest.param(
        {"autoApprove": [{"from": "08:00", "to": "08:00"}]},
        "autoApprove[0].to",
        'Invalid value: "08:00": must differ from the time it opens',
        id="no-length",
    ),
    pytest.param(
        {"autoApprove": [{"timeZone": "Mars/Olympus"}]},
        "autoApprove[0].timeZone",
        'Invalid value: "Mars/Olympus": must be a time zone such as "Europe/Berlin"',
        id="no-such-zone",
    ),
]


@pytest.mark.parametrize("args, path, message", FAULTS)
def test_a_fault_names_its_field(args: dict[str, Any], path: str, message: str) -> None:
    with pytest.raises(PluginConfigError) as raised:
        ManualApproval(args, FakeHandle())
    assert (raised.value.path, raised.value.message) == (path, message)


@pytest.mark.parametrize("args, path, message", FAULTS)
def test_so_does_the_configuration(args: dict[str, Any], path: str, message: str) -> None:
    text = f"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - plugins: {{multiPoint: {{enabled: [{{name: ManualApproval}}]}}}}
    pluginConfig: [{{name: ManualApproval, args: {args}}}]
""".replace("'", '"')
    with pytest.raises(InvalidConfiguration) as raised:
        load_configuration(text, in_tree_registry())
    faults = [(fault.path, fault.message) for fault in raised.value.faults]
    assert (f"profiles[0].pluginConfig[0].args.{path}", message) in faults


def test_good_arguments_have_no_faults() -> None:
    rules, faults = read_rules({"policies": [{"name": "a", "autoApprove": [{"to": "24:00"}]}]})
    assert faults == []
    assert rules.policies[0].demand.windows[0].end == 24 * 60
