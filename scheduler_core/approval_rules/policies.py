"""Policies: the first that matches a pod, or any member of its gang, sets the terms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from scheduler_core.api import LabelSelector, Pod
from scheduler_core.approval_rules.windows import WeeklyWindow
from scheduler_core.records import Verdict

__all__ = ["Asked", "Demand", "Policy", "Rules"]


@dataclass(frozen=True, slots=True)
class Demand:
    """How an approval is given.

    Attributes:
        approvers: how many different people.
        requester_may_approve: whether the requester's own approval counts.
        groups: only members of one of these may decide; empty: whoever may decide at all.
        at_deadline: what happens when nobody has decided: DENY or APPROVE.
        timeout: seconds that a pod waits for it, 1..900.
        windows: at these times nobody is asked.
    """

    approvers: int = 1
    requester_may_approve: bool = True
    groups: tuple[str, ...] = ()
    at_deadline: Verdict = Verdict.DENY
    timeout: int = 900
    windows: tuple[WeeklyWindow, ...] = ()


@dataclass(frozen=True, slots=True)
class Asked:
    """A pod, or a gang as a whole, that wants to run.

    Attributes:
        members: the pod, or every known member of its gang.
        pods: how many there are, or have to be.
        gpus: what they ask for together.
    """

    members: Sequence[Pod]
    pods: int
    gpus: int


@dataclass(frozen=True, slots=True)
class Policy:
    """Who has to be asked: every condition that is given must hold.

    Attributes:
        namespaces: shell patterns (``team-*``), any of them; empty: all namespaces.
        selector: a label selector of pods, or None.
        min_priority, max_priority: of pods, both included, or None.
        more_than_pods: the gang (or lone pod: 1) is larger, or None.
        more_than_gpus: it asks for more GPUs together, or None.
    """

    name: str
    demand: Demand
    namespaces: tuple[str, ...] = ()
    selector: LabelSelector | None = None
    min_priority: int | None = None
    max_priority: int | None = None
    more_than_pods: int | None = None
    more_than_gpus: int | None = None

    def matches(self, asked: Asked) -> bool:
        """Sizes are the whole gang's; the other conditions one member must meet, all together."""
        if self.more_than_pods is not None and asked.pods <= self.more_than_pods:
            return False
        if self.more_than_gpus is not None and asked.gpus <= self.more_than_gpus:
            return False
        return any(self._is_about(pod) for pod in asked.members)

    def _is_about(self, pod: Pod) -> bool:
        if self.namespaces and not any(fnmatchcase(pod.namespace, n) for n in self.namespaces):
            return False
        if self.min_priority is not None and pod.priority < self.min_priority:
            return False
        if self.max_priority is not None and pod.priority > self.max_priority:
            return False
        return self.selector is None or self.selector.matches(pod.labels)

    def why(self, asked: Asked) -> str:
        """What makes it apply, for a person: ``policy big: 24 GPUs, more than 16``."""
        reasons = []
        if self.namespaces:
            reasons.append(f"namespace {asked.members[0].namespace}")
        if self.min_priority is not None or self.max_priority is not None:
            reasons.append(f"priority {max(pod.priority for pod in asked.members)}")
        if self.more_than_pods is not None:
            reasons.append(f"{asked.pods} pods, more than {self.more_than_pods}")
        if self.more_than_gpus is not None:
            reasons.append(f"{asked.gpus} GPUs, more than {self.more_than_gpus}")
        if self.selector is not None:
            reasons.append("its labels")
        return f"policy {self.name}: {'; '.join(reasons) or 'every pod'}"


@dataclass(frozen=True, slots=True)
class Rules:
    """All arguments of ManualApproval.

    Attributes:
        demand: for pods that ask by themselves, or that ``selector`` matches, and no policy does.
        gpu_resources: which resources count as GPUs.
    """

    demand: Demand = field(default_factory=Demand)
    selector: LabelSelector | None = None
    policies: tuple[Policy, ...] = ()
    gpu_resources: tuple[str, ...] = ("nvidia.com/gpu", "amd.com/gpu")

    def policy_for(self, asked: Asked) -> Policy | None:
        """The first that matches."""
        return next((policy for policy in self.policies if policy.matches(asked)), None)

    def gpus(self, requests: Mapping[str, int]) -> int:
        """GPUs among some requests."""
        return sum(requests.get(name, 0) for name in self.gpu_resources)
