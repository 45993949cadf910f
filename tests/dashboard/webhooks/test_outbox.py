"""What becomes a message, in the transaction of the fact; delivered to a real receiver."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import transaction

from dashboard import permits
from dashboard.models import SchedulerRun, WaitingPod
from dashboard.permits import Target
from dashboard.webhooks import endpoints, gangs, outbox
from dashboard.webhooks.models import (
    WebhookDelivery,
    WebhookEndpoint,
    WebhookGang,
    WebhookMessage,
)
from scheduler_core.api import NATIVE_POD_GROUP
from scheduler_core.plugins.helpers.gangs import quorum_plugin
from scheduler_core.records import ApprovalTerms, PendingPlugin, WaitOutcome
from tests.dashboard.factory import binding, pod, resolved, wait
from tests.dashboard.told_waits import gang, told, waiting
from tests.dashboard.webhooks.conftest import Post
from tests.dashboard.webhooks.receiver import Receiver

pytestmark = pytest.mark.django_db(transaction=True)
EndpointAt = Callable[..., WebhookEndpoint]


@pytest.fixture
def chat(receive: Callable[..., Receiver], endpoint_at: EndpointAt) -> Receiver:
    """A receiver that is told everything about gangs that need a person."""
    receiver = receive()
    endpoint_at(receiver.url)
    return receiver


def decide(user: User, verdict: str, *rows: WaitingPod) -> None:
    answers = permits.decide(
        user, verdict, Target.rows(rows[0].run_id, [row.pk for row in rows]), comment="because"
    )
    assert all(answer.ok for answer in answers)


def ended(row: WaitingPod, outcome: str, **fields: Any) -> Any:
    values = {"pod_group": row.pod_group, "group_min_member": row.group_min_member}
    return resolved(row.cycle, row.name, outcome, **{**values, **fields})


def test_a_gang_is_one_message_with_all_its_pods(
    run: SchedulerRun, chat: Receiver, post: Post
) -> None:
    rows = gang(run, "a", "b", requested_by="alice")
    post.deliver()
    (message,) = chat.got
    body = message.json
    assert body["type"] == "gang.waiting"
    data = body["data"]
    assert data["run"] == {"id": run.pk, "name": "run", "cluster": "c-run"}
    assert data["gang"] == {
        "uid": "pg-1",
        "key": "default/gang",
        "namespace": "default",
        "name": "gang",
        "min_member": 2,
    }
    assert (data["sequence"], data["outcome"], data["needs_approval"]) == (1, "waiting", True)
    assert [(p["uid"], p["wait"], p["node"]) for p in data["pods"]] == [
        ("uid-a", rows[0].pk, "node-2"),
        ("uid-b", rows[1].pk, "node-2"),
    ]
    assert data["requested_by"] == ["alice"]
    assert data["deadline"].endswith("Z")
    assert data["links"]["approve"] == f"/api/v1/gangs/pg-1/approve?run={run.pk}"


def test_links_begin_with_the_sites_address_where_it_is_known(
    run: SchedulerRun, chat: Receiver, post: Post, settings: Any
) -> None:
    settings.KUBESCHED_SITE_URL = "https://kubesched.example.org"
    waiting(run, "solo")
    post.deliver()
    links = chat.got[0].json["data"]["links"]
    assert links["page"] == f"https://kubesched.example.org/runs/{run.pk}/waiting/"


def test_a_pod_without_a_gang_is_a_gang_of_one(
    run: SchedulerRun, chat: Receiver, post: Post, operator: User
) -> None:
    row = waiting(run, "solo")
    decide(operator, "deny", row)
    post.deliver()
    assert chat.told == ["gang.waiting waiting", "gang.decided denied"]
    data = chat.got[1].json["data"]
    assert data["gang"] is None
    assert (data["denied_by"]["user"], data["denied_by"]["comment"]) == ("olga", "because")


def case(id: str, *steps: Any, expect: list[str]) -> Any:
    return pytest.param(steps, expect, id=id)


def approve(*names: str) -> Any:
    return ("approve", names)


def deny(*names: str) -> Any:
    return ("deny", names)


def revoke(*names: str) -> Any:
    return ("revoke", names)


def end(outcome: str, *names: str, **fields: Any) -> Any:
    return ("end", outcome, names, fields)


W, A, D = "gang.waiting waiting", "gang.decided approved", "gang.decided denied"


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        case("approved pod by pod", approve("a"), approve("b"), expect=[W, A]),
        case("approved at once", approve("a", "b"), expect=[W, A]),
        case("approved, then bound", approve("a", "b"), end("allowed", "a", "b"), expect=[W, A]),
        case("one denied, the other follows", deny("a"), end("rejected", "a", "b"), expect=[W, D]),
        case("half approved is not decided", approve("a"), expect=[W]),
        case(
            "its time runs out",
            approve("a"),
            end("timed_out", "b"),
            end("rejected", "a"),
            expect=[W, "gang.expired expired"],
        ),
        case("nobody clicked", end("timed_out", "a", "b"), expect=[W, "gang.expired expired"]),
        case(
            "the scheduler gave it up",
            end("rejected", "a", "b"),
            expect=[W, "gang.decided rejected"],
        ),
        case("preempted", end("preempted", "a", "b"), expect=[W, "gang.decided preempted"]),
        case("deleted", end("removed", "a", "b"), expect=[W, "gang.decided removed"]),
        case("let go without a person", end("allowed", "a", "b"), expect=[W, A]),
        case(
            "taken back, and given again",
            approve("a", "b"),
            revoke("a"),
            approve("a"),
            expect=[W, A, W, A],
        ),
        case(
            "taken back before all are approved",
            approve("a"),
            revoke("a"),
            approve("a", "b"),
            expect=[W, W, A],
        ),
        case(
            "approved, but lost",
            approve("a", "b"),
            end("preempted", "a", "b"),
            expect=[W, A, "gang.decided preempted"],
        ),
        case(
            "approved and let go, then broken",
            approve("a", "b"),
            end("allowed", "a", "b", let_go=True),
            end("broken", "a"),
            expect=[W, A, "gang.decided broken"],
        ),
        case(
            "bound one by one",
            approve("a", "b"),
            end("allowed", "a", "b", let_go=True),
            ("bind", "a"),
            ("bind", "b"),
            expect=[W, A],
        ),
    ],
)
def test_what_a_gang_is_told_to_come_to(
    run: SchedulerRun,
    chat: Receiver,
    post: Post,
    operator: User,
    steps: Any,
    expected: list[str],
) -> None:
    rows = {row.name: row for row in gang(run, "a", "b")}
    for step, *rest in steps:
        if step == "end":
            outcome, names, fields = rest
            told(run, *[ended(rows[name], outcome, **fields) for name in names])
        elif step == "bind":
            told(run, binding(rows[rest[0]].cycle, rest[0]))
        else:
            decide(operator, step, *[rows[name] for name in rest[0]])
    post.deliver()
    assert chat.told == expected
    assert [m.json["data"]["sequence"] for m in chat.got] == list(range(1, len(expected) + 1))


COSCHEDULING = PendingPlugin("Coscheduling", 9e9, "waits for its gang")
NATIVE = PendingPlugin("GangScheduling", 9e9, "waits for its gang")
PERSON = PendingPlugin("ManualApproval", 9e9, "waits for a person")


def member(number: int, *pending: PendingPlugin, **fields: Any) -> Any:
    """A record of one of three members."""
    values = {"pod_group": "default/gang", "group_min_member": 3, "gang_uid": "pg-1"}
    return wait(number, f"m{number}", pending=pending, **{**values, **fields})


@pytest.mark.parametrize("quorum", [COSCHEDULING, NATIVE], ids=lambda plugin: plugin.plugin)
def test_a_gang_starts_to_wait_once_its_quorum_does(
    run: SchedulerRun, chat: Receiver, post: Post, quorum: PendingPlugin
) -> None:
    told(run, member(1, quorum, PERSON))
    told(run, member(2, quorum, PERSON))
    assert post.deliver() == 0
    # The last one needs not wait for the others; they are told of that in batches of their own.
    told(run, member(3, PERSON))
    told(run, member(1, PERSON))
    told(run, member(2, PERSON))
    post.deliver()
    assert chat.told == [W]
    assert chat.got[0].json["data"]["pods_total"] == 3


def test_a_single_pod_starts_to_wait_at_once(run: SchedulerRun, chat: Receiver, post: Post) -> None:
    waiting(run, "solo")
    post.deliver()
    assert chat.told == [W]


def test_a_member_that_joins_a_gang_that_runs_waits_on_its_own(
    run: SchedulerRun, chat: Receiver, post: Post
) -> None:
    """The others are bound: there is no quorum to wait for."""
    told(run, member(4, PERSON))
    post.deliver()
    assert chat.told == [W]


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        pytest.param("timed_out", ["gang.expired expired"], id="its time is over"),
        pytest.param("broken", ["gang.decided broken"], id="a node was deleted"),
        pytest.param("rejected", [], id="given up, as may happen again and again"),
        pytest.param("removed", [], id="its pods were deleted"),
    ],
)
def test_a_gang_that_ends_before_its_quorum_waits(
    run: SchedulerRun, chat: Receiver, post: Post, outcome: str, expected: list[str]
) -> None:
    told(run, member(1, COSCHEDULING, PERSON))
    told(run, member(1, outcome=WaitOutcome(outcome), message="no", resolved_at=1_800_000_009.0))
    post.deliver()
    assert chat.told == expected
    assert WebhookGang.objects.count() == 0


def test_a_person_may_decide_before_the_quorum_waits(
    run: SchedulerRun, chat: Receiver, post: Post, operator: User
) -> None:
    told(run, member(1, COSCHEDULING, PERSON))
    permits.decide(operator, "deny", Target.whole_gang(run.pk, "default/gang"))
    post.deliver()
    assert chat.told == [D]


def test_two_gangs_of_one_name_are_told_of_apart(
    run: SchedulerRun, chat: Receiver, post: Post, operator: User
) -> None:
    rows = gang(run, "a0", "a1", uid="pg-1")
    gang(run, "b0", "b1", uid="pg-2")
    decide(operator, "approve", *rows)
    post.deliver()
    assert [(m.json["data"]["gang"]["uid"], m.json["type"]) for m in chat.got] == [
        ("pg-1", "gang.waiting"),
        ("pg-2", "gang.waiting"),
        ("pg-1", "gang.decided"),
    ]
    assert {m.json["data"]["pods_total"] for m in chat.got} == {2}


def test_the_plugins_that_count_a_gang_are_the_schedulers() -> None:
    assert {quorum_plugin(kind) for kind in ("PodGroup", NATIVE_POD_GROUP)} == (
        gangs.QUORUM_PLUGINS
    )


def test_a_whole_gang_with_members_still_to_come_is_decided_by_one_approval(
    run: SchedulerRun, chat: Receiver, post: Post, operator: User
) -> None:
    gang(run, "a", group_min_member=3)
    permits.decide(operator, "approve", Target.whole_gang(run.pk, "default/gang"))
    post.deliver()
    assert chat.told == [W, A]
    assert [(p["user"], p["for_gang"]) for p in chat.got[1].json["data"]["approvers"]] == [
        ("olga", True)
    ]


def test_two_people_are_needed(
    run: SchedulerRun, chat: Receiver, post: Post, operator: User, second_operator: User
) -> None:
    row = waiting(run, "solo")
    WaitingPod.objects.filter(pk=row.pk).update(terms={"approvers": 2})
    decide(operator, "approve", row)
    post.deliver()
    assert chat.told == [W]
    decide(second_operator, "approve", row)
    post.deliver()
    assert chat.told == [W, A]
    data = chat.got[1].json["data"]
    assert [given["user"] for given in data["approvers"]] == ["olga", "otto"]
    assert data["approvals_needed"] == 2


def test_an_approval_that_is_taken_back_is_told(
    run: SchedulerRun, chat: Receiver, post: Post, operator: User
) -> None:
    row = waiting(run, "solo")
    WaitingPod.objects.filter(pk=row.pk).update(terms={"approvers": 2})
    decide(operator, "approve", row)
    decide(operator, "revoke", row)
    post.deliver()
    assert chat.told == [W, W]
    assert [m.json["data"]["sequence"] for m in chat.got] == [1, 2]
    assert chat.got[1].json["data"]["approvers"] == []


def test_a_whole_gangs_approval_that_is_taken_back_is_one_message(
    run: SchedulerRun, chat: Receiver, post: Post, operator: User
) -> None:
    rows = gang(run, "a", "b")
    WaitingPod.objects.filter(run=run).update(terms={"approvers": 2})
    everybody = Target.whole_gang(run.pk, rows[0].pod_group)
    for verdict in ("approve", "revoke"):
        permits.decide(operator, verdict, everybody)
    post.deliver()
    assert chat.told == [W, W]


def test_a_bound_pod_ends_the_telling(
    run: SchedulerRun, chat: Receiver, post: Post, operator: User
) -> None:
    row = waiting(run, "solo")
    decide(operator, "approve", row)
    told(run, ended(row, "allowed", let_go=True))
    assert WebhookGang.objects.count() == 1
    told(run, binding(row.cycle, "solo"))
    assert WebhookGang.objects.count() == 0
    post.deliver()
    assert chat.told == [W, A]


def test_a_gang_that_waits_again_is_told_anew(
    run: SchedulerRun, chat: Receiver, post: Post
) -> None:
    rows = gang(run, "a", "b")
    told(run, *[ended(row, "timed_out") for row in rows])
    gang(run, "a", "b", since=1_800_000_100.0)
    post.deliver()
    assert chat.told == [W, "gang.expired expired", W]
    assert chat.got[2].json["data"]["pods_total"] == 2
    assert chat.got[2].json["data"]["sequence"] == 1


def again(rows: list[WaitingPod], since: float, first: int = 101) -> list[Any]:
    """Records of the same pods, parked anew."""
    return [
        wait(
            first + i,
            row.name,
            pod_group=row.pod_group,
            group_min_member=row.group_min_member,
            gang_uid=row.gang_uid,
            since=since,
        )
        for i, row in enumerate(rows)
    ]


@pytest.mark.parametrize("single", [False, True], ids=["a gang", "a pod"])
def test_an_end_and_the_next_begin_in_one_batch_are_both_told(
    run: SchedulerRun, chat: Receiver, post: Post, single: bool
) -> None:
    rows = [waiting(run, "solo")] if single else gang(run, "a", "b")
    ends = [ended(row, "timed_out", message="nobody decided") for row in rows]
    told(run, *ends, *again(rows, ends[0].resolved_at + 0.003))
    post.deliver()
    assert chat.told == [W, "gang.expired expired", W]
    expired, anew = (message.json["data"] for message in chat.got[1:])
    assert (expired["message"], expired["pods_total"]) == ("nobody decided", len(rows))
    assert (anew["sequence"], anew["pods_total"]) == (1, len(rows))
    assert {pod["wait"] for pod in anew["pods"]}.isdisjoint(row.pk for row in rows)
    # The new wait ends as what it is, in its own words.
    last = list(WaitingPod.objects.filter(run=run, state="waiting"))
    told(
        run,
        *[
            ended(
                row,
                "removed",
                since=row.since,
                message="the pod was deleted",
                resolved_at=row.since + 60,
            )
            for row in last
        ],
    )
    post.deliver()
    assert chat.told[3:] == ["gang.decided removed"]
    assert chat.got[3].json["data"]["message"] == "the pod was deleted"
    assert WebhookGang.objects.count() == 0


def test_of_a_wait_between_two_within_one_batch_the_others_are_told(
    run: SchedulerRun, chat: Receiver, post: Post
) -> None:
    """The one between came and went before anybody could be told."""
    rows = gang(run, "a", "b")
    at = rows[0].since
    brief = again(rows, at + 10)
    told(
        run,
        *[ended(row, "timed_out", resolved_at=at + 9) for row in rows],
        *brief,
        *[
            resolved(
                r.cycle,
                r.pod.name,
                "rejected",
                pod_group=r.pod_group,
                group_min_member=2,
                gang_uid=r.gang_uid,
                since=r.since,
                resolved_at=at + 11,
            )
            for r in brief
        ],
        *again(rows, at + 12, 201),
    )
    post.deliver()
    assert chat.told == [W, "gang.expired expired", W]
    assert chat.got[2].json["data"]["pods_total"] == 2


def test_a_member_that_waits_again_while_others_do_is_of_the_same_wait(
    run: SchedulerRun, chat: Receiver, post: Post
) -> None:
    rows = gang(run, "a", "b")
    told(run, ended(rows[0], "removed"), *again(rows[:1], rows[0].since + 20))
    post.deliver()
    assert chat.told == [W]


def test_a_wait_that_came_and_went_in_one_transaction_is_no_news(
    run: SchedulerRun, chat: Receiver, post: Post
) -> None:
    told(run, wait(1, "brief"), resolved(1, "brief"))
    assert post.deliver() == 0


def test_but_that_its_time_was_over_before_anybody_could_be_told_is(
    run: SchedulerRun, chat: Receiver, post: Post, operator: User
) -> None:
    """The database was away for as long as people were asked."""
    told(run, wait(1, "brief"), resolved(1, "brief", "timed_out"))
    post.deliver()
    assert chat.told == ["gang.expired expired"]
    told(run, resolved(1, "brief", "timed_out"))
    assert post.deliver() == 0


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({"namespaces": ["shop"]}, 0, id="another namespace"),
        pytest.param({"namespaces": ["default", "shop"]}, 2, id="its namespace"),
        pytest.param({"events": ["gang.waiting"]}, 1, id="one event"),
        pytest.param({"events": ["gang.decided"]}, 0, id="an event that does not come"),
    ],
)
def test_filters_of_an_endpoint(
    run: SchedulerRun,
    receive: Callable[..., Receiver],
    endpoint_at: EndpointAt,
    post: Post,
    fields: dict[str, Any],
    expected: int,
) -> None:
    endpoint_at(receive().url, **fields)
    row = waiting(run, "solo")
    told(run, ended(row, "timed_out"))
    assert post.deliver() == expected
    assert WebhookMessage.objects.count() == expected, "a message that nobody gets is not kept"


def test_gangs_that_need_nobody_are_told_only_where_that_is_wanted(
    run: SchedulerRun, receive: Callable[..., Receiver], endpoint_at: EndpointAt, post: Post
) -> None:
    all_of_them, asked = receive(), receive()
    endpoint_at(all_of_them.url, only_approval=False)
    endpoint_at(asked.url)
    gang(run, "a", group_min_member=2, needs_approval=False)
    post.deliver()
    assert (all_of_them.told, asked.told) == ([W], [])
    # The second member is one that a person has to approve.
    told(run, wait(2, "b", pod_group="default/gang", group_min_member=2, gang_uid="pg-1"))
    post.deliver()
    assert (all_of_them.told, asked.told) == ([W, W], [W])
    assert asked.got[0].json["data"]["pods_total"] == 2


def test_an_endpoint_that_is_made_late_hears_of_what_changes_then(
    run: SchedulerRun, receive: Callable[..., Receiver], endpoint_at: EndpointAt, post: Post
) -> None:
    rows = gang(run, "a", "b")
    receiver = receive()
    endpoint_at(receiver.url)
    told(run, ended(rows[0], "timed_out"))
    told(run, ended(rows[1], "rejected"))
    post.deliver()
    assert receiver.told == ["gang.expired expired"]


@pytest.mark.parametrize("others", [False, True], ids=["the first one", "one of two"])
@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({}, [], id="nothing changed for the gang"),
        pytest.param({"terms": ApprovalTerms(approvers=2)}, [], id="more people"),
        pytest.param({"needs_approval": True}, [W], id="it begins to need a person"),
    ],
)
def test_an_endpoint_that_is_made_late_is_not_told_of_what_waited_before(
    run: SchedulerRun,
    receive: Callable[..., Receiver],
    endpoint_at: EndpointAt,
    post: Post,
    fields: dict[str, Any],
    expected: list[str],
    others: bool,
) -> None:
    if others:
        endpoint_at(receive().url, only_approval=False)
    rows = gang(run, "a", "b", needs_approval=not expected)
    receiver = receive()
    endpoint_at(receiver.url)
    values = {"pod_group": rows[0].pod_group, "group_min_member": 2, "gang_uid": "pg-1"}
    for row in rows:
        told(run, wait(row.cycle, row.name, **{**values, "since": row.since, **fields}))
    post.deliver()
    assert receiver.told == expected


def test_an_endpoint_that_is_made_late_hears_that_a_gang_becomes_complete(
    run: SchedulerRun, receive: Callable[..., Receiver], endpoint_at: EndpointAt, post: Post
) -> None:
    told(run, member(1, COSCHEDULING, PERSON))
    receiver = receive()
    endpoint_at(receiver.url)
    told(run, member(1, PERSON), member(2, PERSON), member(3, PERSON))
    post.deliver()
    assert receiver.told == [W]


def test_what_was_known_before_a_pause_of_all_endpoints_is_forgotten(
    run: SchedulerRun,
    receive: Callable[..., Receiver],
    endpoint_at: EndpointAt,
    post: Post,
    manager: User,
) -> None:
    receiver = receive()
    endpoint = endpoint_at(receiver.url)
    rows = gang(run, "a", "b")
    endpoints.switch(manager, endpoint, False)
    told(run, *[ended(row, "timed_out") for row in rows])
    endpoints.switch(manager, endpoint, True)
    gang(run, "a", "b", since=1_800_000_100.0)
    post.deliver()
    assert receiver.told == [W, W]
    assert receiver.got[1].json["data"]["pods_total"] == 2


def test_a_decision_that_is_rolled_back_leaves_no_message(
    run: SchedulerRun, chat: Receiver, post: Post, operator: User
) -> None:
    row = waiting(run, "solo")
    with transaction.atomic():
        decide(operator, "approve", row)
        assert WebhookMessage.objects.count() == 2
        transaction.set_rollback(True)
    post.deliver()
    assert chat.told == [W]


def test_many_pods_of_a_gang_are_counted_and_the_first_are_named(
    run: SchedulerRun, chat: Receiver, post: Post
) -> None:
    gang(run, *[f"p{i}" for i in range(120)])
    post.deliver()
    data = chat.got[0].json["data"]
    assert (data["pods_total"], len(data["pods"])) == (120, 100)


def test_a_namespace_of_another_pod_of_the_same_batch_is_not_told(
    run: SchedulerRun, receive: Callable[..., Receiver], endpoint_at: EndpointAt, post: Post
) -> None:
    receiver = receive()
    endpoint_at(receiver.url, namespaces=["shop"])
    told(run, wait(1, "a"), wait(2, "b", pod=pod("b", "shop")))
    post.deliver()
    assert [m.json["data"]["namespace"] for m in receiver.got] == ["shop"]


def test_old_messages_are_forgotten_those_given_up_later(
    run: SchedulerRun, chat: Receiver, post: Post
) -> None:
    waiting(run, "a")
    waiting(run, "b")
    waiting(run, "c")
    post.deliver()
    first, second, third = WebhookMessage.objects.order_by("pk")
    aged = (outbox.KEPT, outbox.KEPT, outbox.KEPT_DEAD)
    for message, age in zip((first, second, third), aged, strict=True):
        at = message.created_at - age
        WebhookMessage.objects.filter(pk=message.pk).update(created_at=at)
    second.deliveries.update(state=WebhookDelivery.State.DEAD)
    third.deliveries.update(state=WebhookDelivery.State.PENDING)
    assert outbox.prune() == 1
    assert list(WebhookMessage.objects.order_by("pk")) == [second, third]
