"""The HTTP API of docs/design/002: what pages read and what people do.

Views parse and answer; questions are in ``selectors``, actions in ``permits``, ``runs``,
``configuration`` and ``sandboxes``.
"""

from __future__ import annotations

import re
from typing import Any, Final

import orjson
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.cache import patch_cache_control

from dashboard import (
    configuration,
    frames,
    groups,
    heatmap,
    matrices,
    permits,
    runs,
    sandboxes,
    selectors,
    waits_view,
)
from dashboard.api_request import (
    MAX_INT,
    ApiError,
    InvalidFields,
    api_view,
    choice_param,
    int_param,
    json_body,
    require,
    text_param,
)
from dashboard.models import CycleMatrix, SchedulerRun, SchedulingCycle
from dashboard.observe.api import observe

MAX_COMMENT: Final = 1000
MAX_PODS: Final = 5000
MAX_UID: Final = 64
_BINARY: Final = "application/octet-stream"
_MAY_CONFIGURE: Final = "dashboard.control_run"
_VERDICTS: Final = ("approve", "deny", "revoke")
_OUTCOMES: Final = tuple(SchedulingCycle.Outcome.values)
_LATEST: Final = "latest"
_ATTEMPTS: Final = (_LATEST,)
_HASH = re.compile(r"[0-9a-f]{64}")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_POD_GROUP = re.compile(r"[^/\ud800-\udfff]{1,253}/[^/\ud800-\udfff]{1,253}")


# --- topics ---------------------------------------------------------------------------------


@api_view("GET")
def overview(request: HttpRequest, run_id: int) -> HttpResponse:
    return _json(selectors.overview(_run(run_id)))


@api_view("GET")
def run_state(request: HttpRequest, run_id: int) -> HttpResponse:
    return _json(runs.frame(_run(run_id)))


@api_view("GET")
def waiting(request: HttpRequest, run_id: int) -> HttpResponse:
    """The topic's frame, or with ``limit`` its beginning and where it goes on."""
    since, after = int_param(request, "since"), int_param(request, "after")
    limit = int_param(request, "limit", least=1)
    return _json(selectors.waiting(_run(run_id), since, after=after, limit=limit))


@api_view("GET")
def queues(request: HttpRequest, run_id: int) -> HttpResponse:
    """The topic's frame, or with ``queue`` a page of one queue."""
    queue = choice_param(request, "queue", frames.QUEUES)
    offset = int_param(request, "offset", 0) or 0
    limit = int_param(request, "limit", 200, least=1) or 200
    run = _run(run_id)
    if not queue:
        return _json(selectors.queues(run))
    return _json(selectors.queue_page(run, queue, offset, limit))


@api_view("GET")
def cycles(request: HttpRequest, run_id: int) -> HttpResponse:
    since = int_param(request, "since")
    default = frames.CYCLES_PER_FRAME if since is None else selectors.MOST_CYCLES
    return _json(
        selectors.cycles(
            _run(run_id),
            since=since,
            before=int_param(request, "before"),
            limit=int_param(request, "limit", default, least=1) or default,
            outcome=choice_param(request, "outcome", _OUTCOMES),
            query=text_param(request, "q"),
            latest=choice_param(request, "attempts", _ATTEMPTS) == _LATEST,
        )
    )


# --- one cycle ------------------------------------------------------------------------------


@api_view("GET")
def cycle(request: HttpRequest, run_id: int, sequence: int) -> HttpResponse:
    return _json(selectors.cycle(_run(run_id), _number(sequence)))


@api_view("GET")
def matrix(request: HttpRequest, run_id: int, sequence: int) -> HttpResponse:
    """A cycle's heatmap, always a full frame."""
    stored = _matrix(_run(run_id), _number(sequence))
    return _binary(heatmap.encode_full(selectors.heatmap_of(stored)))


@api_view("GET")
def latest_matrix(request: HttpRequest, run_id: int) -> HttpResponse:
    """The heatmap of the newest cycle whose matrix is kept; 204 before there is one."""
    stored = selectors.stored_matrix(_run(run_id), None)
    if stored is None:
        return HttpResponse(status=204)
    return _binary(heatmap.encode_full(selectors.heatmap_of(stored)))


@api_view("GET")
def raw_scores(request: HttpRequest, run_id: int, sequence: int) -> HttpResponse:
    stored = _matrix(_run(run_id), _number(sequence))
    return _binary(matrices.raw_bytes(selectors.decoded(stored)))


