"""The selector that a Job gets when it says none (kube-apiserver 1.36, job strategy)."""

from __future__ import annotations

from scheduler_core.ports import Json

from .objects import name_of, uid_of

__all__ = ["give_selector"]

_UID_LABEL = "batch.kubernetes.io/controller-uid"


def give_selector(job: Json) -> None:
    """Tell the job's pods from all others by its uid; `job` is changed.

    A Job with `manualSelector: true` keeps what it says.
    """
    spec = job["spec"]
    if spec.get("manualSelector"):
        return
    uid, name = uid_of(job), name_of(job)
    metadata = spec.setdefault("template", {}).setdefault("metadata", {})
    labels = metadata.get("labels") or {}
    metadata["labels"] = {
        **labels,
        _UID_LABEL: uid,
        "controller-uid": uid,
        "batch.kubernetes.io/job-name": name,
        "job-name": name,
    }
    selector = spec.get("selector") or {}
    matched = {**(selector.get("matchLabels") or {}), _UID_LABEL: uid}
    spec["selector"] = {**selector, "matchLabels": matched}
