"""Delivery to real receivers: good, slow, failing, redirecting, gone; in order, and never lost."""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User

from dashboard import tasks
from dashboard.models import SchedulerRun
from dashboard.webhooks import delivery, endpoints, signing
from dashboard.webhooks.models import WebhookDelivery, WebhookEndpoint
from tests.dashboard.factory import resolved
from tests.dashboard.told_waits import told, waiting
from tests.dashboard.webhooks import receiver as behaviours
from tests.dashboard.webhooks.conftest import Post
from tests.dashboard.webhooks.receiver import Receiver

pytestmark = pytest.mark.django_db(transaction=True)
EndpointAt = Callable[..., WebhookEndpoint]
Receive = Callable[..., Receiver]


def only() -> WebhookDelivery:
    return WebhookDelivery.objects.get()


def test_a_message_is_signed_and_says_what_it_is(
    run: SchedulerRun, receive: Receive, endpoint_at: EndpointAt, post: Post
) -> None:
    receiver = receive(200)
    endpoint = endpoint_at(receiver.url + "?room=7")
    waiting(run, "solo")
    post.deliver()
    (got,) = receiver.got
    assert got.path == "/hook?room=7"
    assert got.headers["content-type"] == "application/json"
    assert got.headers["host"] == receiver.url.split("/")[2]
    assert got.id.startswith("msg_")
    at = int(got.headers["webhook-timestamp"])
    assert at == int(post.now.timestamp())
    secret: str = endpoint.text  # type: ignore[attr-defined]
    assert got.headers["webhook-signature"] == signing.signature(secret, got.id, at, got.body)
    row = only()
    assert (row.state, row.attempts, row.last_status, row.last_error) == ("delivered", 1, 200, "")


@pytest.mark.parametrize(
    ("answer", "status", "error"),
    [
        pytest.param(500, 500, "Answered 500.", id="a server error"),
        pytest.param(404, 404, "Answered 404.", id="not found"),
        pytest.param(
            (302, {"Location": "http://127.0.0.1:1/"}),
            302,
            "Answered 302, a redirect; redirects are not followed.",
            id="a redirect",
        ),
        pytest.param(behaviours.silent, None, "No answer within 0.3 s.", id="silent"),
        pytest.param(behaviours.slowly, None, "No answer within 0.3 s.", id="a byte now and then"),
        pytest.param(
            behaviours.rubbish, None, "The connection broke: ProtocolError.", id="no HTTP"
        ),
    ],
)
def test_a_failure_is_tried_again_later_and_says_why(
    run: SchedulerRun,
    receive: Receive,
    endpoint_at: EndpointAt,
    post: Post,
    answer: Any,
    status: int | None,
    error: str,
) -> None:
    receiver = receive(answer, 200)
    endpoint_at(receiver.url)
    waiting(run, "solo")
    post.timeout = 0.3
    post.deliver()
    row = only()
    assert (row.state, row.attempts, row.last_status, row.last_error) == (
        "pending",
        1,
        status,
        error,
    )
    assert post.later(1.9) == 0, "the backoff is two seconds"
    post.timeout = 5.0
    assert post.later(0.2) == 1
    assert only().state == "delivered"
    assert [message.id for message in receiver.got] == [receiver.got[0].id] * 2


def test_nobody_listens(run: SchedulerRun, endpoint_at: EndpointAt, post: Post) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    endpoint_at(f"http://127.0.0.1:{port}/")
    waiting(run, "solo")
    post.deliver()
    assert only().last_error == "No connection: nobody listens there."


def test_an_endless_answer_is_not_read(
    run: SchedulerRun, receive: Receive, endpoint_at: EndpointAt, post: Post
) -> None:
    receiver = receive(behaviours.endless)
    endpoint_at(receiver.url)
    waiting(run, "solo")
    post.deliver()
    assert only().state == "delivered"


def test_waits_grow_and_vary() -> None:
    longest = Post()
    shortest = Post(uniform=lambda low, high: low)
    waits = [longest._backoff(n, delivery.MOST_BACKOFF) for n in (1, 2, 3, 4, 11, 12, 500)]
    assert waits == [2, 4, 8, 16, 2048, 3600, 3600]
    assert shortest._backoff(4, delivery.MOST_BACKOFF) == 8


