"""From what changed to messages, in the transaction that changes it.

So a fact without its message, or a message without its fact, cannot be committed. Both writers of
waiting rows hold the run's lock: what this reads is what they leave behind.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final

from django.conf import settings
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from dashboard.models import SchedulerRun, WaitingPod
from dashboard.webhooks import gangs, payloads
from dashboard.webhooks.models import (
    WebhookDelivery,
    WebhookEndpoint,
    WebhookGang,
    WebhookMessage,
)

_CHUNK: Final = 500
#: How long messages are kept, and those that could not be delivered.
KEPT: Final = timedelta(days=7)
KEPT_DEAD: Final = timedelta(days=30)


def note(
    run: SchedulerRun,
    changed: Iterable[WaitingPod],
    *,
    taken_back: bool = False,
    begun: Collection[int] = (),
) -> int:
    """Tell the endpoints what the changed waits mean for their gangs; how many messages came of it.
    ``taken_back``: an approval of each was taken back, which is news although they wait as before.
    ``begun``: ids of those that began in this transaction.

    Called inside the transaction that changed the rows, which holds the run's lock, after the last
    of its writes to them.
    """
    rows = list(changed)
    if not rows:
        return 0
    endpoints = list(WebhookEndpoint.objects.filter(active=True).order_by("pk"))
    if not endpoints:
        return 0
    return _Telling(run, endpoints, timezone.now(), taken_back, begun).tell(rows)


def know_what_waits() -> None:
    """Somebody is to be told from now on: what has come of the gangs that wait is no news any more.

    Called inside a transaction; holds the locks of their runs, as who writes waits does.
    """
    alive = Q(state__in=WaitingPod.OPEN) | Q(unbound__in=[True])
    ids = sorted(set(WaitingPod.objects.filter(alive).order_by().values_list("run", flat=True)))
    for run in SchedulerRun.objects.select_for_update().filter(pk__in=ids).order_by("pk"):
        told = set(WebhookGang.objects.filter(run=run).values_list("key", flat=True))
        waits: dict[str, list[WaitingPod]] = defaultdict(list)
        for row in WaitingPod.objects.filter(alive, run=run).defer("node_use").order_by("pk"):
            waits[gangs.key(row)].append(row)
        WebhookGang.objects.bulk_create(
            [_known(run, key, rows) for key, rows in waits.items() if key not in told],
            batch_size=_CHUNK,
        )


def _known(run: SchedulerRun, key: str, waits: Sequence[WaitingPod]) -> WebhookGang:
    """As if it had been told. That its quorum waits is still to be told where it does not yet."""
    outcome = gangs.outcome(waits)
    is_past = gangs.is_news(outcome, "", gangs.quorum_waits(waits))
    return WebhookGang(
        run=run,
        key=key,
        first_wait=waits[0].pk,
        outcome=outcome if is_past else "",
        told_approval=is_past and gangs.needs_approval(waits),
    )


def send_to(endpoint: WebhookEndpoint, type: str, body: str, at: datetime) -> WebhookDelivery:
    """A message for one endpoint that is about no gang."""
    message = WebhookMessage.objects.create(uid=_new_uid(), type=type, body=body, created_at=at)
    delivery = _delivery(message, endpoint, at, message.uid)
    (delivery,) = WebhookDelivery.objects.bulk_create([delivery])
    return delivery


def prune(limit: int = 500) -> int:
    """Delete at most ``limit`` messages that are delivered, or were given up, long ago."""
    now = timezone.now()
    under_way = WebhookDelivery.objects.filter(
        message=OuterRef("pk"), state=WebhookDelivery.State.PENDING
    )
    dead = WebhookDelivery.objects.filter(message=OuterRef("pk"), state=WebhookDelivery.State.DEAD)
    old = WebhookMessage.objects.filter(~Exists(under_way)).filter(
        Q(created_at__lt=now - KEPT_DEAD) | Q(~Exists(dead), created_at__lt=now - KEPT)
    )
    ids = list(old.order_by("pk").values_list("pk", flat=True)[:limit])
    WebhookMessage.objects.filter(pk__in=ids).delete()
    return len(ids)


class _Telling:
    """One transaction's messages."""

    def __init__(
        self,
        run: SchedulerRun,
        endpoints: Sequence[WebhookEndpoint],
        now: datetime,
        taken_back: bool,
        begun: Collection[int],
    ) -> None:
        self._run = run
        self._endpoints = endpoints
        self._now = now
        self._taken_back = taken_back
        self._begun_now = begun
        self._begun: list[WebhookGang] = []
        self._gone_on: list[WebhookGang] = []
        self._ended: list[int] = []
        self._messages: list[tuple[WebhookMessage, list[WaitingPod]]] = []
        #: message uid -> what keeps its order
        self._order: dict[str, str] = {}

    def tell(self, rows: Sequence[WaitingPod]) -> int:
        by_key: dict[str, list[WaitingPod]] = defaultdict(list)
        for row in rows:
            by_key[gangs.key(row)].append(row)
        known = self._known(list(by_key))
        waits = self._waits(by_key, known)
        for key, changed in by_key.items():
            self._tell_gang(key, known.get(key), waits[key], changed)
        self._write_gangs()
        self._write()
        return len(self._messages)

    def _tell_gang(
        self,
        key: str,
        gang: WebhookGang | None,
        rows: Sequence[WaitingPod],
        changed: Sequence[WaitingPod],
    ) -> None:
        """Each wait of the gang in its turn: one may have ended, and the next begun, within one
        transaction."""
        for waits in gangs.one_by_one(rows):
            alive = any(gangs.is_alive(row) for row in waits)
            if gang is None and not alive and not self._was_missed(waits):
                continue  # it came and went within one transaction, or was told to its end
            if gang is None:
                gang = WebhookGang(run=self._run, key=key, first_wait=waits[0].pk)
            mine = {row.pk for row in waits}
            said = self._say(gang, waits, [row for row in changed if row.pk in mine])
            if alive:
                self._note(gang, said)
                return
            if not gang._state.adding:
                self._ended.append(gang.pk)
            gang = None

    def _was_missed(self, waits: Sequence[WaitingPod]) -> bool:
        """Time was over before people could be told that they were asked: the database was away."""
        expired = gangs.needs_approval(waits) and gangs.outcome(waits) == gangs.EXPIRED
        return expired and any(row.pk in self._begun_now for row in waits)

    def _note(self, gang: WebhookGang, said: bool) -> None:
        if gang._state.adding:
            self._begun.append(gang)
        elif said:
            self._gone_on.append(gang)

    def _write_gangs(self) -> None:
        """Those that ended first: the next wait of a gang has its key."""
        for start in range(0, len(self._ended), _CHUNK):
            WebhookGang.objects.filter(pk__in=self._ended[start : start + _CHUNK]).delete()
        WebhookGang.objects.bulk_create(self._begun, batch_size=_CHUNK)
        WebhookGang.objects.bulk_update(
            self._gone_on, ["told_approval", "outcome", "told"], batch_size=_CHUNK
        )

    def _known(self, keys: Sequence[str]) -> dict[str, WebhookGang]:
        found: dict[str, WebhookGang] = {}
        for start in range(0, len(keys), _CHUNK):
            part = keys[start : start + _CHUNK]
            for gang in WebhookGang.objects.filter(run=self._run, key__in=part):
                found[gang.key] = gang
        return found

    def _waits(
        self, by_key: dict[str, list[WaitingPod]], known: dict[str, WebhookGang]
    ) -> dict[str, list[WaitingPod]]:
        """The rows of each gang, oldest first: of the wait that is told of and of what followed, or
        what is open and what has just changed."""
        groups = {key: rows[0].pod_group for key, rows in by_key.items() if rows[0].pod_group}
        keys = list(groups)
        found: dict[str, list[WaitingPod]] = defaultdict(list)
        for start in range(0, len(keys), _CHUNK):
            part = keys[start : start + _CHUNK]
            starts = [known[key].first_wait for key in part if key in known]
            wanted = Q(state__in=WaitingPod.OPEN) | Q(unbound=True)
            if starts:
                wanted |= Q(pk__gte=min(starts))
            names = {groups[key] for key in part}
            query = WaitingPod.objects.filter(wanted, run=self._run, pod_group__in=names)
            for row in query.defer("pending", "node_use").order_by("pk"):
                found[gangs.key(row)].append(row)
        return {key: self._of(known.get(key), found[key], rows) for key, rows in by_key.items()}

    @staticmethod
    def _of(
        gang: WebhookGang | None, found: Sequence[WaitingPod], changed: Sequence[WaitingPod]
    ) -> list[WaitingPod]:
        rows = {row.pk: row for row in (*changed, *found)}
        first = gang.first_wait if gang is not None else 0
        return [rows[pk] for pk in sorted(rows) if pk >= first]

    def _say(
        self, gang: WebhookGang, waits: list[WaitingPod], changed: Sequence[WaitingPod]
    ) -> bool:
        """Make a message where there is news, and note it on ``gang``; whether there was."""
        outcome = gangs.outcome(waits)
        asks = gangs.needs_approval(waits)
        waits_on = outcome == gang.outcome == gangs.WAITING
        asks_anew = waits_on and ((asks and not gang.told_approval) or self._taken_back)
        news = gangs.is_news(outcome, gang.outcome, gangs.quorum_waits(changed))
        if not news and not asks_anew:
            return False
        gang.told_approval |= asks
        gang.outcome = outcome
        gang.told += 1
        self._add(gang, waits, outcome)
        return True

    def _add(self, gang: WebhookGang, waits: list[WaitingPod], outcome: str) -> None:
        body = payloads.gang_body(self._run, waits, outcome, sequence=gang.told, at=self._now)
        message = WebhookMessage(
            uid=_new_uid(),
            type=gangs.event(outcome),
            run=self._run,
            gang=waits[0].pod_group or gang.key,
            body=body,
            created_at=self._now,
        )
        self._messages.append((message, waits))
        self._order[message.uid] = f"{self._run.pk}:{gang.key}"

    def _write(self) -> None:
        to = [
            (message, endpoint)
            for message, waits in self._messages
            for endpoint in self._endpoints
            if _wants(endpoint, message, waits)
        ]
        wanted = list(dict.fromkeys(id(message) for message, _ in to))
        messages = [message for message, _ in self._messages if id(message) in set(wanted)]
        WebhookMessage.objects.bulk_create(messages, batch_size=_CHUNK)
        WebhookDelivery.objects.bulk_create(
            [
                _delivery(message, endpoint, self._now, self._order[message.uid])
                for message, endpoint in to
            ],
            batch_size=_CHUNK,
        )


def _wants(endpoint: WebhookEndpoint, message: WebhookMessage, waits: Sequence[WaitingPod]) -> bool:
    if message.type not in endpoint.events:
        return False
    if endpoint.namespaces and waits[0].namespace not in endpoint.namespaces:
        return False
    return not endpoint.only_approval or gangs.needs_approval(waits)


def _delivery(
    message: WebhookMessage, endpoint: WebhookEndpoint, now: datetime, order: str
) -> WebhookDelivery:
    return WebhookDelivery(
        message=message,
        endpoint=endpoint,
        order_key=order,
        next_attempt_at=now,
        give_up_at=now + max_age(),
    )


def max_age() -> timedelta:
    """After what time a message is given up."""
    return timedelta(seconds=settings.KUBESCHED_WEBHOOK_MAX_AGE_SECONDS)


def _new_uid() -> str:
    return f"msg_{uuid.uuid4().hex}"
