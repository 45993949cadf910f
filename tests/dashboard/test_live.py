"""From a commit to a browser: publisher, channel layer on a real Redis, consumer."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

import orjson
import pytest
from asgiref.sync import sync_to_async
from autobahn.exception import Disconnected
from channels.layers import channel_layers
from channels.testing import WebsocketCommunicator
from django.conf import settings as django_settings
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.test import Client

from dashboard import consumers, heatmap, permits, selectors
from dashboard.models import SchedulerRun, WaitingPod
from dashboard.permits import Target
from dashboard.publisher import Publisher
from dashboard.recorder import Recorder
from kubesched_site.asgi import application
from tests.dashboard.factory import cycle, make_run, matrix, wait

pytestmark = pytest.mark.django_db(transaction=True)
Make = Callable[..., Recorder]


@pytest.fixture
def layer(redis_server: str, settings: Any) -> Iterator[None]:
    """The product's channel layer on a real Redis, for this test alone."""
    settings.CHANNEL_LAYERS = {
        "default": {
            "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
            "CONFIG": {"hosts": [redis_server], "prefix": f"t{time.monotonic_ns()}"},
        }
    }
    channel_layers.backends.clear()
    yield
    channel_layers.backends.clear()


@pytest.fixture
def publisher(layer: None) -> Iterator[Publisher]:
    made = Publisher(frames_per_second=50)
    yield made
    made.close()


@pytest.fixture
def recorder(run: SchedulerRun, publisher: Publisher, make_recorder: Make) -> Recorder:
    return make_recorder(run, publisher=publisher)


def cookie(user: User) -> str:
    client = Client()
    client.force_login(user)
    name = django_settings.SESSION_COOKIE_NAME
    return f"{name}={client.cookies[name].value}"


@asynccontextmanager
async def browser(
    run_id: int, topics: str, user: User | None, origin: str = "http://localhost"
) -> AsyncIterator[WebsocketCommunicator]:
    headers = [(b"origin", origin.encode()), (b"host", b"localhost")]
    if user is not None:
        headers.append((b"cookie", (await sync_to_async(cookie)(user)).encode()))
    socket = WebsocketCommunicator(application, f"/ws/runs/{run_id}/?topics={topics}", headers)
    try:
        yield socket
    finally:
        await socket.disconnect()


async def opened(socket: WebsocketCommunicator) -> dict[str, Any]:
    connected, _ = await socket.connect(timeout=10)
    assert connected
    return await frame(socket)


async def frame(socket: WebsocketCommunicator) -> dict[str, Any]:
    return orjson.loads(await socket.receive_from(timeout=10))


async def ack(socket: WebsocketCommunicator, topic: str, seq: int) -> None:
    await socket.send_to(orjson.dumps({"ack": seq, "topic": topic}).decode())


async def record(recorder: Recorder, *tell: Callable[[], None]) -> None:
    for one in tell:
        one()
    assert await asyncio.to_thread(recorder.flush)


# --- who may ----------------------------------------------------------------------------------


async def test_hello(run: SchedulerRun, operator: User, viewer: User, layer: None) -> None:
    async with browser(run.pk, "overview,cycles", operator) as socket:
        hello = await opened(socket)
    assert (hello["type"], hello["run"], hello["seq"]) == ("hello", run.pk, 0)
    assert abs(hello["now"] - time.time()) < 60
    assert set(hello["permissions"]) == {
        "dashboard.decide_waitingpod",
        "dashboard.control_run",
        "dashboard.add_cluster",
    }
    async with browser(run.pk, "overview", viewer) as socket:
        assert (await opened(socket))["permissions"] == []


@pytest.mark.parametrize(
    ("anonymous", "path", "code"),
    [
        pytest.param(True, ("{run}", "overview"), 4401, id="not logged in"),
        pytest.param(False, ("987654", "overview"), 4404, id="no such run"),
        pytest.param(False, (str(2**70), "overview"), 4404, id="no such number"),
        pytest.param(False, ("{run}", "secrets"), 4400, id="no such topic"),
        pytest.param(False, ("{run}", ""), 4400, id="no topic"),
    ],
)
async def test_closed_with_a_code(
    run: SchedulerRun,
    viewer: User,
    layer: None,
    anonymous: bool,
    path: tuple[str, str],
    code: int,
) -> None:
    run_id = int(path[0].format(run=run.pk))
    async with browser(run_id, path[1], None if anonymous else viewer) as socket:
        connected, _ = await socket.connect(timeout=10)
        assert connected
        assert await socket.receive_output(timeout=10) == {
            "type": "websocket.close",
            "code": code,
        }


async def test_another_sites_page_is_refused(
    run: SchedulerRun, operator: User, layer: None
) -> None:
    async with browser(run.pk, "overview", operator, "http://evil.example") as socket:
        connected, _ = await socket.connect(timeout=10)
        assert not connected


# --- what arrives -----------------------------------------------------------------------------


