"""`benchmark pipeline` where the websocket client is not installed."""

from __future__ import annotations

import sys

import pytest
from django.core.management import CommandError, call_command

import dashboard.benchmark


def test_it_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [n for n in sys.modules if n.startswith("dashboard.benchmark.")]:
        monkeypatch.delitem(sys.modules, name)
        monkeypatch.delattr(dashboard.benchmark, name.rpartition(".")[2], raising=False)
    monkeypatch.setitem(sys.modules, "websocket", None)
    with pytest.raises(CommandError, match="websocket-client, which is not installed"):
        call_command("benchmark", "pipeline")
