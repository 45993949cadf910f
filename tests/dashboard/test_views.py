"""The HTML pages: who sees them, what the server writes into them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from dashboard.models import AuditEntry, RunState, SchedulerRun

PAGES = ["", "queues/", "heatmap/", "cycles/", "cycles/7/", "waiting/", "extender/", "audit/"]


@pytest.mark.parametrize("page", PAGES)
def test_page_of_a_run_is_rendered(as_viewer: Client, run: SchedulerRun, page: str) -> None:
    answer = as_viewer.get(f"/runs/{run.pk}/{page}")
    assert answer.status_code == 200
    text = answer.content.decode()
    assert f'data-run="{run.pk}"' in text
    assert 'aria-current="page"' in text
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]


@pytest.mark.parametrize("page", ["", *(f"runs/1/{page}" for page in PAGES)])
def test_page_needs_a_login(client: Client, db: None, page: str) -> None:
    answer = client.get(f"/{page}")
    assert answer.status_code == 302
    assert answer.headers["Location"] == f"/login/?next=/{page}"


@pytest.mark.parametrize("run_id", [99, 10**30])
def test_run_that_is_not_there(as_viewer: Client, db: None, run_id: int) -> None:
    answer = as_viewer.get(f"/runs/{run_id}/")
    assert answer.status_code == 404
    assert "There is nothing here" in answer.content.decode()


@pytest.mark.parametrize("method", ["post", "put", "delete"])
def test_pages_are_read_only(as_operator: Client, run: SchedulerRun, method: str) -> None:
    assert getattr(as_operator, method)(f"/runs/{run.pk}/").status_code == 405


def test_permissions_are_written_into_the_page(
    as_viewer: Client, as_operator: Client, run: SchedulerRun
) -> None:
    seen = as_viewer.get(f"/runs/{run.pk}/waiting/").content.decode()
    assert "data-may-decide" not in seen
    assert 'data-action="stop"' not in seen
    assert "You may look." in seen
    acting = as_operator.get(f"/runs/{run.pk}/waiting/").content.decode()
    assert "data-may-decide" in acting
    assert 'data-action="stop"' in acting


def test_home_offers_the_form_to_those_who_may(as_viewer: Client, as_operator: Client) -> None:
    assert "sandbox-form" not in as_viewer.get("/").content.decode()
    assert "sandbox-form" in as_operator.get("/").content.decode()


def test_clock_speed_is_the_workers(as_viewer: Client, run: SchedulerRun) -> None:
    assert 'data-clock-rate="1.0"' in as_viewer.get(f"/runs/{run.pk}/").content.decode()
    RunState.objects.create(run=run, clock_speed=60.0)
    assert 'data-clock-rate="60.0"' in as_viewer.get(f"/runs/{run.pk}/").content.decode()


@pytest.mark.parametrize(
    ("query", "status"), [("", 200), ("?cycle=12", 200), ("?cycle=x", 404), ("?cycle=-1", 404)]
)
def test_heatmap_of_a_cycle(as_viewer: Client, run: SchedulerRun, query: str, status: int) -> None:
    assert as_viewer.get(f"/runs/{run.pk}/heatmap/{query}").status_code == status


def test_names_are_escaped(as_viewer: Client, run: SchedulerRun) -> None:
    SchedulerRun.objects.filter(pk=run.pk).update(name="<img src=x>", message='"><script>')
    text = as_viewer.get(f"/runs/{run.pk}/?q=<script>").content.decode()
    assert "<img src=x>" not in text
    assert '"><script>' not in text


class TestAudit:
    @pytest.fixture(autouse=True)
    def entries(self, run: SchedulerRun, operator: User) -> None:
        AuditEntry.objects.bulk_create(
            AuditEntry(
                at=datetime(2026, 9, 1, 12, 0, i % 60, tzinfo=UTC),
                user=operator,
                username="olga",
                verb=AuditEntry.Verb.DENY,
                target=f"team-a/worker-{i}",
                comment="<b>too big</b>" if i == 119 else "",
                outcome=AuditEntry.Outcome.APPLIED,
                run=run,
            )
            for i in range(120)
        )

    def test_tells_who_when_what_and_the_comment(
        self, as_viewer: Client, run: SchedulerRun
    ) -> None:
        text = as_viewer.get(f"/runs/{run.pk}/audit/").content.decode()
        for word in ("120 entries", "olga", "2026-09-01 12:00:59", "Deny", "team-a/worker-119"):
            assert word in text
        assert "&lt;b&gt;too big&lt;/b&gt;" in text
        assert "Applied" in text

    @pytest.mark.parametrize(
        ("page", "first"),
        [("1", "worker-119"), ("3", "worker-19"), ("99", "worker-19"), ("x", "worker-119")],
    )
    def test_pages(self, as_viewer: Client, run: SchedulerRun, page: str, first: str) -> None:
        text = as_viewer.get(f"/runs/{run.pk}/audit/?page={page}").content.decode()
        assert f"team-a/{first}<" in text

    def test_is_of_one_run(self, as_viewer: Client, run: SchedulerRun) -> None:
        other = SchedulerRun.objects.create(cluster=run.cluster, name="other")
        text = as_viewer.get(f"/runs/{other.pk}/audit/").content.decode()
        assert "Nobody has acted yet" in text

    def test_of_the_whole_site_needs_the_right_to_it(
        self, as_viewer: Client, viewer: User, run: SchedulerRun
    ) -> None:
        assert as_viewer.get("/audit/").status_code == 403
        viewer.user_permissions.add(Permission.objects.get(codename="view_auditentry"))
        text = as_viewer.get("/audit/").content.decode()
        assert "120 entries" in text
        assert f'href="/runs/{run.pk}/audit/"' in text

    @pytest.mark.parametrize(
        ("query", "count"),
        [
            pytest.param("who=olga", "120 entries", id="who"),
            pytest.param("what=create_user", "1 entry", id="what"),
            pytest.param("who=olga&what=create_user", "0 entries", id="both"),
            pytest.param("who=%00&page=99", "121 entries", id="oddities"),
        ],
    )
    def test_of_the_whole_site_by_person_and_action(
        self, admin_client: Client, query: str, count: str
    ) -> None:
        AuditEntry.objects.create(
            at=datetime(2026, 9, 1, tzinfo=UTC), verb=AuditEntry.Verb.CREATE_USER, target="otto"
        )
        assert count in admin_client.get(f"/audit/?{query}").content.decode()


class TestErrorPages:
    def test_login_that_fails_says_so(self, client: Client, viewer: User) -> None:
        answer = client.post("/login/", {"username": "vera", "password": "wrong"})
        assert "do not match" in answer.content.decode()
        assert 'value="vera"' in answer.content.decode()

    def test_login_leads_to_where_one_wanted_to_go(self, client: Client, viewer: User) -> None:
        form = {"username": "vera", "password": "secret", "next": "/runs/3/queues/"}
        assert client.post("/login/", form).headers["Location"] == "/runs/3/queues/"

    def test_stale_form(self, viewer: User) -> None:
        strict = Client(enforce_csrf_checks=True)
        answer = strict.post("/login/", {"username": "vera", "password": "secret"})
        assert answer.status_code == 403
        assert "This form is stale" in answer.content.decode()
