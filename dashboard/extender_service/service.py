"""Answers the calls: reads the body, asks the run's scheduler thread, writes the answer."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Final
from urllib.parse import unquote
from weakref import WeakKeyDictionary

import orjson

from dashboard.extender_service.binding import bind, kept_by_us
from dashboard.metrics import carried
from dashboard.metrics.carried import CarriedRun
from dashboard.rest.models import ApiToken
from dashboard.worker_http.access import Denied, token_of, who_asks
from dashboard.worker_http.messages import JSON, Answer, Request, problem
from scheduler_core.extender_service import (
    BindingArgs,
    GivenNodes,
    InvalidArgs,
    Judge,
    read_binding,
    read_nodes,
    read_preemption,
)
from scheduler_core.observing import ObservingScheduler
from scheduler_core.scheduler import Scheduler

__all__ = ["VERBS", "answer"]

AnyScheduler = Scheduler | ObservingScheduler

log = logging.getLogger(__name__)

VERBS: Final = ("filter", "prioritize", "preempt", "bind")
#: Seconds in which the scheduler has to turn to a question. A kube-scheduler waits 5 by default.
PATIENCE: Final = 10.0
_PARTS: Final = 3
_REQUESTS: Final = "kubesched_extender_requests_total"
_SECONDS: Final = "kubesched_extender_request_duration_seconds"
_BUSY: Final = f"the extender's scheduler did not get to it within {PATIENCE:g} s"


#: Calls come on threads of their own.
_counting = threading.Lock()
_given: WeakKeyDictionary[AnyScheduler, GivenNodes] = WeakKeyDictionary()


class _Fault(Exception):
    """What the caller reads in place of a decision."""


@dataclass(frozen=True, slots=True)
class _Call:
    run: CarriedRun
    scheduler: AnyScheduler
    profile: str
    document: Any
    user: Any


def answer(request: Request, parts: list[str]) -> Answer:
    """``parts``: run, profile and verb of the path."""
    found = _find(parts)
    if isinstance(found, Answer):
        return found
    run, scheduler, profile, verb = found
    if request.method != "POST":
        return problem(405, "Extenders are asked by POST.", Allow="POST")
    user = None
    try:
        if not request.trusted:
            token = token_of(request.headers)
            scope = ApiToken.Scope.EXTEND
            user = who_asks(token, request.address, scope, fresh=verb == "bind")
    except Denied as error:
        with _counting:
            run.extender.add(_REQUESTS, verb, "refused")
        return Answer(error.status, f"{error}\n".encode(), headers=error.headers)
    body = request.content()
    return _timed(verb, lambda: _Call(run, scheduler, profile, _parse(body), user), run)


def _find(parts: list[str]) -> tuple[CarriedRun, AnyScheduler, str, str] | Answer:
    if len(parts) != _PARTS:
        return problem(404, "An extender's address is /extender/RUN/PROFILE/VERB.")
    number, profile, verb = parts[0], unquote(parts[1]), parts[2]
    if verb not in VERBS:
        return problem(404, f"There is no verb {verb}; there are {', '.join(VERBS)}.")
    run = carried.find(int(number)) if number.isascii() and number.isdigit() else None
    if run is None or run.scheduler is None:
        return problem(404, f"This worker does not carry a run {number}.")
    if profile not in run.scheduler.profiles:
        return problem(404, f"Run {number} has no profile {profile}.")
    return run, run.scheduler, profile, verb


def _timed(verb: str, read: Callable[[], _Call], run: CarriedRun) -> Answer:
    began = perf_counter()
    try:
        document, result = _ANSWERS[verb](read()), "ok"
        status = 200
    except _Fault as fault:
        document, status, result = _refusal(verb, str(fault)), _STATUS[verb], "error"
    if isinstance(document, dict) and document.get("Error"):
        result = "error"
    text = orjson.dumps(document)
    with _counting:
        run.extender.add(_REQUESTS, verb, result)
        run.extender.histogram(_SECONDS, verb).observe(perf_counter() - began)
    if result == "error":
        log.warning("run %s, extender call %s: %s", run.run_id, verb, _why(document))
    return Answer(status, text, JSON)


def _parse(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        what = "empty" if not body else f"not valid JSON: {error}"
        raise _Fault(f"the request cannot be read: the body is {what}") from None


# -- verbs -----------------------------------------------------------------------------------------


def _filter(call: _Call) -> Any:
    args = _read(read_nodes, call.document)
    return _ask(call, lambda judge: judge.filter(args))


def _prioritize(call: _Call) -> Any:
    args = _read(read_nodes, call.document)
    return _ask(call, lambda judge: judge.prioritize(args))


def _preempt(call: _Call) -> Any:
    args = _read(read_preemption, call.document)
    return _ask(call, lambda judge: judge.preempt(args))


def _bind(call: _Call) -> Any:
    """On this thread: it waits for the API server, and the scheduler must not."""
    args = _read(read_binding, call.document)
    kept = _ask(call, lambda _: kept_by_us(call.scheduler, args))
    fault = bind(call.run.run_id, call.scheduler.cluster, args, call.user, kept)
    _ask(call, lambda judge: _record_binding(judge, call.scheduler, args, fault))
    return {"Error": fault}


def _record_binding(judge: Judge, scheduler: AnyScheduler, args: BindingArgs, fault: str) -> None:
    pod = scheduler.informers.informer("Pod").get(f"{args.namespace}/{args.name}")
    if pod is not None and pod.uid == args.uid:
        judge.bound(pod, args.node, fault)


_ANSWERS: Final[dict[str, Callable[[_Call], Any]]] = {
    "filter": _filter,
    "prioritize": _prioritize,
    "preempt": _preempt,
    "bind": _bind,
}
#: prioritize and preempt have no field for an error: a status other than 200 is one.
_STATUS: Final = {"filter": 200, "bind": 200, "prioritize": 400, "preempt": 400}


def _read(read: Callable[[object], Any], document: object) -> Any:
    try:
        return read(document)
    except InvalidArgs as error:
        raise _Fault(f"the request cannot be read: {error}") from None


def _ask(call: _Call, work: Callable[[Judge], Any]) -> Any:
    with _counting:
        given = _given.setdefault(call.scheduler, GivenNodes())
    future = call.scheduler.ask(lambda: work(Judge(call.scheduler, call.profile, given)))
    try:
        return future.result(PATIENCE)
    except InvalidArgs as error:
        raise _Fault(str(error)) from None
    except FutureTimeout:
        future.cancel()
        raise _Fault(_BUSY) from None
    except Exception as error:
        log.exception("run %s: a call as an extender failed", call.run.run_id)
        raise _Fault(f"the extender failed: {type(error).__name__}") from None


def _refusal(verb: str, text: str) -> dict[str, Any]:
    if verb != "filter":
        return {"Error": text}
    return {
        "Nodes": None,
        "NodeNames": None,
        "FailedNodes": None,
        "FailedAndUnresolvableNodes": None,
        "Error": text,
    }


def _why(document: Any) -> str:
    return str(document.get("Error", "")) if isinstance(document, dict) else ""
