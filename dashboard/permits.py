"""Approve, deny and take back: a person's word on its way to the scheduler.

``decide`` writes a ``Decision`` for each pod and moves the row, with the audit row in the same
transaction, under the run's lock. The rows are the truth; a Redis message is only a doorbell, and
the inbox (``permits_inbox``) polls the table as well. What comes of it is written by the recorder.
"""

from __future__ import annotations

import enum
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import redis
from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet

from dashboard import audit, commits, frames, groups, permits_gangs, permits_rows, permits_words
from dashboard.models import AuditEntry, SchedulerRun, WaitingPod
from dashboard.permits_models import Decision, GangApproval
from dashboard.permits_rules import Actor, asks_for_own
from dashboard.publisher import Publisher, get_publisher
from dashboard.webhooks import outbox
from scheduler_core.plugins.manual_approval import ManualApproval
from scheduler_core.records import Verdict

__all__ = [
    "Answer",
    "Code",
    "Target",
    "UnknownWaitingPod",
    "decide",
    "open_waiting",
    "ring_doorbell",
]

logger = logging.getLogger(__name__)

_DOORBELL_TIMEOUT: Final = 1.0
_SENT: Final = {
    Verdict.APPROVE: "Approved; the scheduler applies it.",
    Verdict.DENY: "Denied; the scheduler applies it.",
}
_VERBS: Final = {
    Verdict.APPROVE: AuditEntry.Verb.APPROVE,
    Verdict.DENY: AuditEntry.Verb.DENY,
    Verdict.REVOKE: AuditEntry.Verb.REVOKE,
}
_GANGS_AT_ONCE: Final = 500
#: Most pods that the audit row of a gang names.
_NAMED_MEMBERS: Final = 200


class UnknownWaitingPod(Exception):
    """Nothing that waits, or waited, was named."""


class AmbiguousGang(Exception):
    """Two gangs have the name: one of scheduling.x-k8s.io and a native one."""


