"""The calls of the REST API. What they mean is in ``selectors`` and ``decisions``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from django.http import HttpRequest, HttpResponse
from ninja import Header, Path, Query, Router
from pydantic import Field

from dashboard.rest import decisions, idempotency, selectors
from dashboard.rest.auth import SessionAuth, TokenAuth
from dashboard.rest.models import ApiToken
from dashboard.rest.schemas import (
    DecidedOut,
    DecideIn,
    ProblemOut,
    RunQuery,
    Text,
    WaitingDetailOut,
    WaitingFilter,
    WaitingPage,
)
from scheduler_core.records import Verdict

router = Router()

_READ = [TokenAuth(ApiToken.Scope.READ), SessionAuth()]
_DECIDE = [TokenAuth(ApiToken.Scope.DECIDE), SessionAuth()]
_REFUSED = {401: ProblemOut, 403: ProblemOut, 422: ProblemOut, 429: ProblemOut}
_READ_ONE = {404: ProblemOut, 409: ProblemOut, **_REFUSED}
_DECIDED = {
    200: DecidedOut,
    400: ProblemOut,
    404: ProblemOut,
    409: ProblemOut,
    410: ProblemOut,
    413: ProblemOut,
    **_REFUSED,
}

Uid = Annotated[Text, Field(max_length=64)]
GangName = Annotated[Text, Field(max_length=507, description="uid, or NAMESPACE:NAME")]
Key = Annotated[
    Text | None,
    Header(
        alias="Idempotency-Key",
        max_length=255,
        description="The same request with the same key is done once.",
    ),
]


@router.get(
    "/waiting",
    response={200: WaitingPage, **_REFUSED},
    auth=_READ,
    operation_id="listWaiting",
    summary="List what waits",
    tags=["waiting"],
)
def list_waiting(request: HttpRequest, wanted: Query[WaitingFilter]) -> Any:
    """Waits in the order in which they began."""
    return selectors.page(wanted, request.user.get_username())


@router.get(
    "/waiting/{uid}",
    response={200: WaitingDetailOut, **_READ_ONE},
    auth=_READ,
    operation_id="getWaiting",
    summary="One waiting pod",
    tags=["waiting"],
)
def get_waiting(request: HttpRequest, uid: Path[Uid], which: Query[RunQuery]) -> Any:
    """The wait of this pod that is open, or else its latest one."""
    return selectors.detail(selectors.wait_of_pod(uid, which.run))


@router.post(
    "/waiting/{uid}/approve",
    response=_DECIDED,
    auth=_DECIDE,
    operation_id="approveWaiting",
    summary="Approve a pod",
    tags=["waiting"],
)
def approve_waiting(
    request: HttpRequest,
    uid: Path[Uid],
    which: Query[RunQuery],
    body: DecideIn | None = None,
    idempotency_key: Key = None,
) -> Any:
    """Done again it does no harm: 200 says who decided, and when."""
    return _decide(
        decisions.decide_pod, request, Verdict.APPROVE, uid, which, body, idempotency_key
    )


@router.post(
    "/waiting/{uid}/deny",
    response=_DECIDED,
    auth=_DECIDE,
    operation_id="denyWaiting",
    summary="Deny a pod, and with it its gang",
    tags=["waiting"],
)
def deny_waiting(
    request: HttpRequest,
    uid: Path[Uid],
    which: Query[RunQuery],
    body: DecideIn | None = None,
    idempotency_key: Key = None,
) -> Any:
    """Done again it does no harm: 200 says who decided, and when."""
    return _decide(decisions.decide_pod, request, Verdict.DENY, uid, which, body, idempotency_key)


@router.post(
    "/gangs/{uid}/approve",
    response=_DECIDED,
    auth=_DECIDE,
    operation_id="approveGang",
    summary="Approve a gang",
    tags=["gangs"],
)
def approve_gang(
    request: HttpRequest,
    uid: Path[GangName],
    which: Query[RunQuery],
    body: DecideIn | None = None,
    idempotency_key: Key = None,
) -> Any:
    """Every member that waits, and members that begin to wait until the gang is let go."""
    return _decide(
        decisions.decide_gang, request, Verdict.APPROVE, uid, which, body, idempotency_key
    )


@router.post(
    "/gangs/{uid}/deny",
    response=_DECIDED,
    auth=_DECIDE,
    operation_id="denyGang",
    summary="Deny a gang",
    tags=["gangs"],
)
def deny_gang(
    request: HttpRequest,
    uid: Path[GangName],
    which: Query[RunQuery],
    body: DecideIn | None = None,
    idempotency_key: Key = None,
) -> Any:
    """Every member that waits."""
    return _decide(decisions.decide_gang, request, Verdict.DENY, uid, which, body, idempotency_key)


def _decide(
    work: Callable[..., dict[str, Any]],
    request: HttpRequest,
    verdict: Verdict,
    uid: str,
    which: RunQuery,
    body: DecideIn | None,
    key: str | None,
) -> HttpResponse:
    comment = body.comment.strip() if body is not None else ""
    return idempotency.once(
        request, key, lambda: work(request.user, verdict, uid, which.run, comment)
    )
