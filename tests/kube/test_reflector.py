"""List and watch under cut connections, forgotten versions, silent and absent servers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from scheduler_core.kube import reflector as reflectors
from scheduler_core.kube.api import KubeApi
from scheduler_core.kube.cluster import KubeCluster
from scheduler_core.kube.rate_limit import RateLimit
from scheduler_core.kube.reflector import Reflector
from scheduler_core.kube.resources import kind_named
from scheduler_core.ports import ApiError
from tests.contract.support import Recorder, node, pod
from tests.kube.fake import (
    FakeServer,
    Request,
    VirtualTiming,
    later,
    lost,
    on,
    status,
    times,
    unsent,
)


class Told(Recorder):
    """What a reflector tells, and when the test has seen enough of it."""

    reflector: Reflector

    def names(self) -> set[str]:
        return {key.rpartition("/")[2] for key in self.objects}


def make(server: FakeServer, kind: str = "Node", **options: Any) -> Told:
    told = Told()
    timing = server.timing
    api = KubeApi(server.open(1), server.open(1), timing, lambda: 0.5, RateLimit(-1, 1, timing))
    told.reflector = Reflector(api, kind_named(kind), told, **options)
    return told


def script(server: FakeServer, told: Told, *steps: Callable[[], str]) -> None:
    """What happens each time that a watch has nothing more to say; then it is stopped."""
    waiting = list(steps)

    def idle(request: Request) -> str:
        if not waiting:
            told.reflector.stop()
            return "end"
        return waiting.pop(0)()

    server.idle = idle


def then(word: str, *actions: Callable[[], Any]) -> Callable[[], str]:
    def step() -> str:
        for action in actions:
            action()
        return word

    return step


def add(server: FakeServer, name: str) -> Callable[[], Any]:
    return lambda: server.sandbox.create("Node", node(name))


def remove(server: FakeServer, name: str) -> Callable[[], Any]:
    return lambda: server.sandbox.delete("Node", "", name)


def run(told: Told) -> None:
    told.reflector.run()


def lists(server: FakeServer) -> int:
    return len([r for r in server.asked("GET") if "continue" not in r.query])


def test_a_long_list_comes_in_pages(server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reflectors, "LIST_LIMIT", 10)
    for index in range(25):
        server.sandbox.create("Node", node(f"n{index:02}"))
    told = make(server)
    script(server, told)
    run(told)
    assert len(told.seen) == 26
    assert told.seen[-1] == ("SYNCED", "")
    assert [r.query.get("continue", "").partition("@")[0] for r in server.asked("GET")] == [
        "",
        "10",
        "20",
    ]
    assert {e.object["kind"] for e in told.events[:-1]} == {"Node"}
    assert {e.object["apiVersion"] for e in told.events[:-1]} == {"v1"}


def test_a_list_whose_beginning_is_forgotten_comes_in_one_piece(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reflectors, "LIST_LIMIT", 2)
    for index in range(5):
        server.sandbox.create("Node", node(f"n{index}"))
    server.before.append(lambda r: status(410, "Expired") if r.query.get("continue") else None)
    told = make(server)
    script(server, told)
    run(told)
    assert told.names() == {f"n{index}" for index in range(5)}
    assert "limit" not in server.asked("GET")[-1].query


def test_a_watch_asks_for_bookmarks_and_an_end(server: FakeServer) -> None:
    told = make(server)
    script(server, told)
    run(told)
    (watch,) = server.asked("WATCH")
    assert watch.query["allowWatchBookmarks"] == "true"
    assert 300 <= int(watch.query["timeoutSeconds"]) <= 600


@pytest.mark.parametrize("word", ["end", "cut", "silent"])
def test_a_watch_that_breaks_goes_on_where_it_was(server: FakeServer, word: str) -> None:
    told = make(server)
    script(
        server,
        told,
        then("more", add(server, "n1")),
        then(word),
        then("more", add(server, "n2"), remove(server, "n1")),
        then(word, add(server, "n3")),
    )
    run(told)
    assert told.seen == [
        ("SYNCED", ""),
        ("ADDED", "n1"),
        ("ADDED", "n2"),
        ("DELETED", "n1"),
        ("ADDED", "n3"),
    ]
    assert lists(server) == 1
    versions = [int(r.query["resourceVersion"]) for r in server.asked("WATCH")]
    assert versions == sorted(set(versions))


def test_a_bookmark_moves_the_version_on(server: FakeServer) -> None:
    told = make(server)
    script(server, told, then("end", lambda: server.sandbox.create("Pod", pod())), then("end"))
    run(told)
    first, second, third = (int(r.query["resourceVersion"]) for r in server.asked("WATCH"))
    assert first <= second < third  # only pods have changed: a bookmark says so


def test_410_in_mid_watch_lists_anew_and_tells_the_differences(server: FakeServer) -> None:
    server.sandbox.create("Node", node("stays"))
    server.sandbox.create("Node", node("goes"))
    server.sandbox.create("Node", node("changes"))
    server.sandbox.create("Node", node("again"))
    told = make(server)

    def meanwhile() -> None:
        server.sandbox.delete("Node", "", "goes")
        server.sandbox.delete("Node", "", "again")
        server.sandbox.create("Node", node("again"))
        server.sandbox.patch("Node", "", "changes", {"metadata": {"labels": {"zone": "a"}}})
        server.sandbox.create("Node", node("new"))

    open_watches: list[Any] = []
    begin = server.watch

    def watch(request: Request) -> Any:
        open_watches.append(begin(request))
        return open_watches[-1]

    def forget() -> str:
        open_watches[0].deafen()  # what happens now does not reach it
        meanwhile()
        return "expired"

    server.watch = watch  # type: ignore[method-assign]
    script(server, told, forget)
    run(told)
    assert set(told.seen[:5]) >= {("ADDED", "stays"), ("SYNCED", "")}
    assert sorted(told.seen[5:]) == [
        ("ADDED", "again"),
        ("ADDED", "new"),
        ("DELETED", "again"),
        ("DELETED", "goes"),
        ("MODIFIED", "changes"),
        ("SYNCED", ""),
    ]
    assert lists(server) == 2


def test_410_again_and_again_is_no_storm(server: FakeServer, timing: VirtualTiming) -> None:
    told = make(server)
    server.before.append(lambda r: status(410, "Expired", "too old") if r.verb == "WATCH" else None)
    timing.plan(60, told.reflector.stop)
    began = timing.monotonic()
    run(told)
    assert timing.monotonic() - began >= 60
    assert len(server.requests) < 40
    assert told.seen == [("SYNCED", "")] * (len(told.seen))


@pytest.mark.parametrize(
    "ahead",
    [
        pytest.param("silent", id="as kube-apiserver 1.36: 200, and nothing is ever said"),
        pytest.param("refused", id="as older ones"),
    ],
)
def test_a_server_that_was_restored_from_a_backup(server: FakeServer, ahead: str) -> None:
    """Its versions are lower than those that we know. Asked to go on there it would keep us waiting
    until it comes that far, days perhaps."""
    told = make(server)
    text = "Timeout: Too large resource version: 9, current: 3"
    if ahead == "refused":
        server.before.append(times(1, on("WATCH", "/nodes", status(504, "Timeout", text))))
        script(server, told)
    else:
        script(server, told, then("silent"))
    server.sandbox.create("Node", node("n1"))
    run(told)
    assert lists(server) == 2
    assert told.seen == [("ADDED", "n1"), ("SYNCED", ""), ("SYNCED", "")]


def test_a_watch_that_is_refused_for_now_comes_when_it_was_told_to(
    server: FakeServer, timing: VirtualTiming
) -> None:
    told = make(server)
    server.before.append(times(3, lambda r: later(7) if r.verb == "WATCH" else None))
    script(server, told)
    run(told)
    first, *_, last = server.asked("WATCH")
    assert len(server.asked("WATCH")) == 4
    assert last.at - first.at >= 21
    assert lists(server) == 1


def test_a_server_that_is_away_for_30_seconds(server: FakeServer, timing: VirtualTiming) -> None:
    told = make(server)
    end = timing.monotonic() + 30

    def away(request: Request) -> Any:
        if timing.monotonic() < end and server.asked("WATCH"):
            raise unsent()
        return None

    server.before.append(away)
    script(server, told, then("cut", add(server, "n1")))
    run(told)
    assert told.names() == {"n1"}
    assert lists(server) == 1
    assert len(server.requests) < 30


def test_requests_that_fail_are_reported_and_taken_back(
    server: FakeServer, timing: VirtualTiming
) -> None:
    troubles: list[str] = []
    told = make(server, on_trouble=lambda kind, text: troubles.append(text))
    server.before.append(times(1, on("WATCH", "/nodes", status(403, "Forbidden", "no right"))))
    script(server, told)
    run(told)
    assert troubles == ["403 no right", ""]


def test_nobody_is_told_of_the_troubles_of_a_watch_that_was_stopped(
    cluster: KubeCluster, server: FakeServer
) -> None:
    server.before.append(lambda request: status(503, "ServiceUnavailable"))
    first, second = (cluster.list_watch("Node", Recorder()) for _ in range(2))
    assert set(cluster.troubles) == {"Node"}
    first.stop()
    assert set(cluster.troubles) == {"Node"}
    second.stop()
    assert cluster.troubles == {}


def test_no_right_to_list_is_told_at_once(server: FakeServer) -> None:
    told = make(server)
    server.before.append(on("GET", "/nodes", status(403, "Forbidden", "nodes is forbidden")))
    with pytest.raises(ApiError, match="nodes is forbidden"):
        told.reflector.start()


def test_a_kind_that_the_server_does_not_have_is_empty_until_it_comes(
    server: FakeServer, timing: VirtualTiming
) -> None:
    server.absent.add("PodGroup")
    told = make(server, "PodGroup")
    group = {"metadata": {"name": "g"}, "spec": {"minMember": 1}}
    server.sandbox.create("PodGroup", group)
    timing.plan(200, lambda: server.absent.clear())
    began = timing.monotonic()
    script(server, told)
    run(told)
    assert told.seen[0] == ("SYNCED", "")
    assert ("ADDED", "g") in told.seen
    assert timing.monotonic() - began < 400
    assert len(server.requests) < 12


def test_a_kind_that_is_taken_away_is_empty(server: FakeServer, timing: VirtualTiming) -> None:
    group = {"metadata": {"name": "g"}, "spec": {"minMember": 1}}
    server.sandbox.create("PodGroup", group)
    told = make(server, "PodGroup")
    script(server, told, then("cut", lambda: server.absent.add("PodGroup")))
    timing.plan(120, told.reflector.stop)
    run(told)
    assert told.names() == set()


def test_the_newest_served_version_is_found(server: FakeServer) -> None:
    versions: list[str] = []
    told = make(server, "PodGroup", on_version=lambda kind, version: versions.append(version))
    script(server, told)
    run(told)
    assert versions == ["scheduling.x-k8s.io/v1alpha1"]


def test_lines_that_are_no_events_begin_a_new_watch(server: FakeServer) -> None:
    told = make(server)
    begin = server.watch
    broken = [b"{", b"[]", b'{"type":"ADDED"}', b'{"type":"ADDED","object":7}']

    class Broken:
        def lines(self) -> Any:
            yield broken.pop(0)

        def close(self) -> None:
            return

    def watch(request: Request) -> Any:
        return Broken() if broken else begin(request)

    server.watch = watch  # type: ignore[method-assign]
    server.sandbox.create("Node", node("n1"))
    script(server, told)
    run(told)
    assert told.seen == [("ADDED", "n1"), ("SYNCED", "")]


def test_a_list_that_fails_at_first_is_told_later(server: FakeServer) -> None:
    told = make(server)
    server.sandbox.create("Node", node("n1"))
    server.before.append(times(1, on("GET", "/nodes", lost())))
    script(server, told)
    run(told)
    assert told.seen == [("ADDED", "n1"), ("SYNCED", "")]


def test_nobody_waits_for_each_kind_of_a_server_that_is_away(
    cluster: KubeCluster,
    server: FakeServer,
    timing: VirtualTiming,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def silent(request: Request) -> Any:
        timing.clock.advance(30)
        raise lost()

    server.before.append(silent)
    began = timing.monotonic()
    monkeypatch.setattr(Reflector, "run", lambda self: None)
    watches = [cluster.list_watch(kind, Told()) for kind in ("Node", "Pod", "Service")]
    assert timing.monotonic() - began <= 31
    for watch in watches:
        watch.stop()


def test_managed_fields_are_dropped(server: FakeServer) -> None:
    obj = node("n1")
    told = make(server)
    listed = {**obj, "metadata": {**obj["metadata"], "managedFields": [{"manager": "x"}]}}
    told.reflector._take("ADDED", listed)
    assert "managedFields" not in told.events[0].object["metadata"]


def test_a_field_selector_is_sent_both_times(server: FakeServer) -> None:
    told = make(server, "Pod", fields="status.phase!=Succeeded")
    script(server, told)
    run(told)
    assert [r.query["fieldSelector"] for r in server.requests] == ["status.phase!=Succeeded"] * 2
