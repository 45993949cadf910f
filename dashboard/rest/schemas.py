"""What goes in and out of the REST API: checked at run time, and the source of the OpenAPI schema.

The values come from ``rest.shapes``.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from ninja import Schema
from pydantic import (
    AfterValidator,
    AwareDatetime,
    ConfigDict,
    Field,
    ValidationInfo,
    model_validator,
)

from dashboard.api import MAX_COMMENT
from dashboard.api_request import MAX_INT
from dashboard.rest.problems import Problem

MAX_LIMIT = 200
State = Literal[
    "waiting", "sent", "allowed", "rejected", "timed_out", "preempted", "removed", "broken"
]
Wanted = Literal[
    "open", "ended", "all",
    "waiting", "sent", "allowed", "rejected", "timed_out", "preempted", "removed", "broken",
]  # fmt: skip
Verdict = Literal["approve", "deny"]


def _storable(text: str) -> str:
    if "\x00" in text:
        raise ValueError("must not hold NUL characters")
    if any("\ud800" <= char <= "\udfff" for char in text):
        raise ValueError("must not hold halves of characters")
    return text


#: Text that every database can hold.
Text = Annotated[str, AfterValidator(_storable)]
RowId = Annotated[int, Field(ge=1, le=MAX_INT)]


class RunOut(Schema):
    id: int
    name: str
    cluster: str


class GangOut(Schema):
    uid: str = Field(description="Of the PodGroup; empty where it was not known.")
    key: str = Field(description="NAMESPACE/NAME")
    namespace: str
    name: str
    min_member: int


class PendingOut(Schema):
    plugin: str = Field(description="A Permit plugin that has not allowed the pod yet.")
    deadline: AwareDatetime | None
    reason: str


class ApprovalOut(Schema):
    user: str
    at: AwareDatetime
    comment: str
    for_gang: bool = Field(description="Said of the whole gang.")


class DecisionOut(Schema):
    verdict: Verdict
    user: str
    at: AwareDatetime | None
    comment: str


class PodLinks(Schema):
    self: str
    approve: str
    deny: str
    page: str


class WaitingOut(Schema):
    """One wait of one pod at Permit."""

    uid: str = Field(description="The pod's uid.")
    wait: int = Field(description="Number of this wait; a pod may wait more than once.")
    run: RunOut
    namespace: str
    name: str
    node: str = Field(description="The node that is held for it.")
    gang: GangOut | None
    profile: str
    priority: int
    requested_by: str = Field(description="Annotation kubesched.io/requested-by.")
    requests: dict[str, int] = Field(description="cpu in millicores, the rest in base units.")
    since: AwareDatetime
    deadline: AwareDatetime
    state: State
    needs_approval: bool
    approvals: list[ApprovalOut]
    approvals_needed: int
    decision: DecisionOut | None
    pending: list[PendingOut]
    message: str
    resolved_by: str
    resolved_at: AwareDatetime | None
    links: PodLinks


class SaidOut(Schema):
    verdict: Literal["approve", "deny", "revoke"]
    user: str
    at: AwareDatetime
    comment: str
    for_gang: bool
    applied: bool | None = Field(description="Null: the scheduler has not said yet.")
    message: str


class NodeUseOut(Schema):
    allocatable: int
    before: int
    after: int


class WaitingDetailOut(WaitingOut):
    """One wait, with what an approver wants to see."""

    node_use: dict[str, NodeUseOut] = Field(
        description="Resource -> use of the node without and with this pod, when it began to wait."
    )
    said: list[SaidOut] = Field(description="Every word that was said on this wait, in order.")


class WaitingPage(Schema):
    items: list[WaitingOut]
    next_cursor: str | None = Field(description="Pass it as cursor for the next page.")


class QueryString(Schema):
    """All of a call's query string. A name that the call does not know is refused: a filter with a
    slip of the pen would let everything through."""

    @model_validator(mode="after")
    def _nothing_else(self, info: ValidationInfo) -> Self:
        """
        Raises:
            Problem: 422, names the parameters.
        """
        asked = info.context["request"].GET if info.context else ()
        known = type(self).model_fields
        unknown = [name for name in asked if name not in known]
        if unknown:
            message = f"There is no such parameter here. Known: {', '.join(known)}"
            errors = [{"field": name, "message": message} for name in unknown]
            text = f"{', '.join(unknown)}: {message}."
            raise Problem(422, "invalid", text, errors=errors)
        return self


class WaitingFilter(QueryString):
    """What to list; all that is given must match."""

    run: RowId | None = Field(None, description="Number of a run.")
    cluster: Annotated[Text, Field(max_length=63)] | None = None
    namespace: Annotated[Text, Field(max_length=253)] | None = None
    gang: Annotated[Text, Field(max_length=507)] | None = Field(
        None, description="NAMESPACE/NAME, or the uid of a PodGroup."
    )
    needs_approval: bool | None = None
    requested_by: Annotated[Text, Field(max_length=253)] | None = None
    mine: bool = Field(False, description="Only pods that the caller asked for.")
    state: Wanted = Field("open", description="open: waiting or sent. ended: all others.")
    limit: Annotated[int, Field(ge=1, le=MAX_LIMIT)] = 50
    cursor: Annotated[Text, Field(max_length=100)] | None = None


class RunQuery(QueryString):
    run: RowId | None = Field(None, description="Needed only where two runs know the same uid.")


class DecideIn(Schema):
    model_config = ConfigDict(extra="forbid")

    comment: Annotated[Text, Field(max_length=MAX_COMMENT)] = ""


class AnswerOut(Schema):
    """What came of a word for one pod."""

    uid: str
    wait: int
    pod: str = Field(description="NAMESPACE/NAME")
    ok: bool
    code: Literal[
        "accepted",
        "recorded",
        "already",
        "conflict",
        "too_late",
        "own_request",
        "forbidden",
        "not_asked",
    ]
    state: State
    who: str
    when: AwareDatetime | None
    approved_by: list[str]
    needed: int
    message: str


class DecidedOut(Schema):
    verdict: Verdict
    gang: str | None = Field(description="NAMESPACE/NAME where a whole gang was decided.")
    message: str
    results: list[AnswerOut]


class ProblemOut(Schema):
    """Problem details (RFC 9457)."""

    type: str
    title: str
    status: int
    code: str
    detail: str
    who: str | None = Field(None, description="Who was first.")
    when: AwareDatetime | None = None
    state: str | None = None
    results: list[AnswerOut] | None = Field(None, description="By pod, for a gang.")
    errors: list[dict[str, Any]] | None = Field(None, description="By field, for status 422.")
    scopes: list[str] | None = None
