"""Volumes of the old in-tree cloud providers, as the CSI drivers that took them over see them.

kube-scheduler 1.36 counts and places such a volume as if it were the driver's (CSI migration).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from scheduler_core.api import Node, NodeSelector, NodeSelectorTerm, PersistentVolume, Volume
from scheduler_core.api.selectors import node_requirement
from scheduler_core.api.storage import CSINode

__all__ = [
    "MIGRATED_PLUGINS",
    "admits",
    "csi_affinity",
    "csi_volume",
    "driver_of_inline",
    "driver_of_plugin",
    "inline_volume",
    "is_inline_migratable",
    "is_migratable",
    "is_migrated_on",
]

#: A CSINode's list of the in-tree plugins that its drivers have taken over on that node.
MIGRATED_PLUGINS: Final = "storage.alpha.kubernetes.io/migrated-plugins"

_ZONE: Final = "topology.kubernetes.io/zone"
_REGION: Final = "topology.kubernetes.io/region"
_OLD_ZONE: Final = "failure-domain.beta.kubernetes.io/zone"
_OLD_REGION: Final = "failure-domain.beta.kubernetes.io/region"
_SEPARATOR: Final = "__"

_Source = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _InTree:
    """One in-tree volume plugin.

    Attributes:
        handle: the CSI volume handle of a source and the zones it lies in; ValueError if there is
            none.
        topology_key: the driver's own label for zones, "" where it has none.
        counts: whether its volumes count as the driver's on nodes (and not only by name).
    """

    plugin: str
    driver: str
    handle: Callable[[_Source, tuple[str, ...]], str]
    topology_key: str = ""
    counts: bool = True


def is_inline_migratable(volume: Volume) -> bool:
    """Whether a pod's volume is of a kind that has a CSI driver by now."""
    return volume.source in _IN_TREE


def is_migratable(pv: PersistentVolume) -> bool:
    return pv.source in _IN_TREE


def driver_of_inline(volume: Volume) -> str:
    """The CSI driver of a pod's in-tree volume, "" if it has none."""
    known = _IN_TREE.get(volume.source)
    return known.driver if known is not None else ""


def driver_of_plugin(provisioner: str) -> str | None:
    """The CSI driver behind an in-tree provisioner: "" where it does not count on nodes, None
    where the provisioner is not in-tree."""
    known = _BY_PLUGIN.get(provisioner)
    if known is None:
        return None
    return known.driver if known.counts else ""


def inline_volume(volume: Volume) -> tuple[str, str] | None:
    """(driver, volume handle) of a pod's in-tree volume; None where it does not count.

    Raises:
        ValueError: the source cannot be translated.
    """
    known = _IN_TREE.get(volume.source)
    if known is None or not known.counts:
        return None
    return known.driver, known.handle(volume.spec, ())


def csi_volume(pv: PersistentVolume) -> tuple[str, str] | None:
    """(driver, volume handle) of a volume, CSI or in-tree; None where it does not count.

    Raises:
        ValueError: the source cannot be translated.
    """
    if pv.source == "csi":
        return pv.driver, pv.volume_handle
    known = _IN_TREE.get(pv.source)
    if known is None or not known.counts:
        return None
    return known.driver, known.handle(_source_of(pv), _zones_of(pv))


def is_migrated_on(pv: PersistentVolume, csi_node: CSINode | None) -> bool:
    """Whether a node's drivers have taken this in-tree volume over."""
    known = _IN_TREE.get(pv.source)
    if known is None or not known.counts or csi_node is None:
        return False
    return known.plugin in csi_node.annotations.get(MIGRATED_PLUGINS, "").split(",")


def admits(pv: PersistentVolume, node: Node, csi_node: CSINode | None) -> bool:
    """Whether the volume can be used on the node, by its node affinity. The node's name does not
    count, only its labels.

    Raises:
        ValueError: it is an in-tree volume that cannot be translated.
    """
    affinity = csi_affinity(pv) if is_migrated_on(pv, csi_node) else pv.node_affinity
    return affinity is None or affinity.matches(node.labels, "")


def csi_affinity(pv: PersistentVolume) -> NodeSelector | None:
    """The node affinity that the CSI driver's own volume would have; zones of the volume's labels
    are in it, under the driver's key.

    Raises:
        ValueError: the source cannot be translated.
    """
    known = _IN_TREE[pv.source]
    known.handle(_source_of(pv), _zones_of(pv))
    if not known.topology_key:
        return pv.node_affinity
    zone, region = _topology_labels(pv)
    affinity = pv.node_affinity
    if affinity is not None and _has_values(affinity, zone):
        affinity = _renamed(affinity, zone, known.topology_key)
    elif zone in pv.labels:
        affinity = _with_zones(affinity, known.topology_key, pv.labels[zone])
    if region == _OLD_REGION and affinity is not None and _has_values(affinity, region):
        affinity = _renamed(affinity, region, _REGION)
    return affinity


