"""The real trace of a GPU cluster: every task goes where kube-scheduler 1.36.2 put it.

The trace's files are looked for in ``../shared/traces``, or where KUBESCHED_TRACES says.
"""

from __future__ import annotations

import pytest

from scheduler_core.config import load_configuration
from scheduler_core.placements import read_placements
from scheduler_core.plugins.registry import in_tree_registry
from scheduler_core.replay import replay_of_trace
from scheduler_core.workloads.trace import load_trace

#: As recorded: the reference's default profile without DynamicResources.
CONFIGURATION = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins: {multiPoint: {disabled: [{name: DynamicResources}]}}
"""


@pytest.mark.traces
@pytest.mark.slow
@pytest.mark.parametrize("name", ["default", "gpuspec33"])
def test_every_row_is_as_recorded(trace_folder, name):
    trace = load_trace(trace_folder / "openb_nodes.csv", trace_folder / f"openb_pods_{name}.csv")
    expected = read_placements(trace_folder / f"openb-{name}.placements.csv.gz")
    result = replay_of_trace(trace, load_configuration(CONFIGURATION, in_tree_registry())).run()
    found = list(result.placements)
    assert len(found) == len(expected) == 8152
    differences = [(f, e) for f, e in zip(found, expected, strict=True) if f != e]
    assert differences == []
    assert result.cycles == 8152, "without retries every task has one attempt"
