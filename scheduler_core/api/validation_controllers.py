"""Faults of Deployments, ReplicaSets and Jobs, in kube-apiserver's wording."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from .cluster_objects import Deployment, Job, ReplicaSet
from .errors import FieldError, InvalidObject, invalid, required, unsupported
from .pod import Pod
from .selectors import LabelSelector
from .validation_pod import pod_faults
from .validation_selectors import label_faults, label_selector_faults

__all__ = ["deployment_faults", "job_faults", "replica_set_faults"]

_NOT_NEGATIVE: Final = "must be greater than or equal to 0"
_MODES: Final = ("Indexed", "NonIndexed")


def deployment_faults(found: Deployment) -> Iterator[FieldError]:
    spec = _object(found.raw.get("spec"))
    yield from _number_faults(
        spec, "replicas", "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"
    )
    yield from _required_selector(found.selector, spec, "deployment")
    yield from _template_faults(spec, found.selector, ("Always",))
    strategy = _object(spec.get("strategy"))
    if strategy.get("type") not in (None, "", "Recreate", "RollingUpdate"):
        choices = ("Recreate", "RollingUpdate")
        yield "spec.strategy.type", unsupported(strategy["type"], choices)


def replica_set_faults(found: ReplicaSet) -> Iterator[FieldError]:
    """A ReplicaSet without a template is accepted: it stands for pods that are there already."""
    spec = _object(found.raw.get("spec"))
    yield from _number_faults(spec, "replicas", "minReadySeconds")
    yield from label_selector_faults("spec.selector", found.selector)
    if spec.get("template"):
        yield from _template_faults(spec, found.selector, ("Always",))


def job_faults(found: Job) -> Iterator[FieldError]:
    spec = _object(found.raw.get("spec"))
    yield from _number_faults(
        spec,
        "parallelism",
        "completions",
        "backoffLimit",
        "activeDeadlineSeconds",
        "ttlSecondsAfterFinished",
    )
    mode = spec.get("completionMode")
    if mode is not None and mode not in _MODES:
        yield "spec.completionMode", unsupported(mode, _MODES)
    if mode == "Indexed" and spec.get("completions") is None:
        yield "spec.completions", required("when completion mode is Indexed")
    yield from label_selector_faults("spec.selector", found.selector)
    yield from _template_faults(spec, found.selector, ("OnFailure", "Never"))


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _number_faults(spec: Mapping[str, Any], *fields: str) -> Iterator[FieldError]:
    for field in fields:
        value = spec.get(field)
        if isinstance(value, int) and not isinstance(value, bool) and value < 0:
            yield f"spec.{field}", invalid(value, _NOT_NEGATIVE)


def _required_selector(
    selector: LabelSelector | None, spec: Mapping[str, Any], what: str
) -> Iterator[FieldError]:
    if selector is None:
        yield "spec.selector", required()
    elif selector.is_empty:
        why = f"empty selector is invalid for {what}"
        yield "spec.selector", invalid(spec.get("selector"), why)
    yield from label_selector_faults("spec.selector", selector)


def _template_faults(
    spec: Mapping[str, Any], selector: LabelSelector | None, restart_policies: tuple[str, ...]
) -> Iterator[FieldError]:
    template = _object(spec.get("template"))
    labels = _object(_object(template.get("metadata")).get("labels"))
    if selector is not None and not selector.is_empty and not selector.matches(labels):
        path = "spec.template.metadata.labels"
        yield path, invalid(dict(labels), "`selector` does not match template `labels`")
    yield from label_faults("spec.template.metadata.labels", labels)
    of_pod = _object(template.get("spec"))
    try:
        pod = Pod.from_dict({"metadata": {"name": "template"}, "spec": of_pod})
    except InvalidObject as fault:
        yield f"spec.template.{fault.field_path}", fault.message
        return
    yield from ((f"spec.template.{path}", why) for path, why in pod_faults(pod))
    policy = of_pod.get("restartPolicy") or "Always"
    if policy not in restart_policies:
        yield "spec.template.spec.restartPolicy", unsupported(policy, restart_policies)