def _topology_labels(pv: PersistentVolume) -> tuple[str, str]:
    """Which generation of zone and region labels the volume speaks."""
    keys = {
        r.key
        for term in (pv.node_affinity.terms if pv.node_affinity else ())
        for r in term.match_expressions
    }
    for names in (keys, pv.labels):
        if _ZONE in names:
            break
        if _OLD_ZONE in names:
            return _OLD_ZONE, _OLD_REGION
    return _ZONE, _REGION


def _has_values(affinity: NodeSelector, key: str) -> bool:
    return any(
        r.key == key and bool(r.values) for term in affinity.terms for r in term.match_expressions
    )


def _renamed(affinity: NodeSelector, old: str, new: str) -> NodeSelector:
    return NodeSelector(
        tuple(
            NodeSelectorTerm(
                tuple(
                    node_requirement(new, r.operator, r.values) if r.key == old else r
                    for r in term.match_expressions
                ),
                term.match_fields,
            )
            for term in affinity.terms
        )
    )


def _with_zones(affinity: NodeSelector | None, key: str, label: str) -> NodeSelector | None:
    zones = tuple(sorted({zone.strip() for zone in label.split(_SEPARATOR)} - {""}))
    if not zones:
        return affinity
    wanted = node_requirement(key, "In", zones)
    terms = (affinity.terms if affinity is not None else ()) or (NodeSelectorTerm(),)
    return NodeSelector(
        tuple(NodeSelectorTerm((*t.match_expressions, wanted), t.match_fields) for t in terms)
    )


# -- handles ---------------------------------------------------------------------------------------


def _source_of(pv: PersistentVolume) -> _Source:
    source: _Source = pv.raw["spec"][pv.source]
    return source


def _zones_of(pv: PersistentVolume) -> tuple[str, ...]:
    return tuple((pv.labels.get(_OLD_ZONE) or pv.labels.get(_ZONE, "")).split(_SEPARATOR))


def _field(name: str) -> Callable[[_Source, tuple[str, ...]], str]:
    return lambda source, _zones: str(source.get(name) or "")


_AWS_ID: Final = re.compile(r"vol-[^/]*")


def _aws_handle(source: _Source, _zones: tuple[str, ...]) -> str:
    """``aws://zone/vol-1`` and ``vol-1`` are the same volume."""
    text = str(source.get("volumeID") or "")
    if not text.startswith("aws://"):
        return text
    found = urlsplit(text).path.strip("/")
    if _AWS_ID.fullmatch(found) is None:
        raise ValueError(
            "failed to translate Kubernetes ID to EBS Volume ID "
            f"Invalid format for AWS volume ({text})"
        )
    return found


def _gce_handle(source: _Source, zones: tuple[str, ...]) -> str:
    disk = source.get("pdName") or ""
    if len(zones) > 1:
        return f"projects/UNSPECIFIED/regions/{_gce_region(zones)}/disks/{disk}"
    zone = zones[0] if zones and zones[0] else "UNSPECIFIED"
    return f"projects/UNSPECIFIED/zones/{zone}/disks/{disk}"


def _gce_region(zones: tuple[str, ...]) -> str:
    regions = set()
    for zone in zones:
        parts = zone.split("-")
        if len(parts) != 3:
            raise ValueError(
                "failed to get region from zones: zone in unexpected format, expected: "
                f"{{locale}}-{{region}}-{{zone}}, got: {zone}"
            )
        regions.add("-".join(parts[:2]))
    if len(regions) != 1:
        found = " ".join(sorted(regions))
        raise ValueError(
            "failed to get region from zones: multiple or no regions gotten from zones, "
            f"got: {found}"
        )
    return regions.pop()


def _azure_handle(source: _Source, _zones: tuple[str, ...]) -> str:
    kind = source.get("kind")
    if kind is not None and str(kind).lower() != "managed":
        raise ValueError(f"kind({kind}) is not supported in csi migration")
    return str(source.get("diskURI") or "")


#: JSON key of the source -> plugin
_IN_TREE: Final[Mapping[str, _InTree]] = {
    "awsElasticBlockStore": _InTree(
        "kubernetes.io/aws-ebs",
        "ebs.csi.aws.com",
        _aws_handle,
        "topology.ebs.csi.aws.com/zone",
    ),
    "gcePersistentDisk": _InTree(
        "kubernetes.io/gce-pd", "pd.csi.storage.gke.io", _gce_handle, "topology.gke.io/zone"
    ),
    "azureDisk": _InTree("kubernetes.io/azure-disk", "disk.csi.azure.com", _azure_handle),
    "cinder": _InTree(
        "kubernetes.io/cinder",
        "cinder.csi.openstack.org",
        _field("volumeID"),
        "topology.cinder.csi.openstack.org/zone",
    ),
    "portworxVolume": _InTree(
        "kubernetes.io/portworx-volume", "pxd.portworx.com", _field("volumeID")
    ),
    "azureFile": _InTree(
        "kubernetes.io/azure-file", "file.csi.azure.com", _field("shareName"), counts=False
    ),
    "vsphereVolume": _InTree(
        "kubernetes.io/vsphere-volume", "csi.vsphere.vmware.com", _field("volumePath"), counts=False
    ),
}

_BY_PLUGIN: Final[Mapping[str, _InTree]] = {known.plugin: known for known in _IN_TREE.values()}
