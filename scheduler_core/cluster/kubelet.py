"""The sandbox's nodes at work: pods that run, end, and go when they are deleted."""

from __future__ import annotations

import heapq
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from scheduler_core.api.reader import parse_time
from scheduler_core.ports import ApiError, Json, NotFound, WatchEvent

from .inbox import WatchInbox, no_wake
from .objects import name_of, namespace_of, timestamp, uid_of
from .sandbox import ActingView, SandboxCluster

__all__ = ["EXIT_CODE", "RUN_SECONDS", "SandboxKubelet"]

#: annotation: how long the pod runs before it succeeds, in seconds of the sandbox's clock
RUN_SECONDS: Final = "kubesched.io/run-seconds"
#: annotation: what the pod's containers end with then; the pod fails unless it is 0
EXIT_CODE: Final = "kubesched.io/exit-code"
ACTOR: Final = "kubelet"

_RETRY_SECONDS: Final = 1.0
#: a pod whose node is gone is removed after this (kube-controller-manager's pod GC quarantine)
_ORPHAN_SECONDS: Final = 40.0


class _Step(Enum):
    START = "start"
    FINISH = "finish"
    STOP = "stop"
    REMOVE = "remove"


@dataclass(frozen=True, slots=True, order=True)
class _Due:
    at: float
    number: int  # what was planned first goes first
    uid: str = field(compare=False)
    namespace: str = field(compare=False)
    name: str = field(compare=False)
    step: _Step = field(compare=False)


