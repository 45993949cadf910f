"""A change from the page, all the way: page, API, database, worker, sandbox. Nothing is made up but
the wire between browser and server, and the websocket, through which the worker's frames go."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from playwright.sync_api import Page, expect

from dashboard import hosted, recorder, runs
from dashboard.hosted import HostedSandbox
from dashboard.models import AuditEntry
from scheduler_core.clock import RealClock
from scheduler_core.cluster.sandbox import SandboxCluster
from scheduler_core.testing.builders import make_node
from tests.browser.fake_site import FakeSite
from tests.dashboard.factory import FakePublisher, make_run
from tests.dashboard.live_run import PATIENCE, Worker, only_on, until

pytestmark = pytest.mark.django_db(transaction=True)


class LiveSite(FakeSite):
    """The page of one run, answered by the product's own API."""

    def __init__(self, page: Page, run_id: int, client: Client, published: FakePublisher) -> None:
        super().__init__(page)
        self._path = f"/api/runs/{run_id}/"
        self._client = client
        self._published = published
        self._sent = 0
        self._posted = 0
        for topic in ("run", "config"):
            self.answers[topic] = lambda query, topic=topic: self._ask(topic)

    def _ask(self, topic: str) -> tuple[int, Any]:
        if len(self.posts) > self._posted:
            self._posted = len(self.posts)
            topic, body = self.posts[-1]
            answer = self._client.post(
                self._path + topic, json.dumps(body), content_type="application/json"
            )
        else:
            answer = self._client.get(self._path + topic)
        return answer.status_code, answer.json()

    def push(self) -> None:
        """What the worker has published goes to the page."""
        frames = self._published.of("run")
        for frame in frames[self._sent :]:
            self.send(frame)
        self._sent = len(frames)

    def shows(self, words: str) -> None:
        def ask() -> bool:
            self.push()
            self.page.wait_for_timeout(50)
            return words in self.page.locator("#config-state").inner_text()

        until(ask, words)


@pytest.fixture
def worker(
    transactional_db: None, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Worker]:
    settings.KUBESCHED_LEASE_SECONDS = 2.0
    settings.REDIS_URL = ""
    run = make_run("live", config=only_on("a"))
    cluster = SandboxCluster(RealClock())
    for name in ("a", "b"):
        cluster.create("Node", make_node(name).raw())
    hosted.publish(run.cluster_id, HostedSandbox(cluster))
    worker = Worker(run, cluster)
    yield worker
    worker.stop()
    hosted.withdraw(run.cluster_id)
    cluster.close()


def test_a_change_applied_from_the_page_decides_the_next_pod(
    page: Page, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    published = FakePublisher()
    monkeypatch.setattr(runs, "get_publisher", lambda: published)
    monkeypatch.setattr(recorder, "get_publisher", lambda: published)
    ada = User.objects.create_user("ada")
    ada.user_permissions.set(Permission.objects.filter(codename="control_run"))
    client = Client()
    client.force_login(ada)
    worker.start()
    assert worker.place("before") == "a"

    site = LiveSite(page, worker.run.pk, client, published)
    page.set_default_timeout(PATIENCE * 1000)
    site.open("/runs/1/configuration/")
    site.shows("Version 1, in use")
    editor = page.locator(".editor-text")
    expect(editor).to_have_value(only_on("a"))

    # A mistake is found, and nothing happens.
    editor.fill(only_on("b").replace("values: [b]", "values: []"))
    page.get_by_role("button", name="Apply").click()
    expect(page.locator("#faults")).to_contain_text("values set can't be empty")
    page.get_by_role("button", name="line 15").click()
    assert "operator: In" in page.evaluate("getSelection().toString()")

    # The change decides where the next pod goes.
    editor.fill(only_on("b"))
    page.get_by_label("Comment").fill("node a is to be emptied")
    page.get_by_role("button", name="Apply").click()
    expect(page.locator("#config-said")).to_contain_text("Version 2 is written")
    site.shows("Version 2, in use")
    assert worker.place("after") == "b"
    change = page.locator(".change")
    expect(change).to_contain_text("Version 2 by ada")
    expect(change).to_contain_text("Applied")
    expect(change).to_contain_text("node a is to be emptied")
    entry = AuditEntry.objects.get(run=worker.run)
    assert (entry.verb, entry.username, entry.outcome) == ("change_config", "ada", "applied")
    until(lambda: worker.sequences() == [1, 2], "cycles are numbered on")
    assert site.problems == []
