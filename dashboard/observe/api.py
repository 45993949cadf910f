"""The topic ``observe`` over HTTP."""

from __future__ import annotations

import orjson
from django.http import HttpRequest, HttpResponse

from dashboard.api_request import (
    MAX_INT,
    ApiError,
    api_view,
    choice_param,
    int_param,
    text_param,
)
from dashboard.models import SchedulerRun
from dashboard.observe import frames, selectors
from dashboard.observe.models import ObservedPod


@api_view("GET")
def observe(request: HttpRequest, run_id: int) -> HttpResponse:
    """``since`` a commit, ``before`` a sequence number, at most ``limit`` pods; of one ``verdict``,
    in one ``namespace``."""
    if run_id > MAX_INT:
        raise ApiError(404, "There is no such number.")
    since = int_param(request, "since")
    default = frames.PODS_PER_FRAME if since is None else selectors.MOST_PODS
    answer = selectors.observed(
        SchedulerRun.objects.get(pk=run_id),
        since=since,
        before=int_param(request, "before"),
        limit=int_param(request, "limit", default, least=1) or default,
        verdict=choice_param(request, "verdict", tuple(ObservedPod.Verdict.values)),
        namespace=text_param(request, "namespace"),
    )
    return HttpResponse(orjson.dumps(answer), content_type="application/json")
