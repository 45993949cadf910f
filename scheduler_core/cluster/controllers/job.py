"""Job: runs pods until enough have succeeded (kube-controller-manager 1.36, job controller)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from scheduler_core.api.reader import parse_time
from scheduler_core.ports import ApiError, Json, WatchEvent

from ..objects import key_of, name_of, namespace_of, timestamp, uid_of
from ..requests import Patch
from ..sandbox import ActingView
from .index import Index, controller_of
from .indexes import missing_indexes, numbers_of, text_of
from .pods import (
    has_ended,
    is_active,
    is_leaving,
    is_ready,
    pod_from_template,
    set_condition,
)
from .telling import tell

__all__ = ["JobController"]

#: keeps an ended pod until it has been counted
TRACKING: Final = "batch.kubernetes.io/job-tracking"
INDEX: Final = "batch.kubernetes.io/job-completion-index"
_FIRST_BACKOFF: Final = 10.0
_LONGEST_BACKOFF: Final = 600.0
_BURST: Final = 500


@dataclass(frozen=True, slots=True)
class _End:
    """Why a job is over: the condition that says so."""

    kind: str  # Complete or Failed
    reason: str
    message: str


class JobController:
    """Makes a job's pods, counts those that ended, and says when it is over.

    An ended pod is counted once: the count and the removal of the finalizer that keeps the pod are
    one request, which the reference does in two (`uncountedTerminatedPods`).
    """

    actor = "job-controller"
    kinds: Sequence[str] = ("Job", "Pod")

    def __init__(self, index: Index) -> None:
        self._index = index

    def affected(self, event: WatchEvent, before: Json | None) -> Iterable[str]:
        if event.kind == "Job":
            return (key_of(namespace_of(event.object), name_of(event.object)),)
        owner = controller_of(event.object)
        if owner is None or owner.get("kind") != "Job":
            return ()
        return (key_of(namespace_of(event.object), str(owner.get("name"))),)

    def reconcile(self, view: ActingView, key: str, now: float) -> float | None:
        job = self._index.get("Job", key)
        if job is None or is_leaving(job):
            return None
        pods = self._index.controlled_by(job, "Pod")
        if _is_over(job):
            self._release(view, pods)
            return self._remove_when_due(view, job, now)
        return self._work_on(view, job, pods, now)

    # -- a running job ---------------------------------------------------------------------------

    def _work_on(self, view: ActingView, job: Json, pods: list[Json], now: float) -> float | None:
        status = _counted(job, pods)
        active = [pod for pod in pods if is_active(pod)]
        end = _end_of(job, status, len(active), now)
        suspended = bool(job["spec"].get("suspend")) and end is None
        again = None
        if end is not None or suspended:
            self._delete(view, job, active)
            active = []
        else:
            created, again = self._fill(view, job, pods, active, status, now)
            active = [*active, *created]
        status = _with_progress(job, status, pods, active, suspended, end, now)
        self._keep(view, job, status, pods)
        if end is not None:
            tell(
                view,
                job,
                "Completed" if end.kind == "Complete" else end.reason,
                end.message,
                warning=end.kind == "Failed",
            )
            ttl = job["spec"].get("ttlSecondsAfterFinished")
            return None if ttl is None else now + int(ttl)
        due = _deadline(job, status)
        return min((at for at in (again, due) if at is not None), default=None)

    def _fill(
        self,
        view: ActingView,
        job: Json,
        pods: list[Json],
        active: list[Json],
        status: Json,
        now: float,
    ) -> tuple[list[Json], float | None]:
        """Bring the number of active pods to what is wanted."""
        wanted = _wanted_active(job, status, len(active))
        if len(active) > wanted:
            surplus = sorted(active, key=lambda pod: (is_ready(pod), name_of(pod)))
            self._delete(view, job, surplus[: len(active) - wanted])
            return [], None
        missing = min(wanted - len(active), _BURST)
        if not missing:
            return [], None
        not_before = _backoff_until(pods, status)
        if not_before is not None and now < not_before:
            return [], not_before
        return self._create(view, job, missing, active, status), None

    def _create(
        self, view: ActingView, job: Json, count: int, active: list[Json], status: Json
    ) -> list[Json]:
        template = job["spec"].get("template") or {}
        made = []
        for position in self._positions(job, count, active, status):
            body = pod_from_template(job, template, finalizers=(TRACKING,))
            if position is not None:
                _give_index(body, job, position)
            try:
                pod = view.create("Pod", body)
            except ApiError as refusal:
                if refusal.code < 500:
                    note = f"Error creating: {refusal}"
                    tell(view, job, "FailedCreate", note, warning=True)
                raise
            tell(view, job, "SuccessfulCreate", f"Created pod: {name_of(pod)}")
            made.append(pod)
        return made

    def _positions(
        self, job: Json, count: int, active: list[Json], status: Json
    ) -> Sequence[int | None]:
        if job["spec"].get("completionMode") != "Indexed":
            return [None] * count
        taken = {_index_of(pod) for pod in active} | numbers_of(status.get("completedIndexes"))
        return missing_indexes(int(job["spec"].get("completions") or 0), taken, count)

    def _delete(self, view: ActingView, job: Json, pods: list[Json]) -> None:
        for pod in pods:
            self._drop_finalizer(view, pod)
            try:
                view.delete("Pod", namespace_of(pod), name_of(pod), uid=uid_of(pod))
            except ApiError as refusal:
                if refusal.code not in (404, 409):
                    raise
                continue
            tell(view, job, "SuccessfulDelete", f"Deleted pod: {name_of(pod)}")

    def _keep(self, view: ActingView, job: Json, status: Json, pods: list[Json]) -> None:
        """Write the counts and let go of the pods that are in them, both or none of it."""
        patches = [
            Patch("Pod", pod, {"metadata": {"finalizers": _without_tracking(pod)}})
            for pod in pods
            if _to_be_counted(pod)
        ]
        old = job.get("status") or {}
        if status != old:
            gone = {key: None for key in old if key not in status}
            patches.append(Patch("Job", job, {"status": {**status, **gone}}, "status"))
        if patches:
            view.patch_all(patches)

    def _release(self, view: ActingView, pods: list[Json]) -> None:
        for pod in pods:
            self._drop_finalizer(view, pod)

    def _drop_finalizer(self, view: ActingView, pod: Json) -> None:
        """For a pod that is not to be counted."""
        if not _is_tracked(pod):
            return
        patch = {"metadata": {"uid": uid_of(pod), "finalizers": _without_tracking(pod)}}
        try:
            view.patch("Pod", namespace_of(pod), name_of(pod), patch)
        except ApiError as refusal:
            if refusal.code not in (404, 409):
                raise

    def _remove_when_due(self, view: ActingView, job: Json, now: float) -> float | None:
        ttl = job["spec"].get("ttlSecondsAfterFinished")
        if ttl is None:
            return None
        due = _ended_at(job) + int(ttl)
        if now < due:
            return due
        view.delete("Job", namespace_of(job), name_of(job), uid=uid_of(job))
        return None


def _is_over(job: Json) -> bool:
    conditions = (job.get("status") or {}).get("conditions") or ()
    ends = (c["status"] for c in conditions if c.get("type") in ("Complete", "Failed"))
    return "True" in ends


def _ended_at(job: Json) -> float:
    conditions = (job.get("status") or {}).get("conditions") or ()
    ends = [c for c in conditions if c.get("type") in ("Complete", "Failed")]
    return parse_time(ends[0]["lastTransitionTime"])


def _parallelism(job: Json) -> int:
    return int(job["spec"].get("parallelism", 1))


def _completions(job: Json) -> int | None:
    found = job["spec"].get("completions")
    return None if found is None else int(found)


def _wanted_active(job: Json, status: Json, active: int) -> int:
    """How many pods should be at work now."""
    completions, succeeded = _completions(job), int(status.get("succeeded") or 0)
    if completions is None:
        # A work queue: once one has succeeded no further pods are made.
        return active if succeeded else _parallelism(job)
    return min(_parallelism(job), max(0, completions - succeeded))


def _index_of(pod: Json) -> int:
    return int((pod["metadata"].get("annotations") or {}).get(INDEX, -1))


def _give_index(body: Json, job: Json, position: int) -> None:
    metadata = body["metadata"]
    metadata.setdefault("annotations", {})[INDEX] = str(position)
    metadata["labels"][INDEX] = str(position)
    metadata["generateName"] = f"{name_of(job)}-{position}-"
    body["spec"].setdefault("hostname", f"{name_of(job)}-{position}")
    for container in body["spec"].get("containers") or ():
        variable = {"name": "JOB_COMPLETION_INDEX", "value": str(position)}
        container.setdefault("env", []).append(variable)


# -- counting ------------------------------------------------------------------------------------


def _is_tracked(pod: Json) -> bool:
    return TRACKING in (pod["metadata"].get("finalizers") or ())


def _without_tracking(pod: Json) -> list[str] | None:
    held_by = pod["metadata"].get("finalizers") or ()
    return [finalizer for finalizer in held_by if finalizer != TRACKING] or None


def _to_be_counted(pod: Json) -> bool:
    """It has ended, or will not succeed any more, and is in no count yet."""
    return _is_tracked(pod) and (has_ended(pod) or is_leaving(pod))


def _counted(job: Json, pods: list[Json]) -> dict[str, Any]:
    """The status with the pods counted that have ended since.

    A pod that is being deleted and has not succeeded has failed (podReplacementPolicy
    TerminatingOrFailed, the default).
    """
    status = dict(job.get("status") or {})
    fresh = [pod for pod in pods if _to_be_counted(pod)]
    succeeded = [pod for pod in fresh if pod["status"].get("phase") == "Succeeded"]
    if job["spec"].get("completionMode") == "Indexed":
        done = numbers_of(status.get("completedIndexes"))
        done |= {_index_of(pod) for pod in succeeded if _index_of(pod) >= 0}
        status["succeeded"] = len(done)
        status["completedIndexes"] = text_of(done)
    else:
        status["succeeded"] = int(status.get("succeeded") or 0) + len(succeeded)
    status["failed"] = int(status.get("failed") or 0) + len(fresh) - len(succeeded)
    status["uncountedTerminatedPods"] = {}
    return status


def _backoff_until(pods: list[Json], status: Json) -> float | None:
    """Failures of late put the next pod off: 10 s, doubled with each, at most 10 minutes."""
    failures = int(status.get("failed") or 0)
    if not failures:
        return None
    ends = [_end_time(pod) for pod in pods if pod["status"].get("phase") == "Failed"]
    latest = max((end for end in ends if end is not None), default=None)
    if latest is None:
        return None
    return latest + float(min(_LONGEST_BACKOFF, _FIRST_BACKOFF * 2 ** min(failures - 1, 10)))


def _end_time(pod: Json) -> float | None:
    states = [(c.get("state") or {}) for c in pod["status"].get("containerStatuses") or ()]
    ends = [(state.get("terminated") or {}).get("finishedAt") for state in states]
    return max((parse_time(end) for end in ends if end), default=None)


def _end_of(job: Json, status: Json, active: int, now: float) -> _End | None:
    failed, limit = int(status.get("failed") or 0), int(job["spec"].get("backoffLimit", 6))
    completions, succeeded = _completions(job), int(status.get("succeeded") or 0)
    enough = succeeded >= completions if completions is not None else succeeded and not active
    if enough:
        return _End("Complete", "CompletionsReached", "Reached expected number of succeeded pods")
    if failed > limit:
        words = "Job has reached the specified backoff limit"
        return _End("Failed", "BackoffLimitExceeded", words)
    due = _deadline(job, status)
    if due is not None and now >= due:
        words = "Job was active longer than specified deadline"
        return _End("Failed", "DeadlineExceeded", words)
    return None


def _deadline(job: Json, status: Json) -> float | None:
    seconds, started = job["spec"].get("activeDeadlineSeconds"), status.get("startTime")
    if seconds is None or not started or job["spec"].get("suspend"):
        return None
    return parse_time(started) + int(seconds)


# -- status --------------------------------------------------------------------------------------


def _with_progress(
    job: Json,
    status: Json,
    pods: list[Json],
    active: list[Json],
    suspended: bool,
    end: _End | None,
    now: float,
) -> Json:
    """What follows for the status; counts of nothing are left out, as in Go's JSON."""
    at = timestamp(now)
    new = {
        **status,
        "active": len(active),
        "ready": sum(map(is_ready, active)),
        "terminating": sum(is_leaving(pod) and not has_ended(pod) for pod in pods),
    }
    conditions = list(status.get("conditions") or [])
    was_suspended = any(c["type"] == "Suspended" and c["status"] == "True" for c in conditions)
    if suspended and not was_suspended:
        conditions = set_condition(
            conditions, "Suspended", "True", "JobSuspended", "Job suspended", at
        )
        new.pop("startTime", None)
    elif was_suspended and not suspended:
        conditions = set_condition(
            conditions, "Suspended", "False", "JobResumed", "Job resumed", at
        )
    if not suspended and not new.get("startTime"):
        new["startTime"] = at
    if end is not None:
        promise = "SuccessCriteriaMet" if end.kind == "Complete" else "FailureTarget"
        for kind in (promise, end.kind):
            conditions = set_condition(conditions, kind, "True", end.reason, end.message, at)
        if end.kind == "Complete":
            new["completionTime"] = at
    if conditions:
        new["conditions"] = conditions
    kept = ("ready", "uncountedTerminatedPods", "terminating")
    return {key: value for key, value in new.items() if value or key in kept}