def test_what_is_too_old_is_given_up_and_can_be_sent_again(
    run: SchedulerRun, receive: Receive, endpoint_at: EndpointAt, post: Post, manager: User
) -> None:
    receiver = receive(500)
    endpoint_at(receiver.url)
    waiting(run, "solo")
    for _ in range(60):
        post.later(3600)
    row = only()
    assert (row.state, row.last_error) == ("dead", "Answered 500.")
    assert 20 < row.attempts < 40
    tried = len(receiver.got)
    assert post.later(10**6) == 0, "a message that is given up is not tried by itself"
    receiver.answers[:] = [200]
    assert endpoints.resend(manager, row)
    assert not endpoints.resend(manager, only()), "it is on its way already"
    WebhookDelivery.objects.update(give_up_at=post.now + timedelta(days=1))
    post.deliver()
    assert (only().state, len(receiver.got)) == ("delivered", tried + 1)
    assert len({message.id for message in receiver.got}) == 1


def test_a_gangs_messages_keep_their_order_and_other_gangs_go_on(
    run: SchedulerRun, receive: Receive, endpoint_at: EndpointAt, post: Post
) -> None:
    receiver = receive(400, 200)
    endpoint_at(receiver.url)
    row = waiting(run, "first")
    told(run, resolved(row.cycle, "first", "timed_out"))
    waiting(run, "second")
    post.deliver()

    def seen() -> list[tuple[str, str]]:
        return [
            (m.json["data"]["pods"][0]["name"], m.json["type"].removeprefix("gang."))
            for m in receiver.got
        ]

    assert seen() == [("first", "waiting"), ("second", "waiting")]
    post.later(2)
    assert seen()[2:] == [("first", "waiting"), ("first", "expired")]


def test_a_message_that_was_given_up_lets_the_next_one_go(
    run: SchedulerRun, receive: Receive, endpoint_at: EndpointAt, post: Post
) -> None:
    receiver = receive(200)
    endpoint_at(receiver.url)
    row = waiting(run, "solo")
    told(run, resolved(row.cycle, "solo", "timed_out"))
    first = WebhookDelivery.objects.order_by("pk")[0]
    WebhookDelivery.objects.filter(pk=first.pk).update(give_up_at=post.now)
    post.deliver()
    assert receiver.told == ["gang.expired expired"]
    first.refresh_from_db()
    assert first.state == "dead"
    assert first.last_error == "Given up: it was never this message's turn."


def test_a_server_that_is_down_is_not_asked_once_per_message(
    run: SchedulerRun, receive: Receive, endpoint_at: EndpointAt, post: Post
) -> None:
    receiver = receive(503)
    endpoint = endpoint_at(receiver.url)
    for number in range(20):
        waiting(run, f"p{number}")
    assert post.deliver() == delivery.FAILURES_BEFORE_REST
    endpoint.refresh_from_db()
    assert endpoint.retry_at is not None
    assert post.later(1) == 0
    assert post.later(1.1) == 1, "one more after its rest, which then doubles"
    assert post.later(3) == 0
    receiver.answers[:] = [200]
    assert post.later(10) == 20, "then everything"
    endpoint.refresh_from_db()
    assert (endpoint.failures, endpoint.retry_at) == (0, None)


def test_a_receiver_may_ask_for_time(
    run: SchedulerRun, receive: Receive, endpoint_at: EndpointAt, post: Post
) -> None:
    receiver = receive((429, {"Retry-After": "120"}), 200)
    endpoint_at(receiver.url)
    waiting(run, "a")
    waiting(run, "b")
    assert post.deliver() == 1
    assert post.later(119) == 0
    assert post.later(2) == 2


def test_gone_ends_the_endpoint(
    run: SchedulerRun, receive: Receive, endpoint_at: EndpointAt, post: Post
) -> None:
    endpoint = endpoint_at(receive(410).url)
    waiting(run, "a")
    waiting(run, "b")
    assert post.deliver() == 1
    endpoint.refresh_from_db()
    assert not endpoint.active
    assert endpoint.stopped_because.startswith("The receiver answered 410 (gone) at ")
    waiting(run, "c")
    assert WebhookDelivery.objects.count() == 2, "nobody is told any more"
    assert WebhookDelivery.objects.order_by("pk")[0].state == "dead"


def test_an_endpoint_is_served_by_one_worker_at_a_time(
    run: SchedulerRun, receive: Receive, endpoint_at: EndpointAt, post: Post
) -> None:
    endpoint = endpoint_at(receive(200).url)
    waiting(run, "solo")
    assert post.claim() == [endpoint.pk]
    assert post.claim() == []
    post.now += timedelta(seconds=post.timeout + delivery.CLAIM_SPARE_SECONDS + 1)
    assert post.claim() == [endpoint.pk], "that worker has died"
    assert post.serve(endpoint.pk) == 1
    endpoint.refresh_from_db()
    assert endpoint.claimed_until is None


