"""A decision with an extender's scores is stored and read back as it was."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from dashboard.matrices import decode, encode
from scheduler_core.testing.builders import make_node, make_pod
from scheduler_core.testing.harness import Harness
from tests.core.extender.server import FakeExtender, keep, scores


@pytest.mark.parametrize("given", [7, 0, -4, 400, 2**40, 2**62])
def test_a_matrix_with_an_extenders_row(extender: Callable[..., FakeExtender], given: int) -> None:
    fake = extender(
        {"filter": keep("n0", "n1", FailedNodes={"n2": "no"}), "prioritize": scores(n1=given)}
    )
    config = {
        "urlPrefix": fake.url,
        "filterVerb": "filter",
        "prioritizeVerb": "prioritize",
        "weight": 2,
        "nodeCacheCapable": True,
    }
    nodes = [make_node(f"n{i}") for i in range(4)]
    h = Harness(nodes=nodes, pods=[make_pod("p")], config={"extenders": [config]})
    h.settle()
    before = h.cycle("p").matrix
    assert before is not None and before.scored
    after = decode(encode(before), before.node_names)
    assert after.plugins == before.plugins and f"Extender {fake.url}" in after.plugins
    for field in ("weights", "raw", "normalized", "total", "rejection"):
        assert np.array_equal(getattr(after, field), getattr(before, field)), field
    assert after.reasons == before.reasons
    assert after.rejection.tolist()[:2] == [-1, -1]
