"""`manage.py benchmark extender`: small, and both latencies are printed."""

from __future__ import annotations

import io
import json

from django.core.management import call_command

KINDS = {
    f"{verb}, {nodes}"
    for verb in ("filter", "prioritize")
    for nodes in (
        "node names",
        "whole nodes, as in the cache",
        "whole nodes, newer than the cache",
    )
}


def benchmark(*arguments: str) -> str:
    out = io.StringIO()
    call_command("benchmark", "extender", "--nodes", "20", "--calls", "2", *arguments, stdout=out)
    return out.getvalue()


def test_every_kind_of_call_is_timed() -> None:
    found = json.loads(benchmark("--json"))
    assert found["nodes"] == 20
    assert 4_000 <= found["node_bytes"] <= 4_200
    assert set(found["calls"]) == KINDS
    assert all(call["calls"] == 2 and call["p50_ms"] > 0 for call in found["calls"].values())


def test_the_table_is_for_people() -> None:
    text = benchmark()
    assert "20 nodes of 4,0" in text
    assert "filter, node names" in text and "median ms" in text
