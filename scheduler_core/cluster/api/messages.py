"""Requests and answers, as far as they do not depend on how they travel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Final

from scheduler_core.ports import Json

__all__ = ["JSON", "TEXT", "YAML", "Answer", "Request"]

JSON: Final = "application/json"
YAML: Final = "application/yaml"
TEXT: Final = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Request:
    """One request.

    Attributes:
        path: decoded, below the sandbox's base URL.
        query: parameter -> its first value; a parameter without value has "".
        headers: name in lower case -> value.
        user: who asks, as the token says.
        base_url: for links in answers; may be empty.
    """

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    user: str = "sandbox-user"
    host: str = ""

    def flag(self, name: str) -> bool:
        """A parameter that is true or false; present without a value it is true."""
        return self.query.get(name, "false") in ("", "1", "true", "True", "t")


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer.

    Attributes:
        body: JSON, or text, or bytes, as the content type says.
        kept: where the answer holds only once this is done; it raises ApiError where it does not.
        warnings: what else the client should know (`Warning: 299`).
    """

    status: int
    body: Any
    content_type: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)
    kept: Future[None] | None = None
    warnings: Sequence[str] = ()

    @property
    def object(self) -> Json:
        """The body of a JSON answer."""
        found: Json = self.body
        return found