@api_view("GET")
def nodes(request: HttpRequest, run_id: int) -> HttpResponse:
    """The node names behind a heatmap's ``names_hash``; they never change, so they are cached."""
    names_hash = request.GET.get("hash", "")
    if not _HASH.fullmatch(names_hash):
        raise ApiError(400, '"hash" must be the names_hash of a heatmap.')
    _run(run_id)
    names = selectors.node_names(names_hash)
    if names is None:
        raise ApiError(404, "These node names are not kept any more.")
    response = _json({"names": names})
    patch_cache_control(response, private=True, max_age=86400, immutable=True)
    return response


# --- actions --------------------------------------------------------------------------------


@api_view("POST", permission="dashboard.decide_waitingpod")
def decide(request: HttpRequest, run_id: int) -> HttpResponse:
    """Approve or deny waiting pods, or a whole gang, or take one's approval back."""
    body = json_body(request)
    errors: dict[str, list[str]] = {}
    verdict, comment = body.get("verdict"), body.get("comment", "")
    if verdict not in _VERDICTS:
        errors["verdict"] = ['Must be "approve", "deny" or "revoke".']
    if not isinstance(comment, str) or not _is_text(comment) or len(comment) > MAX_COMMENT:
        errors["comment"] = [f"Must be text of at most {MAX_COMMENT} characters."]
    pods, gang, gang_uid = _target(body, errors)
    if errors:
        raise InvalidFields(errors)
    run = _run(run_id)
    target = permits.Target(run.pk, pods, gang, gang_uid)
    try:
        answers = permits.decide(request.user, str(verdict), target, comment=comment.strip())
    except permits.UnknownWaitingPod as error:
        raise ApiError(404, str(error)) from None
    except permits.AmbiguousGang as error:
        raise ApiError(409, str(error)) from None
    results = [answer.as_json() for answer in answers]
    if any(answer.ok for answer in answers):
        return _json({"results": results})
    forbidden = all(answer.code is permits.Code.FORBIDDEN for answer in answers)
    words = answers[0].message if len(answers) == 1 else "None of these pods could be decided."
    raise ApiError(403 if forbidden else 409, words, results=results)


@api_view("GET")
def wait(request: HttpRequest, run_id: int, pk: int) -> HttpResponse:
    """All there is to know before deciding on one wait."""
    return _json(waits_view.detail(_run(run_id), _number(pk), request.user))


@api_view("GET")
def gangs(request: HttpRequest, run_id: int) -> HttpResponse:
    """What gangs that wait hold, since when, and who approved them."""
    name, uid = text_param(request, "pod_group"), text_param(request, "gang_uid")
    return _json(waits_view.gangs(_run(run_id), name, uid))


@api_view("POST", permission="dashboard.control_run")
def control(request: HttpRequest, run_id: int) -> HttpResponse:
    """Start, pause, resume or stop a run."""
    action = json_body(request).get("action")
    if not isinstance(action, str) or action not in runs.ACTIONS:
        raise InvalidFields({"action": [f"Must be one of {', '.join(runs.ACTIONS)}."]})
    try:
        run = runs.control(_run(run_id).pk, action, request.user)
    except runs.InvalidTransition as error:
        raise ApiError(409, str(error)) from None
    return _json(runs.frame(run))


@api_view("GET", "POST")
def config(request: HttpRequest, run_id: int) -> HttpResponse:
    """The run's configuration; POST checks another one, and applies it."""
    run = _run(run_id)
    if request.method == "GET":
        may_change = request.user.has_perm(_MAY_CONFIGURE)
        return _json(configuration.view(run, with_secrets=may_change))
    require(request, _MAY_CONFIGURE)
    body = json_body(request)
    text, comment, version, validate_only = _config_change(body)
    try:
        if validate_only:
            return _json(configuration.completed(configuration.check(run, text)))
        run = configuration.change(
            run.pk, text=text, comment=comment, version=version, user=request.user
        )
    except configuration.InvalidText as error:
        raise ApiError(400, str(error), errors=error.errors) from None
    except configuration.Conflict as error:
        raise ApiError(409, str(error), **error.by) from None
    return _json(configuration.view(run, with_secrets=True))


