"""A scheduler that stops does not wait for ever, whatever became of its bindings."""

from __future__ import annotations

from concurrent.futures import Future

import pytest

from scheduler_core.testing.builders import make_node, make_pod
from scheduler_core.testing.harness import Harness


def binding_under_way(answer: Future[None]) -> Harness:
    h = Harness(nodes=[make_node("n").capacity(cpu="2", memory="8Gi", pods="9")])
    h.settle()
    (binder,) = h.scheduler.profiles["default-scheduler"].bind_plugins
    binder.begin_bind = lambda *asked: answer  # type: ignore[method-assign]
    h.create("Pod", make_pod("p").req(cpu="1"))
    for _ in range(5):
        h.scheduler.run_once()
    return h


def test_a_binding_that_was_cancelled_has_failed() -> None:
    answer: Future[None] = Future()
    h = binding_under_way(answer)
    assert answer.cancel()
    h.scheduler.stop()
    (end,) = h.observer.bindings
    assert not end.bound
    assert end.message == 'running Bind plugin "DefaultBinder": it was cancelled'
    assert h.scheduler.cache.assumed_count == 0


def test_a_cluster_that_never_answers_is_given_up(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    h = binding_under_way(Future())
    wait = h.scheduler._binding.wait
    monkeypatch.setattr(h.scheduler._binding, "wait", lambda: wait(0.0))
    h.scheduler.stop()
    assert "1 bindings were not answered in 0 s; nobody waits for them" in caplog.text
    assert h.observer.bindings == []