async def test_a_commit_reaches_the_page(
    run: SchedulerRun, viewer: User, recorder: Recorder
) -> None:
    async with browser(run.pk, "cycles", viewer) as socket:
        await opened(socket)
        await record(recorder, lambda: recorder.cycle_finished(cycle(1, "<b>")))
        got = await frame(socket)
    assert (got["type"], got["from"], got["seq"]) == ("cycles", 0, 1)
    assert got["cycles"][0]["pod"] == "default/<b>"


async def test_a_page_hears_only_its_own_run_and_topics(
    run: SchedulerRun, viewer: User, recorder: Recorder, publisher: Publisher
) -> None:
    other = await sync_to_async(make_run)("other")
    async with browser(run.pk, "cycles", viewer) as socket:
        await opened(socket)
        publisher.publish(other.pk, "cycles", {"type": "cycles", "run": other.pk, "seq": 1})
        await record(recorder, lambda: recorder.pod_waiting(wait(1)))
        assert await socket.receive_nothing(timeout=0.3)


async def test_what_comes_before_the_ack_is_merged(
    run: SchedulerRun, viewer: User, recorder: Recorder
) -> None:
    async with browser(run.pk, "cycles", viewer) as socket:
        await opened(socket)
        await record(recorder, lambda: recorder.cycle_finished(cycle(1)))
        first = await frame(socket)
        for sequence in (2, 3, 4):
            await record(recorder, lambda n=sequence: recorder.cycle_finished(cycle(n)))
        assert await socket.receive_nothing(timeout=0.3)
        await ack(socket, "cycles", first["seq"])
        second = await frame(socket)
    assert [row["sequence"] for row in second["cycles"]] == [2, 3, 4]
    assert second["from"] == first["seq"]


async def test_odd_messages_do_no_harm(run: SchedulerRun, viewer: User, recorder: Recorder) -> None:
    async with browser(run.pk, "cycles", viewer) as socket:
        await opened(socket)
        for text in ("{", "[]", "5", '{"ack": "x"}', '{"ack": 1, "topic": {}}'):
            await socket.send_to(text)
        await socket.send_to(bytes_data=b"\x00")
        await record(recorder, lambda: recorder.cycle_finished(cycle(1)))
        assert (await frame(socket))["seq"] == 1


async def test_a_gap_is_filled_from_the_database(
    run: SchedulerRun, viewer: User, recorder: Recorder, publisher: Publisher
) -> None:
    """Frames are lost while the page is away; its next frame shows the gap, the API fills it."""
    async with browser(run.pk, "cycles", viewer) as socket:
        await opened(socket)
        await record(recorder, lambda: recorder.cycle_finished(cycle(1)))
        last = (await frame(socket))["seq"]
    for sequence in (2, 3):
        await record(recorder, lambda n=sequence: recorder.cycle_finished(cycle(n)))
    await asyncio.sleep(0.1)
    async with browser(run.pk, "cycles", viewer) as socket:
        assert (await opened(socket))["seq"] == last + 2
        await record(recorder, lambda: recorder.cycle_finished(cycle(4)))
        later = await frame(socket)
        assert later["from"] > last
    fresh = await sync_to_async(SchedulerRun.objects.get)(pk=run.pk)
    answer = await sync_to_async(selectors.topic)(fresh, "cycles", last)
    assert [row["sequence"] for row in answer["cycles"]] == [2, 3, 4]
    assert answer["seq"] >= later["seq"]


async def test_heatmaps_full_then_delta(
    run: SchedulerRun, viewer: User, recorder: Recorder
) -> None:
    first, second = matrix(40), matrix(40)
    second.normalized[:, 9] = 1
    async with browser(run.pk, "heatmap", viewer) as socket:
        await opened(socket)
        await record(recorder, lambda: recorder.cycle_finished(cycle(1, matrix=first)))
        full = heatmap.decode(await socket.receive_from(timeout=10))
        await ack(socket, "heatmap", full.seq)
        await record(recorder, lambda: recorder.cycle_finished(cycle(2, matrix=second)))
        data = await socket.receive_from(timeout=10)
    assert data[4] == heatmap.DELTA
    assert (heatmap.decode(data, full).normalized == second.normalized).all()


async def test_two_people_see_one_decision(
    run: SchedulerRun,
    operator: User,
    viewer: User,
    recorder: Recorder,
    publisher: Publisher,
) -> None:
    await record(recorder, lambda: recorder.pod_waiting(wait(1)))
    await asyncio.sleep(0.1)
    row = await WaitingPod.objects.aget(run=run)
    async with (
        browser(run.pk, "waiting", operator) as mine,
        browser(run.pk, "waiting", viewer) as theirs,
    ):
        await opened(mine)
        await opened(theirs)
        await sync_to_async(permits.decide)(
            operator, "approve", Target.rows(run.pk, [row.pk]), publisher=publisher
        )
        for socket in (mine, theirs):
            got = await frame(socket)
            assert got["pods"][0]["state"] == "sent"
            assert got["pods"][0]["decision"]["user"] == "olga"


# --- the publisher ----------------------------------------------------------------------------


