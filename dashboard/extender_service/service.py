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
from dashboard.worker_http.messages import JSON, Answer, BadBody, Request, problem
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
#: Seconds in which the scheduler has to turn to a question: less than the 5 that a kube-scheduler
#: waits by default, so that it reads the reason.
PATIENCE: Final = 4.0
_PARTS: Final = 3
#: kube-scheduler does not say of which extender an error is.
_WHO: Final = "KubeSched"
_REQUESTS: Final = "kubesched_extender_requests_total"
_SECONDS: Final = "kubesched_extender_request_duration_seconds"
_BUSY: Final = f"the extender's scheduler did not get to it within {PATIENCE:g} s"


#: Calls come on threads of their own.
_counting = threading.Lock()
_given: WeakKeyDictionary[AnyScheduler, GivenNodes] = WeakKeyDictionary()


class _Fault(Exception):
    """What the caller reads in place of a decision; ``status`` where the verb's answer has no field
    for an error."""

    def __init__(self, text: str, status: int = 400, result: str = "error") -> None:
        super().__init__(text)
        self.status = status
        self.result = result


@dataclass(frozen=True, slots=True)
class _Call:
    run: CarriedRun
    scheduler: AnyScheduler
    profile: str
    document: Any
    user: Any


def answer(request: Request, parts: list[str]) -> Answer:
    """``parts``: run, profile and verb of the path.

    A caller without a token gets 401. Whatever else is wrong stands in the verb's own answer where
    that has a field for it: kube-scheduler writes that text into the pod's events, and of any other
    status than 200 no more than the address, with the token in it.
    """
    if len(parts) != _PARTS or parts[2] not in VERBS:
        verbs = ", ".join(VERBS)
        return problem(404, f"An extender's address is /extender/RUN/PROFILE/VERB, VERB: {verbs}.")
    if request.method != "POST":
        return problem(405, "Extenders are asked by POST.", Allow="POST")
    began, verb = perf_counter(), parts[2]
    run = _carried(parts[0])
    status = 200
    try:
        user = _user(request, verb)
        document = _ANSWERS[verb](_call(request, run, parts, user))
        result = "error" if _why(document) else "ok"
    except Denied as error:
        _count(run, verb, "refused")
        return Answer(error.status, f"{error}\n".encode(), headers=error.headers)
    except _Fault as fault:
        result, document = fault.result, _refusal(verb, f"{_WHO}: {fault}")
        status = 200 if verb in _SAYS_ERRORS else fault.status
    answered = Answer(status, orjson.dumps(document), JSON)
    _count(run, verb, result, perf_counter() - began)
    if result != "ok":
        log.warning("run %s, extender call %s: %s", parts[0], verb, _why(document))
    return answered


def _user(request: Request, verb: str) -> Any:
    """Whose token it is; None for a connection that is trusted.

    Raises:
        Denied: there is no token; _Fault: it is none that may ask, or not now.
    """
    if request.trusted:
        return None
    token, scope = token_of(request.headers), ApiToken.Scope.EXTEND
    try:
        return who_asks(token, request.address, scope, fresh=verb == "bind")
    except Denied as error:
        if not token:
            raise
        raise _Fault(str(error), error.status, "refused") from None


def _call(request: Request, run: CarriedRun | None, parts: list[str], user: Any) -> _Call:
    number, profile = parts[0], unquote(parts[1])
    if run is None or run.scheduler is None:
        raise _Fault(f"this worker does not carry a run {number}", 404)
    if profile not in run.scheduler.profiles:
        raise _Fault(f"run {number} has no profile {profile}", 404)
    return _Call(run, run.scheduler, profile, _document(request), user)


def _carried(number: str) -> CarriedRun | None:
    return carried.find(int(number)) if number.isascii() and number.isdigit() else None


def _count(run: CarriedRun | None, verb: str, result: str, seconds: float | None = None) -> None:
    if run is None:
        return
    with _counting:
        run.extender.add(_REQUESTS, verb, result)
        if seconds is not None:
            run.extender.histogram(_SECONDS, verb).observe(seconds)


def _document(request: Request) -> Any:
    """The body, read and parsed."""
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding != "identity":
        text = f"the body is encoded as {encoding}, and only plain JSON is read"
        raise _Fault(f"the request cannot be read: {text}", 415)
    try:
        body = request.content()
    except BadBody as error:
        text = f"the request cannot be read: {str(error).strip()}"
        raise _Fault(text, error.answer.status) from None
    return _parse(body)


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
_SAYS_ERRORS: Final = ("filter", "bind")


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