def test_slow_endpoints_leave_workers_for_other_tasks(
    run: SchedulerRun, receive: Receive, endpoint_at: EndpointAt, post: Post
) -> None:
    url = receive(200).url
    for _ in range(delivery.MOST_AT_ONCE + 2):
        endpoint_at(url)
    waiting(run, "solo")
    first = post.claim()
    assert len(first) == delivery.MOST_AT_ONCE
    assert post.claim() == []
    for endpoint in first:
        post.serve(endpoint)
    assert len(post.claim()) == 2


def test_a_worker_that_dies_after_sending_sends_again(
    run: SchedulerRun, receive: Receive, endpoint_at: EndpointAt, post: Post
) -> None:
    receiver = receive(200)
    endpoint_at(receiver.url)
    waiting(run, "solo")

    class Killed(BaseException):
        pass

    def send_and_die(*args: Any, **options: Any) -> Any:
        delivery.send(*args, **options)
        raise Killed

    post.send = send_and_die
    with pytest.raises(Killed):
        post.deliver()
    assert only().state == "pending"
    post.send = delivery.send
    post.deliver()
    assert only().state == "delivered"
    assert len(receiver.got) == 2
    assert receiver.got[0].id == receiver.got[1].id, "by which the receiver knows it"


def test_an_old_secret_signs_for_a_day_as_well(
    run: SchedulerRun, receive: Receive, endpoint_at: EndpointAt, post: Post, manager: User
) -> None:
    receiver = receive(200)
    endpoint = endpoint_at(receiver.url)
    old: str = endpoint.text  # type: ignore[attr-defined]
    new = endpoints.renew_secret(manager, endpoint)
    for wait_seconds in (0, 25 * 3600):
        post.now += timedelta(seconds=wait_seconds)
        WebhookEndpoint.objects.update(retry_at=None)
        endpoints.test(manager, endpoint)
        WebhookDelivery.objects.update(give_up_at=post.now + timedelta(hours=1))
        post.deliver()
    first, second = receiver.got
    for got, secrets in ((first, [new, old]), (second, [new])):
        at = int(got.headers["webhook-timestamp"])
        expected = [signing.signature(secret, got.id, at, got.body) for secret in secrets]
        assert got.headers["webhook-signature"].split(" ") == expected


def test_a_changed_secret_key_is_said_in_words(
    run: SchedulerRun, receive: Receive, endpoint_at: EndpointAt, post: Post, settings: Any
) -> None:
    receiver = receive(200)
    endpoint_at(receiver.url)
    waiting(run, "solo")
    before, settings.SECRET_KEY = settings.SECRET_KEY, "another"
    post.deliver()
    assert only().last_error == (
        "The secret cannot be read, because SECRET_KEY has changed. Make a new secret."
    )
    assert receiver.got == []
    settings.SECRET_KEY_FALLBACKS = [before]
    post.later(3)
    assert only().state == "delivered"


def test_neither_secret_nor_path_gets_into_the_log(
    run: SchedulerRun,
    receive: Receive,
    endpoint_at: EndpointAt,
    post: Post,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    receiver = receive(500)
    endpoint = endpoint_at(receiver.url + "/secret-room")
    waiting(run, "solo")
    post.deliver()
    ours = [r.getMessage() for r in caplog.records if r.name.startswith("dashboard")]
    assert any("Answered 500." in line for line in ours)
    secret: str = endpoint.text  # type: ignore[attr-defined]
    assert not any(secret in line or "secret-room" in line for line in caplog.messages)


def test_the_tasks_deliver(
    run: SchedulerRun, receive: Receive, endpoint_at: EndpointAt, settings: Any
) -> None:
    receiver = receive(200)
    endpoint = endpoint_at(receiver.url)
    waiting(run, "solo")
    settings.CELERY_TASK_ALWAYS_EAGER = True
    sent: list[int] = []
    original = tasks.serve_webhook.apply_async
    tasks.serve_webhook.apply_async = lambda args: sent.append(args[0])  # type: ignore[method-assign]
    try:
        assert tasks.deliver_webhooks.apply().get() == 1
    finally:
        tasks.serve_webhook.apply_async = original  # type: ignore[method-assign]
    assert sent == [endpoint.pk]
    tasks.serve_webhook.apply(args=(endpoint.pk,)).get()
    assert receiver.told == ["gang.waiting waiting"]


def test_time_is_bounded_as_a_whole(receive: Receive) -> None:
    receiver = receive(behaviours.slowly)
    began = time.monotonic()
    result = delivery.send(receiver.url, b"{}", {}, timeout=0.3)
    assert result.error == "No answer within 0.3 s."
    assert time.monotonic() - began < 10, "and not for as long as bytes come"