def _config_change(body: dict[str, Any]) -> tuple[str, str, int, bool]:
    """``text, comment, version, validate_only``; faults in the form of the configuration's own."""
    text, comment = body.get("text"), body.get("comment", "")
    version, validate_only = body.get("version"), body.get("validate_only", False)
    wrong: dict[str, str] = {}
    if not isinstance(text, str) or not _is_text(text):
        wrong["text"] = "Must be text."
    if not isinstance(comment, str) or not _is_text(comment) or len(comment) > MAX_COMMENT:
        wrong["comment"] = f"Must be text of at most {MAX_COMMENT} characters."
    if not isinstance(validate_only, bool):
        wrong["validate_only"] = "Must be true or false."
    if not validate_only and (type(version) is not int or not 0 < version <= MAX_INT):
        wrong["version"] = "Must be the version that was edited."
    if wrong:
        errors = [{"path": k, "message": words, "line": None} for k, words in wrong.items()]
        raise ApiError(400, "This is not a change of a configuration.", errors=errors)
    return str(text), str(comment).strip(), version or 0, validate_only


def _is_uid(value: object) -> bool:
    return isinstance(value, str) and len(value) <= MAX_UID and _is_text(value)


def _is_text(value: str) -> bool:
    """JSON's escapes can spell halves of characters, which no file and no database holds."""
    return not _SURROGATE.search(value)


@api_view("POST", permission="dashboard.add_cluster")
def create_sandbox(request: HttpRequest) -> HttpResponse:
    """A new sandbox cluster with a run."""
    body = json_body(request)
    try:
        cluster, run = sandboxes.create_sandbox(
            name=body.get("name"),
            preset=body.get("preset", "demo"),
            speed=body.get("speed", 1.0),
            user=request.user,
        )
    except sandboxes.InvalidSandbox as error:
        raise InvalidFields(error.errors) from None
    answer = {"cluster": cluster.name, "run": run.pk, "url": reverse("overview", args=[run.pk])}
    return _json(answer, status=201)


@api_view("GET")
def clusters(request: HttpRequest) -> HttpResponse:
    return _json({"clusters": selectors.clusters()})


@api_view("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")
def unknown(request: HttpRequest, rest: str) -> HttpResponse:
    """Every other path under /api/."""
    raise ApiError(404, "There is no such call.")


# --- helpers --------------------------------------------------------------------------------


def _run(run_id: int) -> SchedulerRun:
    return selectors.get_run(_number(run_id))


def _number(value: int) -> int:
    """A number of the path; one that no column can hold names nothing."""
    if value > MAX_INT:
        raise ApiError(404, "There is no such number.")
    return value


def _matrix(run: SchedulerRun, sequence: int) -> CycleMatrix:
    stored = selectors.stored_matrix(run, sequence)
    if stored is not None:
        return stored
    row = SchedulingCycle.objects.get(run=run, sequence=sequence)
    state = selectors.matrix_state(row, False)
    raise ApiError(404, _GONE[state], matrix=state)


_GONE: Final = {
    "dropped": "The recorder had to drop this cycle's matrix under load.",
    "expired": "This cycle's matrix is no longer kept; counts and the best 20 nodes are.",
    "none": "No node was looked at in this cycle.",
}


def _target(
    body: dict[str, Any], errors: dict[str, list[str]]
) -> tuple[tuple[int, ...], str, str | None]:
    """Ids, or the pod group and its uid where it is given, of a decision."""
    pods, group, uid = body.get("pods"), body.get("pod_group"), body.get("gang_uid")
    if (pods is None) == (group is None):
        errors["pods"] = ['Name either "pods" or a "pod_group".']
        return (), "", None
    if group is not None:
        if not isinstance(group, str) or not _POD_GROUP.fullmatch(group):
            errors["pod_group"] = ['Must be "namespace/name".']
        if uid is not None and not _is_uid(uid):
            errors["gang_uid"] = [f"Must be text of at most {MAX_UID} characters."]
        return (), str(group), None if uid is None else str(uid)
    if not isinstance(pods, list) or not 1 <= len(pods) <= MAX_PODS:
        errors["pods"] = [f"Must be a list of 1 to {MAX_PODS} ids."]
        return (), "", None
    if not all(type(pk) is int and 0 < pk <= MAX_INT for pk in pods):
        errors["pods"] = ["Must be a list of ids, which are whole numbers."]
        return (), "", None
    return tuple(dict.fromkeys(pods)), "", None


def _json(value: Any, status: int = 200) -> HttpResponse:
    return HttpResponse(orjson.dumps(value), content_type="application/json", status=status)


def _binary(data: bytes) -> HttpResponse:
    return HttpResponse(data, content_type=_BINARY)


#: The API's names of the JSON topics are those of ``groups``.
TOPIC_VIEWS: Final = {
    groups.OVERVIEW: overview,
    groups.RUN: run_state,
    groups.WAITING: waiting,
    groups.QUEUES: queues,
    groups.CYCLES: cycles,
    groups.OBSERVE: observe,
}
