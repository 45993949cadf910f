"""What a sandbox expects of its journal. Subclass it, and give the two fixtures.

class TestMyJournal(JournalContract):
    @pytest.fixture
    def journal(self): ...
    @pytest.fixture
    def kept(self, journal): return lambda: [...]  # every Write that is kept, in order
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from scheduler_core.clock import VirtualClock
from scheduler_core.cluster.journal import Journal, Write
from scheduler_core.cluster.sandbox import SandboxCluster
from tests.contract.support import node, pod

Kept = Callable[[], Sequence[Write]]


def write(version: int, name: str = "web", verb: str = "create") -> Write:
    obj = pod(name)
    obj["metadata"]["uid"] = f"uid-{name}"
    obj["metadata"]["resourceVersion"] = str(version)
    return Write(
        resource_version=version,
        at=1_800_000_000.25,
        verb=verb,  # type: ignore[arg-type]
        kind="Pod",
        key=f"default/{name}",
        uid=f"uid-{name}",
        actor="user:ada",
        object=obj,
    )


class JournalContract:
    """The tests; see the module."""

    def test_what_is_appended_is_kept_as_it_is(self, journal: Journal, kept: Kept) -> None:
        batch = [write(1), write(2, "db"), write(7, verb="delete")]
        journal.append(batch)
        assert list(kept()) == batch

    def test_batches_follow_each_other(self, journal: Journal, kept: Kept) -> None:
        for version in range(1, 6):
            journal.append([write(version, f"p{version}")])
        assert [w.resource_version for w in kept()] == [1, 2, 3, 4, 5]

    def test_an_object_without_namespace_keeps_its_key(self, journal: Journal, kept: Kept) -> None:
        obj = {**node(), "metadata": {"name": "n1", "uid": "u", "resourceVersion": "1"}}
        journal.append([Write(1, 0.0, "create", "Node", "n1", "u", "a", obj)])
        assert [w.key for w in kept()] == ["n1"]

    def test_a_store_can_be_made_again(self, journal: Journal, kept: Kept) -> None:
        clock = VirtualClock(1_800_000_000.0)
        with SandboxCluster(clock, journal, pace=0.001) as live:
            live.create("Node", node())
            live.as_actor("user:ada").create("Pod", pod())
            live.bind("default", "web", "", "n1")
            live.delete("Node", "", "n1")
            expected = live.snapshot()
        with SandboxCluster.restore(None, kept(), clock) as again:
            assert again.snapshot() == expected
        assert "user:ada" in {w.actor for w in kept()}
