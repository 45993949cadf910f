"""The examples of docs/rest.md, run by a real shell against a live server."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User

from dashboard.models import SchedulerRun, WaitingPod
from tests.dashboard.told_waits import gang, waiting

pytestmark = pytest.mark.django_db(transaction=True)
TEXT = (Path(settings.BASE_DIR) / "docs" / "rest.md").read_text(encoding="utf-8")


@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl on PATH")
def test_the_examples_work(
    run: SchedulerRun, live_server: Any, token_of: Callable[..., str], decider: User
) -> None:
    waiting(run, "web")
    gang(run, "a", "b")
    script = "\n".join(re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL))
    # One answer per line.
    script = script.replace("curl --silent", "curl --write-out '\\n' --fail-with-body --silent")
    # The last example denies what the first one approved: that is refused, as the table says.
    *good, last = script.rstrip().rpartition("api --request POST")
    environment = {
        "PATH": os.environ["PATH"],
        "KUBESCHED": live_server.url,
        "TOKEN": token_of(decider),
        "POD_UID": "uid-web",
        "GANG_UID": "pg-1",
        "no_proxy": "*",
    }

    def shell(text: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["sh", "-ec", text], env=environment, capture_output=True, text=True, timeout=60
        )

    done = shell(good[0])
    assert done.returncode == 0, done.stdout + done.stderr
    listed, one, approved, group = [json.loads(line) for line in done.stdout.split("\n") if line]
    assert [item["uid"] for item in listed["items"]] == ["uid-web", "uid-a", "uid-b"]
    assert one["uid"] == "uid-web"
    assert approved["results"][0]["code"] == "accepted"
    assert [result["code"] for result in group["results"]] == ["accepted", "accepted"]
    assert WaitingPod.objects.get(uid="uid-web").decision_comment == "release 17"
    setup = "\n".join(line for line in script.split("\n")[:2])
    refused = shell(setup + "\n" + good[1] + last)
    assert refused.returncode != 0
    assert '"code": "conflict"' in refused.stdout


def test_every_code_and_filter_is_named() -> None:
    from typing import get_args

    from dashboard.rest.schemas import AnswerOut, WaitingFilter

    codes = get_args(AnswerOut.model_fields["code"].annotation)
    assert [code for code in codes if f"`{code}`" not in TEXT] == []
    assert [name for name in WaitingFilter.model_fields if f"`{name}`" not in TEXT] == []
