"""Plays recorded requests, and compares answers as `tests/data/api/README.md` says."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import yaml

Json = dict[str, Any]
RECORDING = Path(__file__).parents[1] / "data" / "api" / "kube-apiserver-1.36.jsonl"

#: what differs from run to run
VARYING = frozenset(
    {
        "continue",
        "creationTimestamp",
        "deletionTimestamp",
        "lastTransitionTime",
        "resourceVersion",
        "serverAddress",
        "storageVersionHash",
        "time",
        "uid",
    }
)
#: the same within messages
_VARYING_TEXT = (
    (re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"), "UID"),
    (re.compile(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ"), "TIME"),
    (re.compile(r"\bgen-[a-z0-9]{5}\b"), "gen-NAME"),
    (re.compile(r"(resourceVersion\W+)\d+"), r"\1VERSION"),
    (re.compile(r"(current: )\d+"), r"\1VERSION"),
)

#: (status, content type, body, headers); a watch's body is {"events": [...]}
Answered = tuple[int, str, Any, dict[str, str]]
Send = Callable[[str, str, dict[str, str], dict[str, str], bytes], Answered]


def steps() -> list[Json]:
    return [json.loads(line) for line in RECORDING.read_text().splitlines()]


class Player:
    """Sends one step after another, and fills in what a step takes from earlier answers."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._answers: dict[str, Json] = {}

    def play(self, step: Json) -> Answered:
        parts = urlsplit(self._filled(step["path"]))
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        headers = {"User-Agent": "python-requests/2", "Accept": "*/*", **step.get("headers", {})}
        body = step.get("raw", "").encode()
        if "body" in step:
            body = self._filled(json.dumps(step["body"])).encode()
        found = self._send(step["method"], parts.path, query, headers, body)
        if isinstance(found[2], dict):
            self._answers[step["step"]] = found[2]
        return found

    def _filled(self, text: str) -> str:
        names = {"rv": "resourceVersion", "uid": "uid", "cont": "continue"}

        def value(match: re.Match[str]) -> str:
            return str(self._answers[match[2]]["metadata"][names[match[1]]])

        return re.sub(r"\{(rv|uid|cont):([\w-]+)\}", value, text)


def comparable(found: Any) -> Any:
    """Without what varies from run to run."""
    if isinstance(found, dict):
        return {key: comparable(part) for key, part in found.items() if key not in VARYING}
    if isinstance(found, list):
        return [comparable(part) for part in found]
    if isinstance(found, str):
        for pattern, word in _VARYING_TEXT:
            found = pattern.sub(word, found)
    return found


def without_ages(table: Json) -> Json:
    """Ages in tables depend on how fast the steps are played."""
    places = [i for i, c in enumerate(table["columnDefinitions"]) if c["name"] == "Age"]
    rows = [
        {**row, "cells": [c for i, c in enumerate(row["cells"]) if i not in places]}
        for row in table["rows"]
    ]
    return {**table, "rows": rows}


def from_yaml(text: str) -> Any:
    return yaml.safe_load(text)
