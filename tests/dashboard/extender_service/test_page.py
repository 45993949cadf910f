"""The page with the configuration to paste."""

from __future__ import annotations

import html
from typing import Any

import pytest
import yaml
from django.contrib.auth.models import User
from django.test import Client

from dashboard.models import SchedulerRun
from scheduler_core.config import configuration_from
from scheduler_core.plugins.registry import in_tree_registry
from tests.dashboard.factory import make_run

CONFIG = """apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - schedulerName: fast
  - schedulerName: careful
"""

pytestmark = pytest.mark.django_db


@pytest.fixture
def run() -> SchedulerRun:
    return make_run(config=CONFIG)


@pytest.fixture
def page(client: Client, run: SchedulerRun) -> Any:
    client.force_login(User.objects.create_user("ann"))
    return lambda: client.get(f"/runs/{run.pk}/extender/").content.decode()


def pasted(text: str) -> list[dict[str, Any]]:
    """The extenders of each block, as a kube-scheduler would read them."""
    blocks = [part.split("</pre>")[0] for part in text.split('aria-labelledby="paste-')[2::2]]
    found = []
    for block in blocks:
        document = yaml.safe_load(html.unescape(block.split(">", 1)[1]))
        whole = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            **document,
        }
        configuration_from(whole, in_tree_registry())  # it is one
        found.append(document["extenders"][0])
    return found


def test_one_block_per_profile(page: Any, run: SchedulerRun, settings: Any) -> None:
    settings.KUBESCHED_WORKER_LISTEN = ("0.0.0.0", 10_259)  # noqa: S104
    fast, careful = pasted(page())
    assert fast["urlPrefix"] == (f"http://kubesched:TOKEN@testserver:10259/extender/{run.pk}/fast")
    assert careful["urlPrefix"].endswith(f"/extender/{run.pk}/careful")
    assert fast["nodeCacheCapable"] is True and "enableHTTPS" not in fast
    assert "plain HTTP, token and all" in page()


def test_mutual_tls(page: Any, settings: Any) -> None:
    settings.KUBESCHED_WORKER_LISTEN = ("10.0.0.7", 10_259)
    settings.KUBESCHED_WORKER_TLS_CERT = "/tls.crt"
    settings.KUBESCHED_WORKER_CLIENT_CA = "/ca.crt"
    (fast, _) = pasted(page())
    assert fast["urlPrefix"].startswith("https://10.0.0.7:10259/")
    assert fast["enableHTTPS"] is True
    assert set(fast["tlsConfig"]) == {"caFile", "certFile", "keyFile"}


def test_the_address_as_others_reach_it(page: Any, settings: Any) -> None:
    settings.KUBESCHED_WORKER_LISTEN = ("0.0.0.0", 10_259)  # noqa: S104
    settings.KUBESCHED_WORKER_URL = "https://advice.example.org:443"
    (fast, _) = pasted(page())
    assert fast["urlPrefix"].startswith("https://kubesched:TOKEN@advice.example.org:443/extender/")
    assert fast["enableHTTPS"] is True
    assert "into its log when it starts" in page()


def test_a_profile_of_any_name_is_quoted(page: Any, run: SchedulerRun) -> None:
    SchedulerRun.objects.filter(pk=run.pk).update(config=CONFIG.replace("fast", '"a #b/c"'))
    assert pasted(page())[0]["urlPrefix"].endswith("/a%20%23b%2Fc")


def test_a_worker_that_does_not_listen_is_said_so(page: Any) -> None:
    assert "KUBESCHED_WORKER_LISTEN" in page()


def test_it_needs_a_login(client: Client, run: SchedulerRun) -> None:
    assert client.get(f"/runs/{run.pk}/extender/").status_code == 302