class Code(enum.StrEnum):
    """What came of a word for one pod."""

    ACCEPTED = "accepted"  # committed; the scheduler applies it
    RECORDED = "recorded"  # committed; more people have to approve
    ALREADY = "already"  # the same was said before; nothing changed
    CONFLICT = "conflict"  # somebody was first with the opposite
    TOO_LATE = "too_late"  # the deadline has passed, or the wait has ended
    OWN_REQUEST = "own_request"  # the terms want somebody else's approval
    FORBIDDEN = "forbidden"  # not in this namespace
    NOT_ASKED = "not_asked"  # the pod does not wait for a person, or there is nothing to take back


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a word for one pod.

    Attributes:
        id, uid, pod: ``WaitingPod.id``, the pod's uid, "namespace/name".
        state: of the row, after the call.
        who, when: who made the difference, and when (the scheduler's clock); "" and None where
            nobody did: a deadline, a permission.
        approved_by, needed: whose approvals count now, and how many have to.
        message: all of it, for the person to read.
    """

    id: int
    uid: str
    pod: str
    code: Code
    state: str
    who: str
    when: float | None
    approved_by: tuple[str, ...]
    needed: int
    message: str

    @property
    def ok(self) -> bool:
        """The pod is decided as asked, now or before."""
        return self.code in (Code.ACCEPTED, Code.RECORDED, Code.ALREADY)

    @property
    def changed(self) -> bool:
        """This call made a difference."""
        return self.code in (Code.ACCEPTED, Code.RECORDED)

    def as_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "uid": self.uid,
            "pod": self.pod,
            "ok": self.ok,
            "code": self.code.value,
            "state": self.state,
            "who": self.who,
            "when": self.when,
            "approved_by": list(self.approved_by),
            "needed": self.needed,
            "message": self.message,
        }


@dataclass(frozen=True, slots=True)
class Target:
    """What is decided on: some waits of one run, or all that wait of one gang."""

    run_id: int
    ids: tuple[int, ...] = ()
    gang: str = ""
    gang_uid: str | None = None

    @classmethod
    def rows(cls, run_id: int, ids: Sequence[int]) -> Target:
        """Waits by ``WaitingPod.id``."""
        return cls(run_id, ids=tuple(dict.fromkeys(ids)))

    @classmethod
    def whole_gang(cls, run_id: int, pod_group: str, gang_uid: str | None = None) -> Target:
        """Every wait that is open of "namespace/name", and members that begin to wait later.
        ``gang_uid`` tells two gangs of that name apart; None where there is only one."""
        return cls(run_id, gang=pod_group, gang_uid=gang_uid)


def decide(
    user: Any,
    verdict: Verdict | str,
    target: Target,
    *,
    comment: str = "",
    now: float | None = None,
    publisher: Publisher | None = None,
) -> list[Answer]:
    """One person's word - approve, deny, or revoke: take one's own approval back.

    Returns when it is committed. Every pod gets its own answer, in the order of ``ids`` or of the
    beginning of their waits. The same word twice does no harm. A word that comes when the pod's
    deadline, or that of another member of its gang, has passed is too late, whoever was told so
    first. ``now``: the scheduler's clock; read under the lock where it is not given.

    Approving a whole gang stands for members that begin to wait later, until the gang is let go;
    denying one member ends the wait of all. Of a gang that waits no more one answer tells what
    became of it, as after the end of a pod's wait.

    Raises:
        SchedulerRun.DoesNotExist: there is no such run.
        UnknownWaitingPod: none of the pods, or no wait of the gang, is there.
        AmbiguousGang: two gangs of that name wait, and the target does not say which.
    """
    word, actor = Verdict(verdict), Actor(user)
    with transaction.atomic():
        run = commits.next_commit(target.run_id)
        since = commits.last_waiting_commit(run.pk)
        rows = list(_chosen(target))
        if not rows and target.gang and (last := _last_wait(target)) is not None:
            # Nothing of it waits any more: its latest wait says how it ended, and who decided.
            target, rows = Target.rows(run.pk, [last.pk]), [last]
        if not rows:
            raise UnknownWaitingPod(
                f'No pod of the group "{target.gang}" waits.'
                if target.gang
                else "No such waiting pod in this run."
            )
        # After the lock: whoever gets it later, and the inbox that looks under it, sees this word.
        at = commits.run_clock(run.pk) if now is None else now
        turn = _Turn(run, actor, word, comment, at, bool(target.gang), _deadlines(run, rows))
        answers = [turn.decide(row) for row in rows]
        turn.write(target, rows, answers)
        outbox.note(run, turn.changed, taken_back=word is Verdict.REVOKE)
        if turn.changed:
            frame = frames.waiting_frame(run.pk, since, run.commit_seq, at, turn.changed)
            transaction.on_commit(lambda: _announce(run.pk, frame, publisher))
    return answers


def _chosen(target: Target) -> QuerySet[WaitingPod] | list[WaitingPod]:
    rows = WaitingPod.objects.filter(run=target.run_id)
    if target.gang:
        return _members(target, rows.filter(pod_group=target.gang, state__in=WaitingPod.OPEN))
    found = rows.in_bulk(target.ids)
    return [found[pk] for pk in target.ids if pk in found]


def _members(target: Target, rows: QuerySet[WaitingPod]) -> list[WaitingPod]:
    if target.gang_uid is not None:
        rows = rows.filter(gang_uid=target.gang_uid)
    found = list(rows.order_by("since", "pk"))
    uids = sorted({row.gang_uid for row in found})
    if len(uids) > 1:
        names = " and ".join(uid or "none" for uid in uids)
        raise AmbiguousGang(
            f'{len(uids)} gangs called "{target.gang}" wait; say which by the uid of its PodGroup:'
            f" {names}."
        )
    return found


def _last_wait(target: Target) -> WaitingPod | None:
    rows = WaitingPod.objects.filter(run=target.run_id, pod_group=target.gang)
    if target.gang_uid is not None:
        rows = rows.filter(gang_uid=target.gang_uid)
    return rows.order_by("-pk").first()


def _deadlines(run: SchedulerRun, rows: Sequence[WaitingPod]) -> Mapping[tuple[str, str], float]:
    """gang -> when time ends the wait of all: with the first of its members that is turned down
    then, for want of a decision or of what it waits for besides; where time approves each that is
    undecided, with the last. Where all is said already, with the last of all."""
    gangs = {row.pod_group for row in rows if row.pod_group}
    turned_down: dict[tuple[str, str], float] = {}
    approved: dict[tuple[str, str], float] = {}
    said: dict[tuple[str, str], float] = {}
    members = WaitingPod.objects.filter(
        run=run, pod_group__in=gangs, state__in=WaitingPod.OPEN
    ).order_by()
    columns = ("pod_group", "gang_uid", "state", "deadline", "terms", "pending")
    for name, uid, state, deadline, terms, pending in members.values_list(*columns):
        gang = name, uid
        ends = [item["deadline"] for item in pending if item["plugin"] != ManualApproval.name]
        said[gang] = max(deadline, said.get(gang, deadline))
        if state == WaitingPod.State.WAITING:
            if terms.get("at_deadline") == Verdict.APPROVE and deadline not in ends:
                approved[gang] = max(deadline, approved.get(gang, deadline))
            else:
                ends.append(deadline)
        if ends:
            turned_down[gang] = min(*ends, turned_down.get(gang, ends[0]))
    return said | approved | turned_down


@dataclass(slots=True)
class _Turn:
    """One call of ``decide``: judges row by row, then writes what it has collected."""

    run: SchedulerRun
    actor: Actor
    word: Verdict
    comment: str
    at: float
    for_gang: bool
    gang_deadlines: Mapping[tuple[str, str], float]
    changed: list[WaitingPod] = field(default_factory=list)
    #: Gangs of which all was said when the call began, as far as that was asked.
    complete: dict[tuple[str, str], bool] = field(default_factory=dict)
    #: Words that others' standing approvals say in the stead of one that is taken back.
    covers: list[Decision] = field(default_factory=list)
    #: Approvals of whole gangs, as far as they were asked for.
    standing: dict[tuple[str, str], list[GangApproval]] = field(default_factory=dict)
    #: Row -> who has taken back an approval of it, of the gangs that were asked about.
    taken_back: dict[int, set[str]] = field(default_factory=dict)

    def decide(self, row: WaitingPod) -> Answer:
        """Judge one row, and change it in memory where the word counts."""
        refusal = self.actor.refusal(row)
        if refusal:
            return self._answer(row, Code.FORBIDDEN, refusal)
        if not row.is_open:
            return self._after_the_end(row)
        said = self._said_before(row)
        if said is not None:
            return said
        deadline = self._deadline_of(row)
        if deadline <= self.at:
            text = f"Too late: its time ran out at {permits_words.moment(deadline)}."
            return self._answer(row, Code.TOO_LATE, text, when=deadline)
        if self.word is Verdict.DENY:
            return self._deny(row)
        if self.word is Verdict.REVOKE:
            return self._revoke(row)
        return self._approve(row)

    def _deadline_of(self, row: WaitingPod) -> float:
        """An approved member has until time ends the wait of its gang."""
        gang = self.gang_deadlines.get(row.gang, row.deadline)
        return min(row.deadline, gang) if row.state == WaitingPod.State.WAITING else gang

    def _after_the_end(self, row: WaitingPod) -> Answer:
        if row.decision_verdict:
            text = permits_words.already(
                row.decision_verdict, row.decision_user, row.decision_at, row
            )
            own = row.decision_user == self.actor.name and row.decision_verdict == self.word
            done = row.state == _END_OF.get(self.word)
            code = Code.ALREADY if own and done else Code.TOO_LATE
            return self._answer(row, code, text, row.decision_user, row.decision_at)
        text = f"Too late: {row.namespace}/{row.name} {permits_words.ended(row)}."
        return self._answer(row, Code.TOO_LATE, text, row.resolved_by, row.resolved_at)

    def _said_before(self, row: WaitingPod) -> Answer | None:
        """The row is decided, or the person has approved it: the same again, or the opposite."""
        if self.word is Verdict.REVOKE:
            return None
        if row.state == WaitingPod.State.SENT:
            same = row.decision_verdict == self.word
            if not same and self.word is Verdict.DENY and self._waits_for_its_gang(row):
                return None
            code = Code.ALREADY if same else Code.CONFLICT
            who, when = row.decision_user, row.decision_at
            text = permits_words.already(row.decision_verdict, who, when, row)
            return self._answer(row, code, text, who, when)
        own = next((item for item in row.approvals if item["user"] == self.actor.name), None)
        if own is None or self.word is not Verdict.APPROVE:
            return None
        text = permits_words.already(Verdict.APPROVE, self.actor.name, own["at"], row)
        return self._answer(row, Code.ALREADY, text, self.actor.name, own["at"])

    def _waits_for_its_gang(self, row: WaitingPod) -> bool:
        """It is approved, and others of its gang are not, or it is not complete: a denial counts
        until all is said. Then the gang is let go as one, at the latest by the next worker."""
        if row.decision_applied_at is None:
            return False
        if row.gang not in self.complete:
            gang = permits_gangs.Gang(self.run.pk, *row.gang)
            self.complete[row.gang] = bool(row.pod_group) and gang.is_all_said()
        return not self.complete[row.gang]

    def _approve(self, row: WaitingPod) -> Answer:
        if not row.needs_approval:
            text = "The pod does not wait for a person's approval."
            return self._answer(row, Code.NOT_ASKED, text)
        if asks_for_own(row, self.actor.name):
            text = "You asked for this pod yourself; somebody else has to approve it."
            return self._answer(row, Code.OWN_REQUEST, text)
        permits_rows.approve(row, self.actor.name, self.at, self.comment, self.for_gang)
        if row.state == WaitingPod.State.SENT:
            return self._taken(row, Code.ACCEPTED, _SENT[Verdict.APPROVE])
        return self._taken(row, Code.RECORDED, permits_words.recorded(row))

    def _deny(self, row: WaitingPod) -> Answer:
        permits_rows.deny(row, self.actor.name, self.at, self.comment)
        return self._taken(row, Code.ACCEPTED, _SENT[Verdict.DENY])

    def _revoke(self, row: WaitingPod) -> Answer:
        denied = row.decision_verdict == Verdict.DENY
        if denied or all(item["user"] != self.actor.name for item in row.approvals):
            text = "It is denied." if denied else "There is no approval of yours to take back."
            return self._answer(row, Code.NOT_ASKED, text)
        permits_rows.take_back(row, self.actor.name)
        covers = self._covers_of(row)
        self.covers += covers
        return self._taken(row, Code.ACCEPTED, permits_words.taken_back(covers))

    def _covers_of(self, row: WaitingPod) -> list[Decision]:
        """Others' approvals of the whole gang count for the member in its stead. They are said in
        the same transaction: the next worker may come when the member's time is over."""
        if not row.pod_group:
            return []
        if row.gang not in self.standing:
            gang = permits_gangs.Gang(self.run.pk, *row.gang)
            others = gang.standing().exclude(username=self.actor.name).select_related("user")
            self.standing[row.gang] = list(others)
            if self.standing[row.gang]:
                self.taken_back |= permits_rows.taken_back_in(gang.open())
        standing = self.standing[row.gang]
        if not standing:
            return []
        taken_back = self.taken_back.get(row.pk, set())
        return permits_rows.cover(row, standing, {self.actor.name, *taken_back})

    def _taken(self, row: WaitingPod, code: Code, text: str) -> Answer:
        row.commit_seq = self.run.commit_seq
        self.changed.append(row)
        return self._answer(row, code, text, self.actor.name, self.at)

    def _answer(
        self, row: WaitingPod, code: Code, text: str, who: str = "", when: float | None = None
    ) -> Answer:
        return Answer(
            row.pk,
            row.uid,
            f"{row.namespace}/{row.name}",
            code,
            str(row.state),
            who,
            when,
            tuple(item["user"] for item in row.approvals),
            row.approvers_needed,
            text,
        )

    def write(self, target: Target, rows: Sequence[WaitingPod], answers: Sequence[Answer]) -> None:
        """Rows, decisions and audit of what was changed."""
        stands = self._stand(rows, answers) if target.gang else False
        if not self.changed and not stands:
            return
        WaitingPod.objects.bulk_update(self.changed, permits_rows.DECIDED_COLUMNS, batch_size=500)
        entries = self._audit(target, stands)
        Decision.objects.bulk_create(
            [
                Decision(
                    run=self.run,
                    waiting_pod=row,
                    verdict=self.word.value,
                    username=self.actor.name,
                    at=self.at,
                    comment=self.comment,
                    gang=self.for_gang,
                    audit=entry,
                )
                for row, entry in zip(self.changed, entries, strict=True)
            ],
            batch_size=500,
        )
        # After what they stand in for: the scheduler hears words in the order of their ids.
        Decision.objects.bulk_create(self.covers, batch_size=500)

    def _stand(self, rows: Sequence[WaitingPod], answers: Sequence[Answer]) -> bool:
        """Have the word stand for the gang's later members too; whether that is news."""
        if not any(answer.ok for answer in answers):
            return False
        gang = permits_gangs.Gang(self.run.pk, *rows[0].gang)
        if self.word is Verdict.APPROVE:
            agreed = [row for row, said in zip(rows, answers, strict=True) if said.ok]
            return gang.grant(self.actor.user, self.at, self.comment, agreed)
        if self.word is Verdict.REVOKE:
            return gang.revoke(self.actor.name, self.at)
        return gang.end(self.at)

    def _audit(self, target: Target, stands: bool) -> list[AuditEntry]:
        """One row for each pod; of a gang one for the whole: what it came to for each member is in
        its Decision."""
        verb = _VERBS[self.word]
        if not target.gang:
            return [self._entry(verb, f"{row.namespace}/{row.name}", row) for row in self.changed]
        names = [f"{row.namespace}/{row.name}" for row in self.changed[:_NAMED_MEMBERS]]
        detail = {"gang": target.gang, "members": len(self.changed), "pods": names}
        entry = self._entry(verb, target.gang, None, {**detail, "stands": stands})
        return [entry] * len(self.changed)

    def _entry(
        self,
        verb: AuditEntry.Verb,
        name: str,
        row: WaitingPod | None,
        detail: Mapping[str, Any] | None = None,
    ) -> AuditEntry:
        # Where no pod is changed (the same approval, now for the whole gang) nothing is on its way.
        outcome = AuditEntry.Outcome.SENT if self.changed else AuditEntry.Outcome.DONE
        return audit.write(
            self.actor.user,
            verb,
            name,
            comment=self.comment,
            outcome=outcome,
            detail=detail,
            run=self.run,
            waiting_pod=row,
        )


#: How a wait ends that was decided so.
_END_OF: Final = {
    Verdict.APPROVE: WaitingPod.State.ALLOWED,
    Verdict.DENY: WaitingPod.State.REJECTED,
}


def _announce(run_id: int, frame: frames.Frame, publisher: Publisher | None) -> None:
    (publisher or get_publisher()).publish(run_id, groups.WAITING, frame)
    ring_doorbell(run_id)


def ring_doorbell(run_id: int, url: str | None = None) -> None:
    """Wake the run's inbox; without Redis it wakes by itself, half a second later."""
    try:
        with redis.Redis.from_url(
            url or settings.REDIS_URL,
            socket_connect_timeout=_DOORBELL_TIMEOUT,
            socket_timeout=_DOORBELL_TIMEOUT,
        ) as client:
            client.publish(groups.permit_doorbell(run_id), b"1")
    except (redis.RedisError, OSError) as error:
        logger.warning("run %s: doorbell does not ring: %s", run_id, error)


def open_waiting(run_id: int) -> list[WaitingPod]:
    """The waits that a restarted worker has to restore, oldest first: those that are open, and
    those that a person's approval ended while their pod is not bound yet."""
    # Unordered, and a list of one: otherwise SQLite walks through every wait of the run.
    rows = WaitingPod.objects.filter(run=run_id).order_by()
    found = [*rows.filter(state__in=WaitingPod.OPEN), *rows.filter(unbound__in=[True])]
    return sorted(found, key=lambda row: (row.since, row.pk))


def let_go_with_their_gangs(run_id: int, rows: Sequence[WaitingPod]) -> dict[int, float]:
    """Those of the open waits of which it was not written yet that they are over, and when that
    was: another member, which waited at the same time, was let go, and a gang goes as one."""
    waits = {row.pk: row for row in rows if row.is_open and row.gang_uid and row.needs_approval}
    if not waits:
        return {}
    latest: dict[str, float] = {}
    gangs = sorted({row.gang_uid for row in waits.values()})
    for start in range(0, len(gangs), _GANGS_AT_ONCE):
        allowed = WaitingPod.objects.filter(
            run=run_id,
            gang_uid__in=gangs[start : start + _GANGS_AT_ONCE],
            state=WaitingPod.State.ALLOWED,
            needs_approval=True,
            resolved_at__gt=min(row.since for row in waits.values()),
        )
        for gang, at in allowed.order_by().values_list("gang_uid", "resolved_at"):
            moment = at or 0.0  # never null here: the filter asks for more
            latest[gang] = max(moment, latest.get(gang, moment))
    return {
        pk: latest[row.gang_uid]
        for pk, row in waits.items()
        if row.since < latest.get(row.gang_uid, row.since)
    }
