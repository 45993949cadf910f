"""Which spread constraints hold for a pod: its own, or the configuration's defaults with a selector
deduced from the Services and the controller that the pod belongs to (kube-scheduler 1.36)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from scheduler_core.api import (
    EVERYTHING,
    HOSTNAME_LABEL,
    SCHEDULE_ANYWAY,
    LabelSelector,
    Node,
    Pod,
    TopologySpreadConstraint,
    find_untolerated,
)
from scheduler_core.api.reader import Reader
from scheduler_core.api.selectors import label_requirement
from scheduler_core.framework.interface import Handle
from scheduler_core.plugins.helpers.tally import Recent

__all__ = ["HOSTNAME", "Constraint", "ConstraintSource"]

HOSTNAME: Final = HOSTNAME_LABEL
_ZONE: Final = "topology.kubernetes.io/zone"
_HONOR: Final = "Honor"
_BY_NAMESPACE: Final = "namespace"

#: Kinds of pods of which the deduced selectors are kept.
_SELECTORS_KEPT: Final = 1024

_SYSTEM_DEFAULTS: Final = (
    TopologySpreadConstraint(3, HOSTNAME, SCHEDULE_ANYWAY),
    TopologySpreadConstraint(5, _ZONE, SCHEDULE_ANYWAY),
)


@dataclass(frozen=True, slots=True)
class Constraint:
    """A spread constraint as it holds for one pod, matchLabelKeys merged into the selector.

    Attributes:
        selector: None selects no pod; an empty one counts none, but selects the pod itself.
    """

    max_skew: int
    topology_key: str
    selector: LabelSelector | None
    min_domains: int
    honor_affinity: bool
    honor_taints: bool

    def selects(self, labels: Mapping[str, str]) -> bool:
        """Whether the selector matches."""
        return self.selector is not None and self.selector.matches(labels)

    def counts(self, pod: Pod, namespace: str) -> bool:
        """Whether a pod on a node is one of those that are spread. The empty selector counts none,
        and pods that are being deleted do not count."""
        if self.selector is None or self.selector.is_empty:
            return False
        if pod.namespace != namespace or pod.is_terminating:
            return False
        return self.selector.matches(pod.labels)

    def admits(self, pod: Pod, node: Node) -> bool:
        """Whether the node takes part, by the node inclusion policies."""
        if self.honor_affinity and not pod.selects_node(node.labels, node.name):
            return False
        return not self.honor_taints or find_untolerated(node.taints, pod.tolerations) is None


class ConstraintSource:
    """Finds the constraints of pods.

    Args:
        args: PodTopologySpreadArgs, defaulted and validated.
        handle: whose informers show Services and controllers; they are only asked for where there
            are default constraints.
    """

    def __init__(self, args: Mapping[str, Any], handle: Handle) -> None:
        self.system_defaulting = args.get("defaultingType", "System") == "System"
        defaults: Sequence[TopologySpreadConstraint] = (
            _SYSTEM_DEFAULTS
            if self.system_defaulting
            else [
                TopologySpreadConstraint.read(Reader(entry))
                for entry in args.get("defaultConstraints", ())
            ]
        )
        self._defaults_by_action: dict[str, list[TopologySpreadConstraint]] = {}
        for constraint in defaults:
            same_action = self._defaults_by_action.setdefault(constraint.when_unsatisfiable, [])
            same_action.append(constraint)
        if not defaults:
            return
        self._services = handle.informer("Service")
        self._services.add_indexer(_BY_NAMESPACE, lambda service: (service.namespace,))
        #: (namespace, labels) -> the selectors of Services, as long as those stay as they are.
        self._of_services: Recent[LabelSelector] = Recent(_SELECTORS_KEPT)
        self._services_version = -1
        self._controllers = {
            (version, kind): handle.informer(kind)
            for version, kind in (
                ("v1", "ReplicationController"),
                ("apps/v1", "ReplicaSet"),
                ("apps/v1", "StatefulSet"),
            )
        }

    def constraints(self, pod: Pod, action: str) -> tuple[Constraint, ...]:
        """Those whose whenUnsatisfiable is ``action``. A pod with constraints of its own, of
        whatever action, gets no default ones.

        Raises:
            ValueError: a selector does not parse.
        """
        own = pod.topology_spread_constraints
        if own:
            return tuple(_own(c, pod) for c in own if c.when_unsatisfiable == action)
        return self.defaults(pod, action)

    def defaults(self, pod: Pod, action: str) -> tuple[Constraint, ...]:
        """Those of a pod without constraints of its own."""
        wanted = self._defaults_by_action.get(action)
        selector = self._deduced_selector(pod) if wanted else None
        if wanted is None or selector is None:
            return ()
        return tuple(_resolved(c, selector) for c in wanted)

    def _deduced_selector(self, pod: Pod) -> LabelSelector | None:
        """Selectors of all Services that select the pod, and of its controller; None if empty."""
        selector = self._services_selector(pod)
        owner = pod.controller if pod.owner_references else None
        informer = self._controllers.get((owner.api_version, owner.kind)) if owner else None
        if owner is not None and informer is not None:
            controller = informer.get(f"{pod.namespace}/{owner.name}")
            if controller is not None and controller.selector is not None:
                requirements = controller.selector.requirements
                selector = (selector or EVERYTHING).with_requirements(*requirements)
        return None if selector is None or selector.is_empty else selector

    def _services_selector(self, pod: Pod) -> LabelSelector | None:
        """Selectors of all Services that select the pod, as one; None without any Service."""
        services = self._services
        if services.version != self._services_version:
            self._services_version = services.version
            self._of_services.clear()
        if not services.by_index(_BY_NAMESPACE, pod.namespace):
            return None
        return self._of_services.get(
            (pod.namespace, frozenset(pod.labels.items())), lambda: self._merged_services(pod)
        )

    def _merged_services(self, pod: Pod) -> LabelSelector:
        labels: dict[str, str] = {}
        for service in self._services.by_index(_BY_NAMESPACE, pod.namespace):
            if service.selects(pod.labels):
                labels.update(service.selector)
        return LabelSelector.from_labels(labels)


def _own(constraint: TopologySpreadConstraint, pod: Pod) -> Constraint:
    selector = constraint.label_selector
    if selector is None:
        return _resolved(constraint, None)
    if selector.error:
        raise ValueError(selector.error)
    # The API server may have merged them already; once more changes nothing.
    more = [
        label_requirement(key, "In", (pod.labels[key],))
        for key in constraint.match_label_keys
        if key in pod.labels
    ]
    return _resolved(constraint, selector.with_requirements(*more) if more else selector)


def _resolved(constraint: TopologySpreadConstraint, selector: LabelSelector | None) -> Constraint:
    return Constraint(
        constraint.max_skew,
        constraint.topology_key,
        selector,
        1 if constraint.min_domains is None else constraint.min_domains,
        constraint.node_affinity_policy == _HONOR,
        constraint.node_taints_policy == _HONOR,
    )
