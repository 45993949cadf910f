"""A request to a worker, and its answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

__all__ = ["JSON", "TEXT", "Answer", "BadBody", "Handler", "Request", "as_json", "problem"]

JSON: Final = "application/json"
TEXT: Final = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Request:
    """``path`` without the query; ``query`` has every value of a name; ``headers`` by lower-case
    name.

    Attributes:
        trusted: it came over the unix socket, which only this user can open, or with a client
            certificate of the authority that is trusted here.
        address: where it came from, for counting failures.
        receive: reads the body from the connection; None where ``body`` has it.
    """

    method: str
    path: str
    query: Mapping[str, Sequence[str]]
    headers: Mapping[str, str]
    body: bytes = b""
    trusted: bool = False
    address: str = ""
    receive: Callable[[], bytes] | None = None

    def content(self) -> bytes:
        """The body: ask once, and only for who may send one.

        Raises:
            BadBody: it cannot be had.
        """
        return self.body if self.receive is None else self.receive()


@dataclass(frozen=True, slots=True)
class Answer:
    """``headers`` besides length and type."""

    status: int = 200
    body: bytes = b""
    media_type: str = TEXT
    headers: Mapping[str, str] = field(default_factory=dict)


class BadBody(Exception):
    """A body that is too large, ends early or is no HTTP; ``answer`` says so."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.body.decode())
        self.answer = answer


Handler = Callable[[Request], Answer]


def as_json(document: Any, status: int = 200) -> Answer:
    return Answer(status, json.dumps(document, ensure_ascii=False).encode(), JSON)


def problem(status: int, text: str, **headers: str) -> Answer:
    """An answer that says in one line what is wrong."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status, f"{text}\n".encode(), TEXT, named)
