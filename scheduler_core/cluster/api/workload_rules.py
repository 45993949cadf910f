"""Faults of Deployments, ReplicaSets, StatefulSets and Jobs (kube-apiserver 1.36, pkg/apis/apps
and pkg/apis/batch validation), beyond those of their pods, which the store finds."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from scheduler_core.api.errors import FieldError, forbidden, invalid, required, unsupported
from scheduler_core.api.pod import Pod
from scheduler_core.api.reader import Reader
from scheduler_core.api.selectors import label_selector
from scheduler_core.api.syntax import check_dns_label, check_label_value
from scheduler_core.api.validation_pod import pod_faults
from scheduler_core.api.validation_selectors import label_faults, label_selector_faults
from scheduler_core.ports import Json

__all__ = [
    "deployment_faults",
    "int_or_percent_faults",
    "job_faults",
    "not_negative",
    "replica_set_faults",
    "stateful_set_faults",
]

_NOT_NEGATIVE: Final = "must be greater than or equal to 0"
_PERCENT: Final = re.compile(r"[0-9]+%")
_NO_PERCENT: Final = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or "
    "'93%', regex used for validation is '[0-9]+%')"
)
_MISMATCH: Final = "`selector` does not match template `labels`"
_TEMPLATE: Final = "spec.template"
_MOST_INDEXED: Final = 100_000


def not_negative(of: Json, path: str, fields: Sequence[str]) -> Iterator[FieldError]:
    """Numbers that are below 0."""
    for field in fields:
        value = of.get(field)
        if isinstance(value, int) and value < 0:
            yield f"{path}.{field}", invalid(value, _NOT_NEGATIVE)


def int_or_percent_faults(path: str, value: Any) -> Iterator[FieldError]:
    """A number that is not negative, or a percentage."""
    if isinstance(value, str) and not _PERCENT.fullmatch(value):
        yield path, invalid(value, _NO_PERCENT)
    elif isinstance(value, int) and value < 0:
        yield path, invalid(value, _NOT_NEGATIVE)


def _percent_above_100(path: str, value: Any) -> Iterator[FieldError]:
    if isinstance(value, str) and _PERCENT.fullmatch(value) and int(value[:-1]) > 100:
        yield path, invalid(value, "must not be greater than 100%")


# -- what they have in common --------------------------------------------------------------------


def _selector_faults(spec: Json, empty: str, unreadable: str) -> Iterator[FieldError]:
    raw = spec.get("selector")
    if raw is None:
        yield "spec.selector", required()
        return
    selector = label_selector(Reader(spec), "selector")
    yield from label_selector_faults("spec.selector", selector)
    if not (raw.get("matchLabels") or raw.get("matchExpressions")):
        yield "spec.selector", invalid(raw, empty)
    elif any(True for _ in label_selector_faults("spec.selector", selector)):
        yield "spec.selector", f"Invalid value: {_shown(raw)}{unreadable}"


def _shown(value: Any) -> str:
    return invalid(value, "").removeprefix("Invalid value: ").removesuffix(": ")


def _template_faults(spec: Json, found: Sequence[FieldError]) -> Iterator[FieldError]:
    """`found`: what the store says of the pods."""
    template = spec.get("template") or {}
    raw, labels = spec.get("selector"), (template.get("metadata") or {}).get("labels")
    selector = label_selector(Reader(spec), "selector")
    wrong = any(True for _ in label_selector_faults("", selector))
    chooses = raw is None or (selector is not None and not selector.is_empty)
    matches = selector is not None and selector.matches(labels or {})
    if chooses and not matches and not wrong:
        yield f"{_TEMPLATE}.metadata.labels", invalid(labels, _MISMATCH)
    yield from label_faults(f"{_TEMPLATE}.labels", labels or {})
    yield from (
        fault
        for fault in found
        if fault[0].startswith(f"{_TEMPLATE}.spec") and not fault[0].endswith(".restartPolicy")
    )


def _always_faults(spec: Json, kind: str) -> Iterator[FieldError]:
    pod = (spec.get("template") or {}).get("spec") or {}
    policy = pod.get("restartPolicy") or "Always"
    if policy != "Always":
        yield f"{_TEMPLATE}.spec.restartPolicy", unsupported(policy, ("Always",))
    if pod.get("activeDeadlineSeconds") is not None:
        why = f"activeDeadlineSeconds in {kind} is not Supported"
        yield f"{_TEMPLATE}.spec.activeDeadlineSeconds", forbidden(why)


def _counts(status: Json, parts: Sequence[str]) -> Iterator[FieldError]:
    """Counts of a status that are negative, or more than there are replicas."""
    yield from not_negative(status, "status", ("replicas", *parts))
    for part in parts:
        value = status.get(part) or 0
        if value > (status.get("replicas") or 0):
            yield f"status.{part}", invalid(value, "cannot be greater than status.replicas")


def _immutable(old: Json | None, new: Json, fields: Sequence[str]) -> Iterator[FieldError]:
    before, after = (old or {}).get("spec") or {}, new.get("spec") or {}
    for field in fields if old is not None else ():
        if before.get(field) != after.get(field):
            yield f"spec.{field}", invalid(after.get(field), "field is immutable")


# -- the kinds -----------------------------------------------------------------------------------


def deployment_faults(
    old: Json | None, new: Json, found: Sequence[FieldError]
) -> Iterator[FieldError]:
    spec = new.get("spec") or {}
    yield from not_negative(spec, "spec", ("replicas",))
    yield from _selector_faults(
        spec, "empty selector is invalid for deployment", ": invalid label selector"
    )
    yield from _template_faults(spec, found)
    yield from _always_faults(spec, "ReplicaSet")
    yield from _strategy_faults(spec.get("strategy") or {})
    yield from not_negative(spec, "spec", ("minReadySeconds", "revisionHistoryLimit"))
    deadline, ready = spec.get("progressDeadlineSeconds"), spec.get("minReadySeconds") or 0
    if isinstance(deadline, int):
        yield from not_negative(spec, "spec", ("progressDeadlineSeconds",))
        if deadline <= ready:
            why = "must be greater than minReadySeconds"
            yield "spec.progressDeadlineSeconds", invalid(deadline, why)
    yield from _immutable(old, new, ("selector",))
    if old is not None and new.get("status") != old.get("status"):
        counts = ("updatedReplicas", "readyReplicas", "availableReplicas")
        yield from _counts(new.get("status") or {}, counts)


def _strategy_faults(strategy: Json) -> Iterator[FieldError]:
    kind, rolling = strategy.get("type"), strategy.get("rollingUpdate")
    if kind not in ("Recreate", "RollingUpdate"):
        shown = {"Type": kind or "", "RollingUpdate": rolling}
        yield "spec.strategy", _unsupported_in_order(shown, ("Recreate", "RollingUpdate"))
        return
    if kind == "Recreate":
        if rolling is not None:
            why = "may not be specified when strategy `type` is 'Recreate'"
            yield "spec.strategy.rollingUpdate", forbidden(why)
        return
    path = "spec.strategy.rollingUpdate"
    away, surge = (rolling or {}).get("maxUnavailable"), (rolling or {}).get("maxSurge")
    yield from int_or_percent_faults(f"{path}.maxUnavailable", away)
    yield from int_or_percent_faults(f"{path}.maxSurge", surge)
    if _is_none(away) and _is_none(surge):
        yield f"{path}.maxUnavailable", invalid(away, "may not be 0 when `maxSurge` is 0")
    yield from _percent_above_100(f"{path}.maxUnavailable", away)


def _is_none(value: Any) -> bool:
    return value in (0, "0%")


def _unsupported_in_order(value: Json, supported: Sequence[str]) -> str:
    """`unsupported`, with the parts of the value in the order of the server's struct."""
    parts = ",".join(f'"{key}":{_shown(part)}' for key, part in value.items())
    choices = ", ".join(f'"{choice}"' for choice in supported)
    return f"Unsupported value: {{{parts}}}: supported values: {choices}"


