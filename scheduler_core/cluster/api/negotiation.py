"""Which form of an answer a client takes, by its Accept header."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

from scheduler_core.ports import ApiError

from .messages import JSON, YAML
from .status import generic

__all__ = ["Format", "accepted", "media_type"]

Form = Literal["", "Table", "PartialObjectMetadata", "PartialObjectMetadataList"]

_TABLE_VERSIONS: Final = ("v1", "v1beta1")
_OFFERED: Final = "application/json, application/yaml, application/vnd.kubernetes.protobuf"


@dataclass(frozen=True, slots=True)
class Format:
    """Attributes:
    form: what the objects are turned into; "" for themselves.
    version: of meta.k8s.io, for such forms.
    """

    media: str = JSON
    form: Form = ""
    version: str = "v1"


@lru_cache(maxsize=256)
def accepted(header: str) -> Format:
    """The first form of the header that can be given.

    Raises:
        ApiError: 406, none of them can.
    """
    if not header.strip():
        return Format()
    for clause in _by_weight(header):
        found = _offer(clause)
        if found is not None:
            return found
    raise not_acceptable()


def not_acceptable() -> ApiError:
    message = f"406: Not Acceptable\n\nAvailable representations: {_OFFERED}"
    return generic(406, message, "NotAcceptable")


def media_type(header: str) -> str:
    """`application/json; charset=utf-8` -> `application/json`."""
    return header.partition(";")[0].strip().lower()


def _by_weight(header: str) -> list[dict[str, str]]:
    clauses = []
    for text in header.split(","):
        name, *params = (part.strip() for part in text.split(";"))
        pairs = (param.partition("=") for param in params)
        clauses.append({"media": name.lower(), **{key: value for key, _, value in pairs}})
    return sorted(clauses, key=lambda clause: -_weight(clause.get("q", "1")))


def _weight(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def _offer(clause: dict[str, str]) -> Format | None:
    media = clause["media"]
    if media in ("*/*", "application/*"):
        media = JSON
    if media in ("application/yaml", "text/yaml"):
        media = YAML
    if media not in (JSON, YAML):
        return None
    form = clause.get("as", "")
    if form == "":
        return Format(media)
    version = clause.get("v", "v1")
    if clause.get("g") != "meta.k8s.io" or version not in _TABLE_VERSIONS:
        return None
    if form == "Table":
        return Format(media, "Table", version)
    if form == "PartialObjectMetadata":
        return Format(media, "PartialObjectMetadata", version)
    if form == "PartialObjectMetadataList":
        return Format(media, "PartialObjectMetadataList", version)
    return None
