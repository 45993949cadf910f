from __future__ import annotations

from scheduler_core.backend.informers import CHANGES_KEPT, Informers, ObjectInformer
from scheduler_core.testing.builders import make_node, make_pod


def names(objects) -> list[str]:  # type: ignore[no-untyped-def]
    return [obj.name for obj in objects]


def test_one_informer_per_kind_and_kinds_are_those_asked_for() -> None:
    informers = Informers()
    assert informers.informer("Pod") is informers.informer("Pod")
    informers.informer("Node")
    assert informers.kinds() == ("Pod", "Node")


def test_get_list_set_delete() -> None:
    pods = Informers().informer("Pod")
    pods.set(make_pod("a").obj())
    pods.set(make_pod("b").namespace("other").obj())
    assert pods.get("default/a") is not None
    assert pods.get("default/b") is None
    assert names(pods.list()) == names(pods) == ["a", "b"]
    pods.delete("default/a")
    pods.delete("default/a")
    assert names(pods.list()) == ["b"]
    assert len(pods) == 1


def test_an_index_follows_every_change() -> None:
    nodes = Informers().informer("Node")
    nodes.set(make_node("early").zone("z1").obj())
    nodes.add_indexer("zone", lambda n: [n.labels.get("topology.kubernetes.io/zone", "")])
    nodes.set(make_node("n").zone("z1").obj())
    assert names(nodes.by_index("zone", "z1")) == ["early", "n"]
    nodes.set(make_node("n").zone("z2").obj())
    assert names(nodes.by_index("zone", "z1")) == ["early"]
    assert names(nodes.by_index("zone", "z2")) == ["n"]
    nodes.delete("n")
    assert names(nodes.by_index("zone", "z2")) == []


def test_an_object_may_have_many_values_or_none() -> None:
    pods = Informers().informer("Pod")
    pods.add_indexer("label", lambda pod: pod.labels)
    pods.add_indexer("label", lambda pod: ["never", "called"])
    pods.set(make_pod("a").label(x="1", y="1").obj())
    pods.set(make_pod("b").obj())
    assert names(pods.by_index("label", "x")) == names(pods.by_index("label", "y")) == ["a"]
    assert pods.by_index("label", "never") == []


class TestChanges:
    def test_nothing_has_changed(self) -> None:
        informer = ObjectInformer("Pod")
        assert informer.changed_since(informer.version) == ()

    def test_what_was_added_changed_or_deleted_since(self) -> None:
        informer = ObjectInformer("Pod")
        informer.set(make_pod("a").obj())
        informer.set(make_pod("b").obj())
        before = informer.version
        informer.set(make_pod("c").obj())
        informer.set(make_pod("c").label(x="y").obj())
        informer.delete("default/a")
        informer.delete("default/unknown")
        assert informer.changed_since(before) == {"default/a", "default/c"}
        assert informer.changed_since(0) == {"default/a", "default/b", "default/c"}

    def test_too_long_ago(self) -> None:
        informer = ObjectInformer("Pod")
        pod = make_pod("a").obj()
        for _ in range(CHANGES_KEPT + 1):
            informer.set(pod)
        assert informer.changed_since(0) is None
        assert informer.changed_since(1) == {"default/a"}