def replica_set_faults(
    old: Json | None, new: Json, found: Sequence[FieldError]
) -> Iterator[FieldError]:
    spec = new.get("spec") or {}
    yield from not_negative(spec, "spec", ("replicas", "minReadySeconds"))
    yield from _selector_faults(
        spec, "empty selector is invalid for deployment", ": invalid label selector"
    )
    yield from _template_faults(spec, found)
    yield from _always_faults(spec, "ReplicaSet")
    yield from _immutable(old, new, ("selector",))
    if old is not None and new.get("status") != old.get("status"):
        counts = ("fullyLabeledReplicas", "readyReplicas", "availableReplicas")
        yield from _counts(new.get("status") or {}, counts)


def stateful_set_faults(
    old: Json | None, new: Json, found: Sequence[FieldError]
) -> Iterator[FieldError]:
    """The store says nothing of the pods of a StatefulSet: nobody makes them."""
    spec = new.get("spec") or {}
    policy = spec.get("podManagementPolicy")
    if policy not in ("OrderedReady", "Parallel"):
        yield "spec.podManagementPolicy", invalid(policy, "must be 'OrderedReady' or 'Parallel'")
    strategy = spec.get("updateStrategy") or {}
    if strategy.get("type") not in ("RollingUpdate", "OnDelete"):
        parts = f'"Type":{_shown(strategy.get("type") or "")},"RollingUpdate":null'
        why = "must be 'RollingUpdate' or 'OnDelete'"
        yield "spec.updateStrategy", f"Invalid value: {{{parts}}}: {why}"
    path = "spec.updateStrategy.rollingUpdate"
    yield from not_negative(strategy.get("rollingUpdate") or {}, path, ("partition",))
    yield from _retention_faults(spec.get("persistentVolumeClaimRetentionPolicy") or {})
    yield from not_negative(spec, "spec", ("replicas", "minReadySeconds"))
    yield from not_negative(spec.get("ordinals") or {}, "spec.ordinals", ("start",))
    yield from _selector_faults(spec, "empty selector is invalid for statefulset", "")
    yield from _template_faults(spec, _pod_faults(spec))
    yield from _always_faults(spec, "StatefulSet")
    service = spec.get("serviceName") or ""
    problem = check_dns_label(service) if service and old is None else ""
    if problem:
        yield "spec.serviceName", invalid(service, problem)
    yield from _immutable(old, new, ("selector", "podManagementPolicy", "serviceName"))


