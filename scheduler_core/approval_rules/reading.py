"""ManualApprovalArgs as rules, with every fault and where it is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final
from zoneinfo import ZoneInfo

from scheduler_core.api.errors import (
    InvalidObject,
    duplicate,
    invalid,
    required,
    unsupported,
)
from scheduler_core.api.reader import Reader
from scheduler_core.api.selectors import LabelSelector, label_selector
from scheduler_core.approval_rules.policies import Demand, Policy, Rules
from scheduler_core.approval_rules.windows import DAYS, WeeklyWindow
from scheduler_core.records import Verdict

__all__ = ["LONGEST_WAIT", "read_rules"]

#: Seconds; kube-scheduler lets no pod wait longer at Permit.
LONGEST_WAIT: Final = 900
MOST_APPROVERS: Final = 10

_AT_DEADLINE: Final = {"Deny": Verdict.DENY, "Approve": Verdict.APPROVE}
_CLOCK: Final = re.compile(r"([01]\d|2[0-3]):([0-5]\d)|24:00", re.ASCII)
_MIDNIGHT: Final = 24 * 60


def read_rules(args: Mapping[str, Any]) -> tuple[Rules, list[InvalidObject]]:
    """The rules, and what is wrong with the arguments; where there are faults the rules are not to
    be used."""
    reader = Reader(args)
    demand = _read_demand(reader, Demand())
    gpus = reader.texts("gpuResources") if reader.has("gpuResources") else Rules().gpu_resources
    if not gpus:
        reader.fault("gpuResources", required("at least one resource"))
    rules = Rules(
        demand=demand,
        selector=_read_selector(reader),
        policies=tuple(_read_policy(item, demand) for item in reader.items("policies")),
        gpu_resources=gpus,
    )
    seen: set[str] = set()
    for index, policy in enumerate(rules.policies):
        if policy.name in seen:
            reader.fault(f"policies[{index}].name", duplicate(policy.name))
        seen.add(policy.name)
    return rules, reader.faults


def _read_selector(reader: Reader) -> LabelSelector | None:
    selector = label_selector(reader, "selector")
    if selector is not None and selector.error:
        reader.fault("selector", selector.error)
    return selector


def _read_policy(reader: Reader, inherited: Demand) -> Policy:
    name = reader.text("name")
    if not name:
        reader.fault("name", required("people read it"))
    policy = Policy(
        name=name,
        demand=_read_demand(reader, inherited),
        namespaces=reader.texts("namespaces"),
        selector=_read_selector(reader),
        min_priority=reader.optional_integer("minPriority"),
        max_priority=reader.optional_integer("maxPriority"),
        more_than_pods=_size(reader, "moreThanPods"),
        more_than_gpus=_size(reader, "moreThanGPUs"),
    )
    least, most = policy.min_priority, policy.max_priority
    if least is not None and most is not None and most < least:
        reader.fault("maxPriority", invalid(most, f"must be at least minPriority, {least}"))
    if reader.has("namespaces") and not policy.namespaces:
        reader.fault("namespaces", required("leave it out for all namespaces"))
    return policy


def _size(reader: Reader, field: str) -> int | None:
    found = reader.optional_integer(field)
    if found is not None and found < 0:
        reader.fault(field, invalid(found, "not in valid range [0, inf)"))
    return found


def _read_demand(reader: Reader, inherited: Demand) -> Demand:
    """What is not said is as ``inherited``."""
    demand = replace(
        inherited,
        approvers=_between(reader, "approvers", inherited.approvers, MOST_APPROVERS),
        timeout=_between(reader, "timeoutSeconds", inherited.timeout, LONGEST_WAIT),
        requester_may_approve=reader.boolean(
            "requesterMayApprove", inherited.requester_may_approve
        ),
    )
    if reader.has("approverGroups"):
        demand = replace(demand, groups=reader.texts("approverGroups"))
    if reader.has("atDeadline"):
        word = reader.text("atDeadline")
        if word not in _AT_DEADLINE:
            reader.fault("atDeadline", unsupported(word, tuple(_AT_DEADLINE)))
        demand = replace(demand, at_deadline=_AT_DEADLINE.get(word, Verdict.DENY))
    if reader.has("autoApprove"):
        windows = tuple(_read_window(item) for item in reader.items("autoApprove"))
        demand = replace(demand, windows=windows)
    return demand


def _between(reader: Reader, field: str, default: int, largest: int) -> int:
    found = reader.integer(field, default)
    if not 1 <= found <= largest:
        reader.fault(field, invalid(found, f"not in valid range [1, {largest}]"))
    return found


def _read_window(reader: Reader) -> WeeklyWindow:
    days = reader.texts("days") if reader.has("days") else DAYS
    for index, day in enumerate(days):
        if day not in DAYS:
            reader.fault(f"days[{index}]", unsupported(day, DAYS))
    if not days:
        reader.fault("days", required("leave it out for every day"))
    start, end = _clock(reader, "from", 0), _clock(reader, "to", _MIDNIGHT)
    if start == end:
        reader.fault("to", invalid(reader.text("to"), "must differ from the time it opens"))
    return WeeklyWindow(
        frozenset(DAYS.index(day) for day in days if day in DAYS), start, end, _zone(reader)
    )


def _clock(reader: Reader, field: str, default: int) -> int:
    text = reader.text(field)
    if not text:
        return default
    if not _CLOCK.fullmatch(text):
        reader.fault(field, invalid(text, 'must be a time such as "08:30"'))
        return default
    hours, _, minutes = text.partition(":")
    return int(hours) * 60 + int(minutes)


def _zone(reader: Reader) -> ZoneInfo:
    name = reader.text("timeZone") or "UTC"
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):  # not a name, not a file, not known
        text = 'must be a time zone such as "Europe/Berlin"'
        reader.fault("timeZone", invalid(name, text))
        return ZoneInfo("UTC")
