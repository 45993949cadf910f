"""Plays the recorded decisions of kube-scheduler 1.36.2 (tests/data/vectors) against our plugins.

Plugins that do not exist yet are simply not part of the profile, so a scenario is compared plugin
by plugin: what an existing plugin rejected, and its raw and normalised scores on feasible nodes.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from scheduler_core.api import Node, Pod, parse_object
from scheduler_core.backend.cache import Cache
from scheduler_core.backend.informers import Informers
from scheduler_core.backend.queue.nominator import PodNominator
from scheduler_core.backend.snapshot import Snapshot
from scheduler_core.clock import VirtualClock
from scheduler_core.config import Profile, load_configuration
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.nodes import NodeInfos
from scheduler_core.framework.runtime import filtering
from scheduler_core.framework.runtime.framework import Framework, Services
from scheduler_core.framework.runtime.waiting_pods import WaitingPodsMap
from scheduler_core.plugins.registry import in_tree_registry

DATA = Path(__file__).parent.parent / "data" / "vectors"
FAMILIES = tuple(sorted(path.name.removesuffix(".jsonl.gz") for path in DATA.glob("*.jsonl.gz")))
REGISTRY = in_tree_registry()

Scenario = Mapping[str, Any]


def scenarios(family: str) -> Iterator[Scenario]:
    with gzip.open(DATA / f"{family}.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


@lru_cache(maxsize=64)
def _profile(config: str) -> Profile:
    return load_configuration(config, REGISTRY).profiles[0]


class Replay:
    """One scenario's cluster, and the default profile as far as it exists."""

    def __init__(self, scenario: Scenario) -> None:
        self.pods: dict[str, Pod] = {}
        snapshot = _snapshot(scenario, self.pods)
        self.nodes: NodeInfos = snapshot.nodes
        services = Services(
            snapshot=snapshot,
            informers=_informers(scenario),
            nominator=PodNominator(),
            waiting_pods=WaitingPodsMap(),
            cluster=None,  # type: ignore[arg-type]  # nothing is bound here
            clock=VirtualClock(),
            activate=lambda pods: None,
            emit_event=lambda *args, **kwargs: None,
        )
        profile = _profile(scenario["config"])
        points = {
            point: [(ref.name, ref.weight) for ref in refs]
            for point, refs in profile.plugins.items()
        }
        self.framework = Framework(
            profile.scheduler_name, points, profile.plugin_args, REGISTRY, services
        )

    def differences(self, answer: Mapping[str, Any]) -> Iterator[str]:
        """Where our plugins answer otherwise than the recording for one pending pod."""
        pod = self.pods[answer["pod"]]
        state = CycleState()
        outcome = self.framework.run_pre_filter(state, pod)
        if not outcome.status.is_success:
            if answer.get("preFilter") != outcome.status.as_dict():
                yield f"preFilter: {outcome.status} instead of {answer.get('preFilter')}"
            return
        ended = answer.get("preFilter")
        if ended is not None and ended.get("plugin") in REGISTRY:
            yield f"preFilter: passed instead of {ended}"
            return
        yield from self._filter_differences(state, pod, answer)
        if answer.get("feasible"):
            yield from self._score_differences(state, pod, answer)

    def _filter_differences(
        self, state: CycleState, pod: Pod, answer: Mapping[str, Any]
    ) -> Iterator[str]:
        statuses = self.framework.run_filter(state, pod, self.nodes)
        feasible = frozenset(answer.get("feasible", ()))
        rejected = answer.get("filtered", {})
        for row, info in enumerate(self.nodes):
            ours = statuses[row]
            plain = filtering.run_filter_one(self.framework.filter_plugins, state, pod, info)
            if plain != ours:
                yield f"{info.name}: plain {plain}, vector {ours}"
            theirs = rejected.get(info.name)
            if theirs is None and info.name in feasible and not ours.is_success:
                yield f"{info.name}: {ours} instead of feasible"
            if theirs is not None and theirs["plugin"] in REGISTRY:
                mine = (ours.code.label, ours.plugin, sorted(ours.reasons))
                if mine != (theirs["code"], theirs["plugin"], sorted(theirs["reasons"])):
                    yield f"{info.name}: {ours} instead of {theirs}"

    def _score_differences(
        self, state: CycleState, pod: Pod, answer: Mapping[str, Any]
    ) -> Iterator[str]:
        rows = np.array([self.nodes.index_of(name) for name in answer["feasible"]], dtype=np.intp)
        nodes = self.nodes.subset(rows)
        status = self.framework.run_pre_score(state, pod, nodes)
        assert status.is_success, status
        scores, status = self.framework.run_score(state, pod, nodes)
        assert scores is not None, status
        expected = {name for name in answer["raw"] if name in REGISTRY}
        if expected != set(scores.plugins):
            yield f"scored by {sorted(scores.plugins)} instead of {sorted(expected)}"
        weights = dict(zip(scores.plugins, scores.weights.tolist(), strict=True))
        for i, name in enumerate(scores.plugins):
            raw = dict(zip(answer["feasible"], scores.raw[i].tolist(), strict=True))
            scaled = dict(zip(answer["feasible"], scores.normalized[i].tolist(), strict=True))
            if raw != answer["raw"].get(name):
                yield f"raw {name}: {raw} instead of {answer['raw'].get(name)}"
            if scaled != answer["normalized"].get(name):
                yield f"normalized {name}: {scaled} instead of {answer['normalized'].get(name)}"
            if weights[name] != answer["weights"].get(name):
                yield f"weight {name}: {weights[name]} instead of {answer['weights'].get(name)}"
        for i, (plugin, _) in enumerate(
            (p, w) for p, w in self.framework.score_plugins if p.name in weights
        ):
            plain_scores = [plugin.score(state, pod, info) for info in nodes]
            if plain_scores != scores.raw[i].tolist():
                yield f"plain {plugin.name}: {plain_scores}, vector {scores.raw[i].tolist()}"


def _informers(scenario: Scenario) -> Informers:
    """What plugins look up beside nodes and pods on them: namespaces, services, volumes, ..."""
    informers = Informers()
    for raw in scenario["objects"]:
        informers.informer(raw["kind"]).set(parse_object(raw))
    return informers


def _snapshot(scenario: Scenario, pods: dict[str, Pod]) -> Snapshot:
    cache = Cache()
    for raw in scenario["objects"]:
        if raw["kind"] == "Node":
            cache.add_node(Node.from_dict(raw))
    for raw in scenario["objects"]:
        if raw["kind"] == "Pod":
            pod = Pod.from_dict(raw)
            pods[pod.key] = pod
            if pod.node_name:
                cache.add_pod(pod)
    snapshot = Snapshot()
    snapshot.update(cache)
    return snapshot