def _pod_faults(spec: Json) -> list[FieldError]:
    reader = Reader({**(spec.get("template") or {}), "metadata": {"name": "x"}})
    pod = Pod.read(reader)
    unreadable = [(fault.field_path, fault.message) for fault in reader.faults]
    found = unreadable or list(pod_faults(pod))
    return [(f"{_TEMPLATE}.{path}", why) for path, why in found]


def _retention_faults(policy: Json) -> Iterator[FieldError]:
    for field in ("whenDeleted", "whenScaled"):
        value = policy.get(field, "Retain")
        if value not in ("Retain", "Delete"):
            path = f"spec.persistentVolumeClaimRetentionPolicy.{field}"
            yield path, unsupported(value, ("Retain", "Delete"))


# -- jobs ----------------------------------------------------------------------------------------

_JOB_NUMBERS: Final = (
    "parallelism", "completions", "activeDeadlineSeconds", "backoffLimit",
    "ttlSecondsAfterFinished", "backoffLimitPerIndex",
)  # fmt: skip
_JOB_COUNTS: Final = ("active", "succeeded", "failed")


def job_faults(old: Json | None, new: Json, found: Sequence[FieldError]) -> Iterator[FieldError]:
    spec = new.get("spec") or {}
    yield from not_negative(spec, "spec", _JOB_NUMBERS)
    if old is None and spec.get("selector") is not None and not spec.get("manualSelector"):
        yield "spec.selector", invalid(spec["selector"], "`selector` not auto-generated")
    yield from _mode_faults(spec)
    replacing = spec.get("podReplacementPolicy")
    if replacing not in (None, "Failed", "TerminatingOrFailed"):
        choices = ("Failed", "TerminatingOrFailed")
        yield "spec.podReplacementPolicy", unsupported(replacing, choices)
    yield from _job_template_faults(old, new, found)
    yield from _immutable(old, new, ("selector", "completionMode"))
    yield from _completion_changes(old, new)
    if old is not None and new.get("status") != old.get("status"):
        yield from not_negative(new.get("status") or {}, "status", _JOB_COUNTS)


