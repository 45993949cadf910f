"""A word by REST: handed to ``permits.decide``, and its answers as HTTP statuses.

What is allowed and who was first is decided there; here is only what a program is told of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from dashboard import permits
from dashboard.models import WaitingPod
from dashboard.permits import Answer, Code, Target
from dashboard.rest import selectors, shapes
from dashboard.rest.problems import Problem
from scheduler_core.records import Verdict

#: How a wait ends that was decided so.
_END_OF: Final = {
    Verdict.APPROVE: WaitingPod.State.ALLOWED,
    Verdict.DENY: WaitingPod.State.REJECTED,
}
#: Status of an answer that is no success; where a gang's answers differ, the first that occurs.
_STATUS: Final = {
    Code.CONFLICT: 409,
    Code.TOO_LATE: 410,
    Code.NOT_ASKED: 409,
    Code.OWN_REQUEST: 403,
    Code.FORBIDDEN: 403,
}


@dataclass(frozen=True, slots=True)
class _Judged:
    """An answer, and what it is for a caller who only knows HTTP."""

    answer: Answer
    code: Code

    @property
    def ok(self) -> bool:
        return self.code in (Code.ACCEPTED, Code.RECORDED, Code.ALREADY)

    def as_json(self) -> dict[str, Any]:
        found = self.answer
        return {
            "uid": found.uid,
            "wait": found.id,
            "pod": found.pod,
            "ok": self.ok,
            "code": self.code.value,
            "state": found.state,
            "who": found.who,
            "when": shapes.moment(found.when),
            "approved_by": list(found.approved_by),
            "needed": found.needed,
            "message": found.message,
        }


def decide_pod(user: Any, verdict: Verdict, uid: str, run: int | None, comment: str) -> Any:
    """Approve or deny one pod.

    Raises:
        Problem: 403, 404, 409, 410.
    """
    row = selectors.wait_of_pod(uid, run)
    answers = permits.decide(user, verdict, Target.rows(row.run_id, [row.pk]), comment=comment)
    return _result(verdict, None, answers)


def decide_gang(user: Any, verdict: Verdict, name: str, run: int | None, comment: str) -> Any:
    """Approve or deny all of a gang that wait; an approval covers members that come later.

    Raises:
        Problem: 403, 404, 409, 410.
    """
    row = selectors.wait_of_gang(name, run)
    target = Target.whole_gang(row.run_id, *row.gang)
    answers = permits.decide(user, verdict, target, comment=comment)
    return _result(verdict, row.pod_group, answers)


def _result(verdict: Verdict, gang: str | None, answers: Sequence[Answer]) -> dict[str, Any]:
    judged = [_judge(verdict, answer) for answer in answers]
    good = [item for item in judged if item.ok]
    if not good:
        raise _problem(gang, judged)
    message = good[0].answer.message
    if gang is not None:
        done = "approved" if verdict is Verdict.APPROVE else "denied"
        message = f"{len(good)} of {len(judged)} waiting pods of {gang} are {done}. {message}"
    return {
        "verdict": verdict.value,
        "gang": gang,
        "message": message,
        "results": [item.as_json() for item in judged],
    }


def _judge(verdict: Verdict, answer: Answer) -> _Judged:
    """After the end of a wait the page says "too late" to everyone but the one who decided. A
    program asks whether what it wants is so: if the wait ended as it wants, by whomever, it is done
    already; if a person ended it otherwise, that person was first."""
    if answer.code is not Code.TOO_LATE or answer.id is None:
        return _Judged(answer, answer.code)
    row = WaitingPod.objects.only("decision_verdict", "state").get(pk=answer.id)
    if not row.decision_verdict:
        return _Judged(answer, answer.code)
    given = Verdict(row.decision_verdict)
    if row.state != _END_OF[given]:
        return _Judged(answer, answer.code)
    return _Judged(answer, Code.ALREADY if given is verdict else Code.CONFLICT)


def _problem(gang: str | None, judged: Sequence[_Judged]) -> Problem:
    first = next(item for code in _STATUS for item in judged if item.code is code)
    found = first.answer
    more: dict[str, Any] = {"state": found.state, "who": found.who or None}
    more["when"] = shapes.moment(found.when)
    if gang is not None:
        more["results"] = [item.as_json() for item in judged]
    return Problem(_STATUS[first.code], first.code.value, found.message, **more)