class SandboxKubelet:
    """Stands for the kubelets of all nodes, and for the collector of pods that have ended.

    A bound pod is Running after `start_seconds`; Succeeded `kubesched.io/run-seconds` later if it
    has that annotation, or Failed if `kubesched.io/exit-code` says so; gone when its deletion is
    due. The oldest ended pods beyond
    `keep_terminal` are deleted, and so are pods whose node is gone.

    Everything happens in `tick`, so that with a virtual clock it is repeatable.
    """

    def __init__(
        self,
        cluster: SandboxCluster,
        *,
        start_seconds: float = 1.0,
        stop_seconds: float | None = None,
        keep_terminal: int = 200,
        wake: Callable[[], None] = no_wake,
    ) -> None:
        """
        Args:
            stop_seconds: how long containers take to end when asked to, at most the grace period;
                None: always the whole grace period.
            wake: called, on any thread, when there is something to tick for.
        """
        self._cluster = cluster
        self._start_seconds = start_seconds
        self._stop_seconds = stop_seconds
        self._keep_terminal = keep_terminal
        self._inbox = WatchInbox(wake)
        self._due: list[_Due] = []
        self._number = 0
        self._planned: dict[str, set[_Step]] = {}  # uid -> steps in _due
        self._ended: OrderedDict[str, tuple[str, str]] = OrderedDict()  # uid -> namespace, name
        self._nodes: set[str] = set()
        self._on_node: dict[str, dict[str, Json]] = {}  # node -> uid -> pod
        # Nodes first: a pod must not be taken for an orphan before its node was heard of.
        self._inbox.watch(cluster, "Node", "Pod")

    def stop(self) -> None:
        """Hear of nothing more."""
        self._inbox.stop()

    def next_deadline(self) -> float | None:
        """When `tick` has something to do: a time of day; None if nothing is planned."""
        if self._inbox:
            return self._cluster.clock.now()
        return self._due[0].at if self._due else None

    def tick(self, now: float) -> None:
        """Take in what has happened, and do what is due at `now`."""
        for event in self._inbox.take():
            self._hear(event, now)
        self._collect_garbage(now)
        due: list[_Due] = []
        while self._due and self._due[0].at <= now:
            found = heapq.heappop(self._due)
            self._done_with(found)
            due.append(found)
        if due:
            self._perform(due, now)

    # -- what has happened -----------------------------------------------------------------------

    def _hear(self, event: WatchEvent, now: float) -> None:
        if event.type == "SYNCED":
            return
        if event.kind == "Node":
            self._hear_node(event, now)
        elif event.type == "DELETED":
            self._forget(event.object)
        else:
            self._hear_pod(event.object, now)

    def _hear_node(self, event: WatchEvent, now: float) -> None:
        node = name_of(event.object)
        if event.type != "DELETED":
            is_new = node not in self._nodes
            self._nodes.add(node)
            for pod in tuple(self._on_node.get(node, {}).values()) if is_new else ():
                self._hear_pod(pod, now)
            return
        self._nodes.discard(node)
        for pod in self._on_node.get(node, {}).values():
            self._plan(now + _ORPHAN_SECONDS, pod, _Step.REMOVE)

    def _hear_pod(self, pod: Json, now: float) -> None:
        node = pod["spec"].get("nodeName")
        if not node:
            return
        metadata, uid = pod["metadata"], uid_of(pod)
        self._on_node.setdefault(node, {})[uid] = pod
        if node not in self._nodes:
            self._plan(now + _ORPHAN_SECONDS, pod, _Step.REMOVE)
        if metadata.get("deletionTimestamp"):
            self._plan(self._end_of(pod, now), pod, _Step.STOP)
        phase = pod["status"].get("phase")
        if phase in ("Succeeded", "Failed"):
            self._ended.setdefault(uid, (namespace_of(pod), name_of(pod)))
        elif phase == "Running":
            self._plan_finish(pod, now)
        elif node in self._nodes:
            self._plan(now + self._start_seconds, pod, _Step.START)

    def _plan_finish(self, pod: Json, now: float) -> None:
        seconds = _run_seconds(pod)
        if seconds is None:
            return
        started = _time(pod["status"].get("startTime"), now)
        self._plan(started + seconds, pod, _Step.FINISH)

    def _end_of(self, pod: Json, now: float) -> float:
        due = _time(pod["metadata"]["deletionTimestamp"], now)
        return due if self._stop_seconds is None else min(due, now + self._stop_seconds)

    def _forget(self, pod: Json) -> None:
        uid = uid_of(pod)
        self._ended.pop(uid, None)
        self._planned.pop(uid, None)
        self._on_node.get(pod["spec"].get("nodeName", ""), {}).pop(uid, None)

    def _collect_garbage(self, now: float) -> None:
        while len(self._ended) > self._keep_terminal:
            uid, (namespace, name) = self._ended.popitem(last=False)
            self._push(now, uid, namespace, name, _Step.STOP)

    # -- what is due -----------------------------------------------------------------------------

    def _plan(self, at: float, pod: Json, step: _Step) -> None:
        self._push(at, uid_of(pod), namespace_of(pod), name_of(pod), step)

    def _push(self, at: float, uid: str, namespace: str, name: str, step: _Step) -> None:
        planned = self._planned.setdefault(uid, set())
        # A shorter grace period brings the end forward; the later plan then finds nothing to do.
        if step in planned and step is not _Step.STOP:
            return
        planned.add(step)
        self._number += 1
        heapq.heappush(self._due, _Due(at, self._number, uid, namespace, name, step))

    def _done_with(self, due: _Due) -> None:
        planned = self._planned.get(due.uid)
        if planned is None:
            return
        planned.discard(due.step)
        if not planned:  # a set for each pod that only runs would be much memory for nothing
            del self._planned[due.uid]

    def _perform(self, due: list[_Due], now: float) -> None:
        try:
            with self._cluster.batch(ACTOR) as view:
                for found in due:
                    self._take_step(view, found, now)
        except ApiError:
            # The journal failed: nothing of it happened. Every step looks before it acts.
            for found in due:
                self._push(now + _RETRY_SECONDS, found.uid, found.namespace, found.name, found.step)

    def _take_step(self, view: ActingView, due: _Due, now: float) -> None:
        try:
            pod = view.get("Pod", due.namespace, due.name)
        except NotFound:
            return
        if uid_of(pod) != due.uid:
            return
        if due.step is _Step.START:
            self._start(view, pod, now)
        elif due.step is _Step.FINISH:
            _finish(view, pod, now)
        elif due.step is _Step.STOP:
            self._remove_if_due(view, pod, now)
        elif pod["spec"].get("nodeName") not in self._nodes:
            _remove(view, pod)

    def _start(self, view: ActingView, pod: Json, now: float) -> None:
        if pod["status"].get("phase") != "Pending" or pod["metadata"].get("deletionTimestamp"):
            return
        status = _running_status(pod, timestamp(now))
        _set_status(view, pod, status)

    def _remove_if_due(self, view: ActingView, pod: Json, now: float) -> None:
        ended = pod["status"].get("phase") in ("Succeeded", "Failed")
        if ended or pod["metadata"].get("deletionTimestamp"):
            _remove(view, pod)