def _mode_faults(spec: Json) -> Iterator[FieldError]:
    mode = spec.get("completionMode")
    if mode not in (None, "NonIndexed", "Indexed"):
        yield "spec.completionMode", unsupported(mode, ("NonIndexed", "Indexed"))
    if mode == "Indexed":
        if spec.get("completions") is None:
            yield "spec.completions", required("when completion mode is Indexed")
        if (spec.get("parallelism") or 0) > _MOST_INDEXED:
            why = f"must be less than or equal to {_MOST_INDEXED} when completion mode is Indexed"
            yield "spec.parallelism", invalid(spec["parallelism"], why)
    elif spec.get("backoffLimitPerIndex") is not None:
        why = "requires indexed completion mode"
        yield "spec.backoffLimitPerIndex", invalid(spec["backoffLimitPerIndex"], why)


def _job_template_faults(
    old: Json | None, new: Json, found: Sequence[FieldError]
) -> Iterator[FieldError]:
    spec = new.get("spec") or {}
    template = spec.get("template") or {}
    labels = (template.get("metadata") or {}).get("labels")
    if spec.get("manualSelector") and spec.get("selector") is None:
        yield "spec.selector", required()
        yield f"{_TEMPLATE}.metadata.labels", invalid(labels, _MISMATCH)
    elif spec.get("selector") is not None:
        selector = label_selector(Reader(spec), "selector")
        if selector is not None and not selector.matches(labels or {}):
            yield f"{_TEMPLATE}.metadata.labels", invalid(labels, _MISMATCH)
    name = str(new["metadata"].get("name") or "")
    problem = check_label_value(name) if old is None and not spec.get("manualSelector") else ""
    if problem.startswith("must be no more"):
        yield f"{_TEMPLATE}.labels", invalid(name, problem)
    yield from label_faults(f"{_TEMPLATE}.labels", labels or {})
    of_pods = [fault for fault in found if fault[0].startswith(f"{_TEMPLATE}.spec")]
    yield from (fault for fault in of_pods if not fault[0].endswith(".restartPolicy"))
    policy = (template.get("spec") or {}).get("restartPolicy") or "Always"
    if policy == "Always":
        yield f"{_TEMPLATE}.spec.restartPolicy", required('valid values: "OnFailure", "Never"')
    elif policy not in ("OnFailure", "Never"):
        yield f"{_TEMPLATE}.spec.restartPolicy", unsupported(policy, ("OnFailure", "Never"))


def _completion_changes(old: Json | None, new: Json) -> Iterator[FieldError]:
    """An indexed job may be made larger or smaller together with its parallelism."""
    if old is None:
        return
    before, after = old.get("spec") or {}, new.get("spec") or {}
    wanted = after.get("completions")
    if wanted == before.get("completions"):
        return
    elastic = after.get("completionMode") == "Indexed" and wanted == after.get("parallelism")
    if not elastic:
        yield "spec.completions", invalid(wanted, "field is immutable")
