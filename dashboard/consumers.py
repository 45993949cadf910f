"""The websocket of a run: authorise, subscribe, relay. What to send when is in ``outbox``."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Coroutine
from importlib import import_module
from typing import Any, Final
from urllib.parse import parse_qs

import orjson
from autobahn.exception import Disconnected
from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from django.conf import settings
from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY, get_user_model
from django.db import DatabaseError
from django.utils.crypto import constant_time_compare

from dashboard import commits, groups, heard
from dashboard.heard import Heard
from dashboard.models import RunState, SchedulerRun
from dashboard.outbox import Outbox

logger = logging.getLogger(__name__)

NOT_LOGGED_IN: Final = 4401
NOT_FOUND: Final = 4404
BAD_TOPICS: Final = 4400
#: Frames were lost: the page connects again and asks the database what it missed. (1012 would be
#: the code for that, but a server may only send 1000 and those from 3000 on.)
TRY_AGAIN: Final = 4012
#: Seconds between two looks at whether frames were lost; it takes two to be sure.
BEAT_SECONDS: Final = 5.0
MAX_INT: Final = 2**63 - 1
PERMISSIONS: Final = (
    "dashboard.decide_waitingpod",
    "dashboard.control_run",
    "dashboard.add_cluster",
)


class RunConsumer(AsyncWebsocketConsumer):
    """``ws/runs/ID/?topics=overview,cycles``: frames out, acknowledgements in."""

    async def connect(self) -> None:
        # Accepted first: a browser sees the code of a close, not the status of a refusal.
        await self.accept()
        self._joined: list[str] = []
        self._outbox: Outbox | None = None
        self._heard: Heard | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._beat: asyncio.TimerHandle | None = None
        self._sending = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        user = self.scope.get("user")
        if user is None or not user.is_authenticated:
            await self.close(NOT_LOGGED_IN)
            return
        topics = _topics(self.scope["query_string"])
        if topics is None:
            await self.close(BAD_TOPICS)
            return
        run_id = int(self.scope["url_route"]["kwargs"]["run_id"])
        # Subscribed before the number is read: what is committed after hello is not missed.
        self._outbox = Outbox(topics, 1.0 / settings.KUBESCHED_FRAMES_PER_SECOND)
        for topic in topics:
            await self._join(groups.run_topic(run_id, topic))
        try:
            hello, marks = await _hello(run_id, user, topics)
        except SchedulerRun.DoesNotExist:
            await self.close(NOT_FOUND)
            return
        self._heard = Heard(marks)
        self._schedule_beat(run_id, topics)
        await self._tell(orjson.dumps(hello).decode())

    async def disconnect(self, code: int) -> None:
        self._outbox = None
        for timer in (self._timer, self._beat):
            if timer is not None:
                timer.cancel()
        for group in self._joined:
            await self.channel_layer.group_discard(group, self.channel_name)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """``{"ack": seq, "topic": topic}``; anything else is ignored."""
        if self._outbox is None or text_data is None:
            return
        with contextlib.suppress(orjson.JSONDecodeError):
            message = orjson.loads(text_data)
            if isinstance(message, dict) and isinstance(message.get("ack"), int):
                self._outbox.ack(str(message.get("topic")), message["ack"])
                await self._pump()

    async def relay_frame(self, event: dict[str, Any]) -> None:
        """A frame came through the channel layer."""
        if self._outbox is None:
            return
        if self._heard is not None:
            self._heard.note(event["topic"], event["frame"])
        self._outbox.offer(event["topic"], event["frame"])
        await self._pump()

    async def _join(self, group: str) -> None:
        await self.channel_layer.group_add(group, self.channel_name)
        self._joined.append(group)

    async def _pump(self) -> None:
        """Send what may be sent, and come back when more may be."""
        loop = asyncio.get_running_loop()
        async with self._sending:
            while self._outbox is not None:
                message = self._outbox.take(loop.time())
                if message is None:
                    break
                await self._tell(message)
            delay = None if self._outbox is None else self._outbox.delay(loop.time())
            # Set anew: what came last may be due before what the timer was set for.
            if self._timer is not None:
                self._timer.cancel()
            self._timer = None if delay is None else loop.call_later(delay, self._on_timer)

    async def _tell(self, message: bytes | str) -> None:
        try:
            if isinstance(message, bytes):
                await self.send(bytes_data=message)
            else:
                await self.send(text_data=message)
        except Disconnected:
            # The browser left a moment ago; `disconnect` is on its way.
            self._outbox = None

    def _on_timer(self) -> None:
        self._timer = None
        self._spawn(self._pump())

    def _schedule_beat(self, run_id: int, topics: list[str]) -> None:
        self._beat = asyncio.get_running_loop().call_later(
            BEAT_SECONDS, lambda: self._spawn(self._look(run_id, topics))
        )

    async def _look(self, run_id: int, topics: list[str]) -> None:
        """Close where frames were lost, the run is gone, or the person has logged out."""
        try:
            if not await _is_logged_in(self.scope):
                await self._leave(NOT_LOGGED_IN)
                return
            marks = await database_sync_to_async(heard.marks)(run_id, topics)
        except SchedulerRun.DoesNotExist:
            await self._leave(NOT_FOUND)
            return
        except DatabaseError as error:
            logger.warning("run %s: not compared with the database: %s", run_id, error)
            marks = {}
        if self._outbox is None or self._heard is None:
            return
        if self._heard.has_missed(marks):
            await self._leave(TRY_AGAIN)
            return
        self._schedule_beat(run_id, topics)

    async def _leave(self, code: int) -> None:
        if self._outbox is None:
            return
        self._outbox = None
        with contextlib.suppress(Disconnected):
            await self.close(code)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _topics(query_string: bytes) -> list[str] | None:
    """The topics asked for, or None where one is unknown or none is named."""
    asked = parse_qs(query_string.decode("ascii", "replace")).get("topics", [""])[-1]
    topics = list(dict.fromkeys(topic for topic in asked.split(",") if topic))
    if not topics or any(topic not in groups.TOPICS for topic in topics):
        return None
    return topics


@database_sync_to_async
def _is_logged_in(scope: dict[str, Any]) -> bool:
    """Whether the session that opened the socket is still one of this person: not logged out, not
    expired, password and account as they were. The scope's own session is what it was then."""
    opened, user = scope.get("session"), scope["user"]
    key = getattr(opened, "session_key", None)
    if key is None:
        return True  # not opened by a browser's session
    now = import_module(settings.SESSION_ENGINE).SessionStore(key)
    account = get_user_model().objects.filter(pk=user.pk, is_active=True).first()
    if account is None or now.get(SESSION_KEY) != str(user.pk):
        return False
    return constant_time_compare(now.get(HASH_SESSION_KEY, ""), account.get_session_auth_hash())


@database_sync_to_async
def _hello(
    run_id: int, user: Any, topics: list[str]
) -> tuple[dict[str, Any], dict[str, heard.Mark]]:
    """The first message, and what the page is taken to know once it has asked for the rest.

    Raises:
        SchedulerRun.DoesNotExist: there is no such run.
    """
    if run_id > MAX_INT:
        raise SchedulerRun.DoesNotExist
    marks = heard.marks(run_id, topics)
    run = SchedulerRun.objects.only("commit_seq").get(pk=run_id)
    hello = {
        "type": "hello",
        "run": run.pk,
        "seq": run.commit_seq,
        "now": commits.clock_now(RunState.objects.filter(run=run).first()),
        "permissions": [name for name in PERMISSIONS if user.has_perm(name)],
    }
    return hello, marks