def _run_seconds(pod: Json) -> float | None:
    """The annotation's value; None where it is absent or says no number of seconds."""
    text = (pod["metadata"].get("annotations") or {}).get(RUN_SECONDS)
    try:
        seconds = float(text) if text is not None else -1.0
    except ValueError:
        return None
    return seconds if 0 <= seconds < float("inf") else None


def _exit_code(pod: Json) -> int:
    """The annotation's value; 0 where it is absent or says no exit code (0 to 255)."""
    text = (pod["metadata"].get("annotations") or {}).get(EXIT_CODE) or "0"
    try:
        code = int(text)
    except ValueError:
        return 0
    return code if 0 <= code <= 255 else 0


def _time(text: Any, otherwise: float) -> float:
    try:
        return parse_time(text)
    except (TypeError, ValueError):
        return otherwise


def _running_status(pod: Json, now: str) -> Json:
    ready = [
        {"lastProbeTime": None, "lastTransitionTime": now, "status": "True", "type": kind}
        for kind in ("Initialized", "ContainersReady", "Ready")
    ]
    others = [
        condition
        for condition in pod["status"].get("conditions") or []
        if condition.get("type") not in ("Initialized", "ContainersReady", "Ready")
    ]
    state = {"running": {"startedAt": now}}
    return {
        "phase": "Running",
        "startTime": now,
        "conditions": [*others, *ready],
        "containerStatuses": [_container_status(c, state, True) for c in pod["spec"]["containers"]],
    }


def _finish(view: ActingView, pod: Json, now: float) -> None:
    if pod["status"].get("phase") != "Running":
        return
    at, exit_code = timestamp(now), _exit_code(pod)
    reason = "PodFailed" if exit_code else "PodCompleted"
    conditions = [
        {**c, "status": "False", "reason": reason, "lastTransitionTime": at}
        if c.get("type") in ("ContainersReady", "Ready")
        else c
        for c in pod["status"].get("conditions") or []
    ]
    ended = "Error" if exit_code else "Completed"
    state = {"terminated": {"exitCode": exit_code, "reason": ended, "finishedAt": at}}
    status = {
        "phase": "Failed" if exit_code else "Succeeded",
        "conditions": conditions,
        "containerStatuses": [
            _container_status(c, state, False) for c in pod["spec"]["containers"]
        ],
    }
    _set_status(view, pod, status)


def _container_status(container: Json, state: Json, ready: bool) -> Json:
    return {
        "name": container["name"],
        "image": container.get("image", ""),
        "imageID": "",
        "ready": ready,
        "restartCount": 0,
        "started": ready,
        "state": state,
    }


def _set_status(view: ActingView, pod: Json, status: Json) -> None:
    _quietly(lambda: view.put_pod_status(namespace_of(pod), name_of(pod), uid_of(pod), status))


def _remove(view: ActingView, pod: Json) -> None:
    namespace, name, uid = namespace_of(pod), name_of(pod), uid_of(pod)
    _quietly(lambda: view.delete("Pod", namespace, name, uid=uid, grace_period_seconds=0))


def _quietly(request: Callable[[], object]) -> None:
    """A pod that is gone, or another one, needs no kubelet; a store that is down does."""
    try:
        request()
    except ApiError as error:
        if error.code not in (404, 409):
            raise
