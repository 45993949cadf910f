"""Which dialect an apiVersion is written in."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from .form import Dialect
from .v1alpha2 import V1ALPHA2
from .v1beta1 import V1BETA1

__all__ = ["GROUP", "SERVED_VERSION", "VERSIONS", "dialect_of"]

GROUP: Final = "scheduling.k8s.io"

#: what an object is taken for that does not say its version: that of the reference release
SERVED_VERSION: Final = V1ALPHA2.versions[0]

#: apiVersion -> Dialect
VERSIONS: Final[Mapping[str, Dialect]] = MappingProxyType(
    {version: dialect for dialect in (V1ALPHA2, V1BETA1) for version in dialect.versions}
)


def dialect_of(api_version: object) -> Dialect:
    """The dialect of an apiVersion; that of Kubernetes 1.36 for one that is not known."""
    return VERSIONS.get(str(api_version), V1ALPHA2)
