"""Faults of pods and nodes (kube-apiserver 1.36, ValidatePodUpdate, ValidatePodStatusUpdate,
ValidateNodeUpdate), beyond those that the store finds."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from scheduler_core.api.errors import FieldError, forbidden, invalid
from scheduler_core.api.syntax import check_dns_subdomain, check_label_key
from scheduler_core.ports import Json

from .pod_spec_rules import pod_spec_faults

__all__ = ["key_problems", "node_faults", "pod_faults"]

_ADDRESS: Final = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
_RANGE: Final = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
_CONTAINERS: Final = ("containers", "initContainers")
_NODE_AMOUNT: Final = re.compile(r"(status\.(?:capacity|allocatable))\[(.+)\]")
_TAINT: Final = re.compile(r"metadata\.taints\[(\d+)\](.*)")


def pod_faults(old: Json | None, new: Json, found: Sequence[FieldError]) -> Iterator[FieldError]:
    """`found`: the store's faults."""
    if old is None:
        yield from found
        yield from pod_spec_faults(new.get("spec") or {})
        return
    before, after = old.get("spec") or {}, new.get("spec") or {}
    if before != after:
        yield from _spec_changes(before, after, found)
    else:
        yield from found
    if old.get("status") != new.get("status"):
        yield from _status_faults(new.get("status") or {})


def _spec_changes(before: Json, after: Json, found: Sequence[FieldError]) -> Iterator[FieldError]:
    others = [fault for fault in found if fault[0] != "spec"]
    immutable = [fault for fault in found if fault[0] == "spec"]
    yield from others
    for field in _CONTAINERS:
        if len(before.get(field) or ()) != len(after.get(field) or ()):
            yield f"spec.{field}", forbidden("pod updates may not add or remove containers")
            return
    own = [*_deadline_faults(before, after), *_toleration_faults(before, after)]
    yield from own
    if not own:
        yield from immutable


def _deadline_faults(before: Json, after: Json) -> Iterator[FieldError]:
    path = "spec.activeDeadlineSeconds"
    was, wanted = before.get("activeDeadlineSeconds"), after.get("activeDeadlineSeconds")
    if was is None or was == wanted:
        return
    if wanted is None:
        yield path, invalid(None, "must not update from a positive integer to nil value")
    elif wanted > was:
        yield path, invalid(wanted, "must be less than or equal to previous value")


def _toleration_faults(before: Json, after: Json) -> Iterator[FieldError]:
    def known_as(toleration: Json) -> Json:
        return {key: value for key, value in toleration.items() if key != "tolerationSeconds"}

    now = [known_as(toleration) for toleration in after.get("tolerations") or ()]
    if any(known_as(toleration) not in now for toleration in before.get("tolerations") or ()):
        why = "existing toleration can not be modified except its tolerationSeconds"
        yield "spec.tolerations", forbidden(why)


def _status_faults(status: Json) -> Iterator[FieldError]:
    for index, condition in enumerate(status.get("conditions") or ()):
        for problem in key_problems(str(condition.get("type") or "")):
            path = f"status.conditions[{index}].Type"
            yield path, invalid(condition.get("type") or "", problem)
    name = status.get("nominatedNodeName") or ""
    problem = check_dns_subdomain(name) if name else ""
    if problem:
        yield "status.nominatedNodeName", invalid(name, problem)
    for index, entry in enumerate(status.get("podIPs") or ()):
        address = str(entry.get("ip") or "")
        if not _reads(ipaddress.ip_address, address):
            yield f"status.podIPs[{index}]", invalid(address, _ADDRESS)


def key_problems(key: str) -> Iterator[str]:
    """All that is wrong with a qualified name; an empty one is wrong in two ways."""
    problem = check_label_key(key)
    if problem:
        yield problem
    if not key:
        yield check_label_key("-")


def _reads(read: Any, text: str) -> bool:
    try:
        read(text)
    except ValueError:
        return False
    return True


def node_faults(old: Json | None, new: Json, found: Sequence[FieldError]) -> Iterator[FieldError]:
    """`found`: the store's faults."""
    spec = new.get("spec") or {}
    for path, why in found:
        yield from _node_fault(spec, path, why)
    for index, block in enumerate(spec.get("podCIDRs") or ()):
        if not _reads(ipaddress.ip_network, str(block)):
            yield f"spec.podCIDRs[{index}]", invalid(block, _RANGE)
    before = (old or {}).get("spec") or {}
    for field, called in (("podCIDRs", "podCIDR"), ("providerID", "providerID")):
        if before.get(field) and before[field] != spec.get(field):
            why = f'node updates may not change {called} except from "" to valid'
            yield f"spec.{field}", forbidden(why)


def _node_fault(spec: Json, path: str, why: str) -> Iterator[FieldError]:
    """One of the store's faults in the words of this door."""
    amount = _NODE_AMOUNT.fullmatch(path)
    if amount is not None:
        if "part must" not in why and "qualified name" not in why:  # any name may be reported
            yield f"{amount[1]}.{amount[2]}", why
        return
    taint = _TAINT.fullmatch(path)
    if taint is not None and taint[2] == ".key":
        key = str(spec["taints"][int(taint[1])].get("key") or "")
        yield from ((path, invalid(key, problem)) for problem in key_problems(key))
    elif taint is not None and not taint[2]:
        entry = spec["taints"][int(taint[1])]
        names = {"Key": "key", "Value": "value", "Effect": "effect"}
        parts = [f'"{go}":"{entry.get(field) or ""}"' for go, field in names.items()]
        shown = "{" + ",".join([*parts, '"TimeAdded":null']) + "}"
        yield path, f"Duplicate value: {shown}: taints must be unique by key and effect pair"
    else:
        yield path, why
