"""A Kubernetes API to add: a sandbox's, over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest
import yaml
from django.contrib.auth.models import Permission, User
from django.test import Client

from dashboard.sandbox_api.serving import ApiThread, OneSandbox, Sandbox, token_hash
from scheduler_core.clock import RealClock
from scheduler_core.cluster.api.server import ApiServer
from scheduler_core.cluster.sandbox import SandboxCluster

TOKEN = "s3cret-t0ken-of-the-cluster"


@dataclass(frozen=True)
class Served:
    url: str
    sandbox: SandboxCluster

    def kubeconfig(self, token: str = TOKEN, **user: Any) -> str:
        return yaml.safe_dump(
            {
                "current-context": "one",
                "contexts": [{"name": "one", "context": {"cluster": "c", "user": "u"}}],
                "clusters": [{"name": "c", "cluster": {"server": self.url}}],
                "users": [{"name": "u", "user": user or {"token": token}}],
            }
        )


@pytest.fixture
def served() -> Iterator[Served]:
    with ExitStack() as stack:
        sandbox = stack.enter_context(SandboxCluster(RealClock()))
        server = ApiThread(OneSandbox(Sandbox(ApiServer(sandbox), token_hash(TOKEN))))
        server.start()
        stack.callback(server.stop)
        yield Served(server.url, sandbox)


@pytest.fixture
def keeper(db: None) -> User:
    user = User.objects.create_user("kim", password="secret")
    user.user_permissions.set(
        Permission.objects.filter(codename__in=("manage_clusters", "control_run"))
    )
    return user


@pytest.fixture
def as_keeper(keeper: User) -> Client:
    client = Client()
    client.force_login(keeper)
    return client