class SlowLayer:
    """Counts what is sent, and may fail."""

    def __init__(self) -> None:
        self.sent: list[tuple[float, str, Any]] = []
        self.failing = False
        self.got = threading.Event()

    async def group_send(self, group: str, message: dict[str, Any]) -> None:
        if self.failing:
            raise ConnectionError("redis is away")
        self.sent.append((time.monotonic(), group, message["frame"]))
        self.got.set()


def cycles_frame(n: int) -> dict[str, Any]:
    row = {"sequence": n, "commit_seq": n}
    return {"type": "cycles", "run": 1, "from": n - 1, "seq": n, "cycles": [row], "skipped": 0}


@pytest.mark.parametrize("last", ["hello", "overview"])
async def test_a_browser_that_left_in_the_middle_is_no_trouble(
    run: SchedulerRun, viewer: User, recorder: Recorder, last: str
) -> None:
    incoming: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    seen = asyncio.Event()

    async def send(message: dict[str, Any]) -> None:
        # What the web server does once the browser has closed its end.
        if message["type"] == "websocket.send" and orjson.loads(message["text"])["type"] == last:
            seen.set()
            raise Disconnected("Attempt to send on a closed protocol")
        if message["type"] == "websocket.send":
            seen.set()

    async with browser(run.pk, "overview", viewer) as socket:
        await opened(socket)
        serving = asyncio.ensure_future(application(dict(socket.scope), incoming.get, send))
        await incoming.put({"type": "websocket.connect"})
        await asyncio.wait_for(seen.wait(), 10)
        seen.clear()
        await record(recorder, lambda: recorder.cycle_finished(cycle(1)))
        if last == "overview":
            await asyncio.wait_for(seen.wait(), 10)
        assert (await frame(socket))["type"] == "overview"
        await incoming.put({"type": "websocket.disconnect", "code": 1001})
        await asyncio.wait_for(serving, 10)


async def test_a_page_whose_frames_are_lost_is_sent_away_to_come_back(
    run: SchedulerRun,
    viewer: User,
    layer: None,
    make_recorder: Make,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(consumers, "BEAT_SECONDS", 0.05)
    # Told to nobody: as if Redis were away.
    deaf = make_recorder(run)
    async with browser(run.pk, "cycles,waiting,run", viewer) as socket:
        await opened(socket)
        assert await socket.receive_nothing(timeout=0.3)
        await record(deaf, lambda: deaf.cycle_finished(cycle(1)))
        end = await socket.receive_output(timeout=10)
    assert (end["type"], end["code"]) == ("websocket.close", consumers.TRY_AGAIN)


def log_out(user: User) -> None:
    """Of every browser."""
    Session.objects.all().delete()


def lock_out(user: User) -> None:
    User.objects.filter(pk=user.pk).update(is_active=False)


@pytest.mark.parametrize(
    "leave",
    [
        pytest.param(log_out, id="logged out"),
        pytest.param(lock_out, id="account closed"),
    ],
)
async def test_a_socket_does_not_outlive_its_login(
    run: SchedulerRun,
    viewer: User,
    layer: None,
    monkeypatch: pytest.MonkeyPatch,
    leave: Callable[[User], None],
) -> None:
    monkeypatch.setattr(consumers, "BEAT_SECONDS", 0.05)
    async with browser(run.pk, "run", viewer) as socket:
        await opened(socket)
        assert await socket.receive_nothing(timeout=0.3)
        await sync_to_async(leave)(viewer)
        end = await socket.receive_output(timeout=10)
    assert (end["type"], end["code"]) == ("websocket.close", consumers.NOT_LOGGED_IN)


def test_the_pace_is_kept_and_nothing_is_lost() -> None:
    layer = SlowLayer()
    publisher = Publisher(lambda: layer, frames_per_second=20)
    for n in range(1, 301):
        publisher.publish(1, "cycles", cycles_frame(n))
        time.sleep(0.001)
    publisher.close()
    times = [at for at, _, _ in layer.sent]
    gaps = [b - a for a, b in pairwise(times[:-1])]  # the last is sent by close()
    assert all(gap > 0.04 for gap in gaps)
    assert len(layer.sent) < 15
    last = 0
    for _, group, got in layer.sent:
        assert group == "run.1.cycles"
        assert got["from"] == last
        last = got["seq"]
    assert last == 300


def test_a_layer_that_is_away_is_no_trouble(caplog: pytest.LogCaptureFixture) -> None:
    layer = SlowLayer()
    layer.failing = True
    publisher = Publisher(lambda: layer, frames_per_second=100)
    for n in (1, 2, 3):
        publisher.publish(1, "cycles", cycles_frame(n))
        time.sleep(0.03)
    layer.failing = False
    publisher.publish(1, "cycles", cycles_frame(4))
    assert layer.got.wait(5)
    publisher.close()
    publisher.close()
    publisher.publish(1, "cycles", cycles_frame(5))
    assert [got["from"] for _, _, got in layer.sent] == [3]  # the page sees the gap
    assert caplog.text.count("frames cannot be sent") == 1
