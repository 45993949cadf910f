"""OpenAPI."""

from __future__ import annotations

from .catalog import Catalog
from .messages import TEXT, Answer, Request


def document(catalog: Catalog, request: Request) -> Answer:
    return Answer(404, "404 page not found\n", TEXT)
