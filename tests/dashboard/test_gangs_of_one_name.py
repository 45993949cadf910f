"""A gang of scheduling.x-k8s.io and a native one that share a name: told apart by uid, in
decisions, standing approvals, on the pages' side and by REST."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from dashboard import permits
from dashboard.models import SchedulerRun, WaitingPod
from dashboard.permits import Target
from dashboard.permits_models import GangApproval
from tests.dashboard.factory import NOW, wait
from tests.dashboard.told_waits import gang, told

pytestmark = pytest.mark.django_db(transaction=True)
NAME = "default/gang"


@pytest.fixture
def namesakes(run: SchedulerRun) -> tuple[list[WaitingPod], list[WaitingPod]]:
    """Two pods of each; the second gang's time runs out earlier."""
    one = gang(run, "a0", "a1", uid="pg-1")
    return one, gang(run, "b0", "b1", uid="pg-2", deadline=NOW + 60)


def states(run: SchedulerRun) -> dict[str, str]:
    return {row.name: str(row.state) for row in WaitingPod.objects.filter(run=run)}


def post(client: Client, path: str, **body: Any) -> Any:
    return client.post(path, body, content_type="application/json")


@pytest.mark.usefixtures("namesakes")
class TestDecisions:
    def test_a_word_is_for_the_gang_with_the_uid(self, run: SchedulerRun, operator: User) -> None:
        answers = permits.decide(
            operator, "approve", Target.whole_gang(run.pk, NAME, "pg-1"), now=NOW
        )
        assert [answer.pod for answer in answers] == ["default/a0", "default/a1"]
        assert states(run) == {"a0": "sent", "a1": "sent", "b0": "waiting", "b1": "waiting"}

    def test_the_name_alone_is_refused_and_says_what_there_is(
        self, run: SchedulerRun, operator: User
    ) -> None:
        with pytest.raises(permits.AmbiguousGang) as refused:
            permits.decide(operator, "approve", Target.whole_gang(run.pk, NAME), now=NOW)
        assert str(refused.value) == (
            '2 gangs called "default/gang" wait; say which by the uid of its PodGroup:'
            " pg-1 and pg-2."
        )
        assert set(states(run).values()) == {"waiting"}

    def test_the_name_is_enough_where_one_waits(self, run: SchedulerRun, operator: User) -> None:
        WaitingPod.objects.filter(gang_uid="pg-2").update(state="rejected")
        permits.decide(operator, "approve", Target.whole_gang(run.pk, NAME), now=NOW)
        assert states(run)["a0"] == "sent"

    def test_each_has_a_deadline_of_its_own(self, run: SchedulerRun, operator: User) -> None:
        late = permits.decide(
            operator, "approve", Target.whole_gang(run.pk, NAME, "pg-2"), now=NOW + 61
        )
        assert {answer.code for answer in late} == {permits.Code.TOO_LATE}
        row = WaitingPod.objects.get(run=run, name="a0")
        (answer,) = permits.decide(operator, "approve", Target.rows(run.pk, [row.pk]), now=NOW + 61)
        assert answer.ok

    def test_an_approval_stands_for_later_members_of_its_own_gang(
        self, run: SchedulerRun, operator: User
    ) -> None:
        for uid in ("pg-1", "pg-2"):
            permits.decide(operator, "approve", Target.whole_gang(run.pk, NAME, uid), now=NOW)
        assert GangApproval.objects.filter(username="olga", state="standing").count() == 2
        permits.decide(operator, "revoke", Target.whole_gang(run.pk, NAME, "pg-2"), now=NOW)
        common = {"pod_group": NAME, "group_min_member": 3}
        told(
            run,
            wait(5, "a2", gang_uid="pg-1", **common),
            wait(6, "b2", gang_uid="pg-2", **common),
        )
        assert (states(run)["a2"], states(run)["b2"]) == ("sent", "waiting")


@pytest.mark.usefixtures("namesakes")
class TestPages:
    def test_a_decision_names_the_uid(self, run: SchedulerRun, as_operator: Client) -> None:
        path = f"/api/runs/{run.pk}/waiting/decide"
        refused = post(as_operator, path, verdict="deny", pod_group=NAME)
        assert refused.status_code == 409
        assert "say which by the uid" in refused.json()["error"]
        body = {"verdict": "deny", "pod_group": NAME, "gang_uid": "pg-1"}
        assert post(as_operator, path, **body).status_code == 200
        assert (states(run)["a1"], states(run)["b1"]) == ("sent", "waiting")

    @pytest.mark.parametrize(
        "uid", [pytest.param(5, id="number"), pytest.param("x" * 65, id="long")]
    )
    def test_a_bad_uid_is_named(self, run: SchedulerRun, as_operator: Client, uid: Any) -> None:
        path = f"/api/runs/{run.pk}/waiting/decide"
        refused = post(as_operator, path, verdict="deny", pod_group=NAME, gang_uid=uid)
        assert refused.status_code == 400
        assert list(refused.json()["errors"]) == ["gang_uid"]

    def test_what_is_held_is_told_apart(self, run: SchedulerRun, as_operator: Client) -> None:
        path = f"/api/runs/{run.pk}/waiting/gangs"
        found = as_operator.get(path).json()["gangs"]
        assert [(g["pod_group"], g["uid"], g["members"]) for g in found] == [
            (NAME, "pg-1", 2),
            (NAME, "pg-2", 2),
        ]
        assert len(as_operator.get(path, {"gang_uid": "pg-2"}).json()["gangs"]) == 1

    def test_what_there_is_to_know_of_one(self, run: SchedulerRun, as_operator: Client) -> None:
        row = WaitingPod.objects.get(run=run, name="b0")
        found = as_operator.get(f"/api/runs/{run.pk}/waiting/{row.pk}").json()
        assert (found["gang"]["uid"], found["gang"]["members"]) == ("pg-2", 2)
        others = {(r["pod_group"], r["gang_uid"]) for r in found["rivals"]["waiting"]}
        assert others == {(NAME, "pg-1")}
