"""What makes two pods alike to the scheduler, as a few bytes.

Pods with equal signatures get equal answers from every plugin on an unchanged cluster: what was
worked out for one holds for the other (the reference's opportunistic batching, KEP-5598, is the
smallest form of this idea; it asks each plugin for what it reads, here everything counts).

All of a pod's JSON is in its signature except what is each pod's own and decides nothing:

- metadata: name, uid, resourceVersion, creationTimestamp, generation, managedFields, annotations,
  and the deletionTimestamp's value (that there is one counts);
- spec.nodeName, and the random letters in the name of the volume that the ServiceAccount
  admission plugin gives each pod (`kube-api-access-x7k2p`);
- status.

A pod for which claims are made in its own name (generic ephemeral volumes, resource claims from a
template) has a signature of its own: volume plugins look for those claims by the pod's name.

Labels count, also those that make each pod of an owner unlike its siblings:
`statefulset.kubernetes.io/pod-name`, `apps.kubernetes.io/pod-index`,
`batch.kubernetes.io/job-completion-index`. Selectors may read any of them, so such pods do differ.
Annotations do not: no selector reads them and none of kube-scheduler's plugins, and controllers,
meshes and networks write each pod's own address, hash or time there. (A plugin that reads them when
it filters or scores must not say that it is node-local, see `framework.interface`.)

Two ways to write the same (another order of keys, null for absent, 1.0 for 1) are two signatures:
that costs a comparison that was not saved, never a wrong answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from .content import content_of, digest
from .reader import EMPTY, Raw

__all__ = ["anonymous", "signature_of"]

_OWN_METADATA: Final = frozenset(
    (
        "name",
        "uid",
        "resourceVersion",
        "creationTimestamp",
        "generation",
        "managedFields",
        "annotations",
        "deletionTimestamp",
    )
)
_PARTS: Final = frozenset(("metadata", "spec", "status"))
_TOKEN_VOLUME: Final = re.compile("kube-api-access-[a-z0-9]{5}")
_TOKEN_PREFIX: Final = b"kube-api-access-"
_UNNAMED: Final = b"kube-api-access-*****"


def anonymous(content: bytes, spec: Raw) -> bytes:
    """The content of a spec (JSON, without nodeName) without what admission made up for one pod.

    The same bytes where nothing was made up.
    """
    if _TOKEN_PREFIX not in content:
        return content
    for name in _token_volumes(spec.get("volumes")):
        # As long as the name, so the lengths that are part of the content stay right.
        content = content.replace(name.encode(), _UNNAMED)
    return content


def signature_of(raw: Raw, of_spec: bytes, own: Iterable[str] = ()) -> bytes:
    """A pod's signature.

    Args:
        raw: the pod's JSON.
        of_spec: digest of its spec's `anonymous` content.
        own: what else sets this pod apart from all others.
    """
    metadata = raw.get("metadata") or EMPTY
    shared = {key: value for key, value in metadata.items() if key not in _OWN_METADATA}
    around = {key: value for key, value in raw.items() if key not in _PARTS}
    terminating = metadata.get("deletionTimestamp") is not None
    return digest(content_of((of_spec, shared, around, terminating, tuple(own))))


def _token_volumes(volumes: Any) -> Iterator[str]:
    for volume in volumes if isinstance(volumes, list) else ():
        name = volume.get("name") if isinstance(volume, Mapping) else None
        if isinstance(name, str) and "projected" in volume and _TOKEN_VOLUME.fullmatch(name):
            yield name
