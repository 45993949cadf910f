"""The volume plugins' two forms agree on random storage, also after it has changed."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler_core.api import Node, Pod
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.plugins.node_volume_limits import NodeVolumeLimits
from scheduler_core.plugins.volume_binding import VolumeBinding
from scheduler_core.plugins.volume_restrictions import VolumeRestrictions
from scheduler_core.plugins.volume_zone import VolumeZone
from scheduler_core.testing.builders import make_node, make_pod
from tests.plugins import storage
from tests.plugins.support import FakeHandle, filter_both

PLUGINS: tuple[Any, ...] = (VolumeRestrictions, NodeVolumeLimits, VolumeBinding, VolumeZone)
NODES = ("n0", "n1", "n2")
CLAIMS = ("c0", "c1", "c2", "own-e", "p0-e")
VOLUMES = ("v0", "v1", "v2", "v3")
CLASSES = ("fast", "manual", "slow", "")
SIZES = ("1Gi", "2Gi", "3Gi")
MODES = ("ReadWriteOnce", "ReadWriteMany", "ReadWriteOncePod")
EBS = "ebs.csi.aws.com"
OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
MIGRATED = ("", "kubernetes.io/aws-ebs", "kubernetes.io/gce-pd,kubernetes.io/aws-ebs")

zones = st.sampled_from(("a", "b"))
names = st.sampled_from


@st.composite
def labels(draw: st.DrawFn) -> dict[str, str]:
    keys = draw(st.sets(names((storage.ZONE, OLD_ZONE, "topology.ebs.csi.aws.com/zone"))))
    return {key: draw(names(("a", "b", "a__b"))) for key in sorted(keys)}


@st.composite
def terms(draw: st.DrawFn) -> list[Any] | None:
    if draw(st.booleans()):
        return None
    field = {"key": "metadata.name", "operator": draw(names(("In", "NotIn"))), "values": ["n0"]}
    choices = (
        storage.is_in(storage.ZONE, draw(zones)),
        storage.is_in(OLD_ZONE, draw(zones)),
        {"matchExpressions": [{"key": storage.ZONE, "operator": "DoesNotExist"}]},
        {"matchFields": [field]},
        {"matchExpressions": [{"key": "x", "operator": "Bad"}]},
        {},
    )
    return draw(st.lists(names(choices), max_size=2))


@st.composite
def nodes(draw: st.DrawFn, name: str) -> Node:
    builder = make_node(name).label({k: v for k, v in draw(labels()).items() if "__" not in v})
    return builder.obj()


@st.composite
def volumes(draw: st.DrawFn, name: str) -> Any:
    sources: tuple[dict[str, Any] | None, ...] = (
        None,
        None,
        {"awsElasticBlockStore": {"volumeID": draw(names(("vol-1", "aws://a/bad")))}},
        {"gcePersistentDisk": {"pdName": "d"}},
        {"nfs": {"server": "s", "path": "/"}},
    )
    kept = draw(names(("", "", "", "", "", "c0", "c1", "own-e")))
    return storage.volume(
        name,
        size=draw(names(SIZES)),
        cls=draw(names(("manual", "manual", *CLASSES))),
        claim=kept,
        claim_uid=draw(names(("", f"pvc-default-{kept}", "old"))),
        phase=draw(names(("Available", "Available", "Bound"))),
        terms=draw(terms()),
        labels=draw(labels()),
        handle=draw(names(("h1", "h2", ""))),
        source=draw(names(sources)),
        accessModes=draw(st.lists(names(MODES[:2]), min_size=1, unique=True)),
        terminating=draw(names((False, False, False, True))),
    )


@st.composite
def claims(draw: st.DrawFn, name: str, owner: Pod) -> Any:
    return storage.claim(
        name,
        bound=draw(names(("", "", "", "", "", "v0", "v1", "lost"))),
        cls=draw(names(("fast", "manual", "manual", "manual", "slow", ""))),
        size=draw(names(SIZES)),
        modes=[draw(names((MODES[0], *MODES)))],
        selected=draw(names((None, None, None, None, None, None, "n0", "n1", "gone", ""))),
        owner=owner if draw(names((True, True, True, False))) else None,
        **draw(names(({}, {}, {}, {"selector": {"matchLabels": {storage.ZONE: "a"}}}))),
    )


@st.composite
def classes(draw: st.DrawFn, name: str) -> Any:
    if name == "manual":
        return storage.storage_class(name, storage.BY_HAND)
    provisioners = (storage.DRIVER, storage.DRIVER, "kubernetes.io/aws-ebs", "other")
    allowed = draw(st.lists(st.fixed_dictionaries({storage.ZONE: st.lists(zones)}), max_size=2))
    return storage.storage_class(
        name,
        draw(names(provisioners)),
        waits=name == "fast" or draw(st.booleans()),
        allowed=allowed,
    )


@st.composite
def csi_nodes(draw: st.DrawFn, name: str) -> Any:
    limits = st.dictionaries(names((storage.DRIVER, EBS)), names((None, 0, 1, 2, 3)))
    return storage.csi_node(name, draw(limits), draw(names(MIGRATED)))


@st.composite
def pods(draw: st.DrawFn, name: str, node: str = "") -> Pod:
    builder = make_pod(name).pvc(*draw(st.lists(names(CLAIMS[:3]), min_size=1, max_size=3)))
    if node:
        builder.node(node)
    disks = (
        {"gcePersistentDisk": {"pdName": "d", "readOnly": draw(st.booleans())}},
        {"awsElasticBlockStore": {"volumeID": draw(names(("vol-1", "vol-1", "aws://a/bad")))}},
        {"ephemeral": {}},
    )
    for i, disk in enumerate(draw(st.lists(names(disks), max_size=1))):
        builder.volume("e" if "ephemeral" in disk else f"d{i}", **disk)
    return builder.obj()


@st.composite
def changes(draw: st.DrawFn, handle: FakeHandle, own: Pod) -> None:
    """Some objects come or change, and now and then one goes; at first there are all."""
    is_first = not handle.informer("StorageClass").list()
    makers = {
        "PersistentVolume": (VOLUMES, volumes),
        "PersistentVolumeClaim": (CLAIMS, lambda name: claims(name, own)),
        "StorageClass": (CLASSES[:3], classes),
        "CSINode": (NODES, csi_nodes),
    }
    for kind, (known, make) in makers.items():
        for name in known if is_first else sorted(draw(st.sets(names(known)))):
            handle.watch(draw(make(name)))
        if draw(names((False, False, False, True))):
            found = handle.informer(kind).list()
            if found:
                handle.informer(kind).delete(draw(names(found)).key)
    for i in range(draw(st.integers(0, 2))):
        volume, driver = draw(names(VOLUMES)), draw(names((storage.DRIVER, EBS)))
        handle.watch(storage.attachment(f"va{i}", draw(names(NODES)), volume, driver))
    if draw(st.booleans()):
        handle.watch(storage.csi_driver(capacity=draw(st.booleans())))
        space = storage.free_space("s", "fast", draw(names(SIZES)), labels={storage.ZONE: "a"})
        handle.watch(space)


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_they_agree(data: st.DataObject) -> None:
    own = data.draw(pods("own"))
    handle = FakeHandle([data.draw(nodes(name)) for name in NODES])
    plugins = [cls({}, handle) for cls in PLUGINS]
    data.draw(changes(handle, own))
    _check(plugins, own, handle)
    for i in range(data.draw(st.integers(1, 3))):
        node = data.draw(names(NODES))
        handle.bind(data.draw(pods(f"p{i}", node=node)))
        data.draw(changes(handle, own))
        handle.cache.update_node(data.draw(nodes(data.draw(names(NODES)))))
        handle.refresh()
        _check(plugins, own, handle)


def _check(plugins: list[Any], own: Pod, handle: FakeHandle) -> None:
    for plugin in plugins:
        state = CycleState()
        _, status = plugin.pre_filter(state, own, handle.nodes)
        if status.is_success:
            filter_both(plugin, own, handle.nodes, state)
            some = handle.nodes.subset(np.array([2, 0], dtype=np.intp))
            filter_both(plugin, own, some, state)
