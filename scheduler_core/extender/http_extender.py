"""One extender: the questions it can be asked (kube-scheduler 1.36, ``HTTPExtender``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

from scheduler_core.api import Container, Pod
from scheduler_core.config.types import Extender
from scheduler_core.extender import wire
from scheduler_core.extender.client import Call, ExtenderClient, shown_url
from scheduler_core.extender.errors import ExtenderError
from scheduler_core.framework.nodes import NodeInfos
from scheduler_core.framework.types import Candidate

__all__ = ["FilterAnswer", "HTTPExtender", "Question"]


@dataclass(frozen=True, slots=True)
class Question:
    """A pod and the nodes it may run on, written down for an extender; by name for those that
    cache nodes, whole for the others."""

    pod: Pod
    names: Sequence[str]
    body: bytes


@dataclass(frozen=True, slots=True)
class FilterAnswer:
    """What an extender leaves.

    Attributes:
        kept: names of nodes that were asked about.
        emptied: it sent nodes back and not names: they are scored as if no pod was on them.
        failed, unresolvable: node -> reason; a node in both counts as unresolvable.
    """

    kept: frozenset[str]
    emptied: bool
    failed: Mapping[str, str]
    unresolvable: Mapping[str, str]


class HTTPExtender:
    """A service that takes part in decisions.

    Attributes:
        name: as pages and records name it; no two extenders of a scheduler have the same.

    Raises:
        TLSConfigError: certificates or keys cannot be used.
    """

    def __init__(self, config: Extender, threads: Executor, number: int = 1) -> None:
        self._config = config
        self._client = ExtenderClient(config, threads)
        self._managed = frozenset(resource.name for resource in config.managed_resources)
        suffix = f" ({number})" if number > 1 else ""
        self.name = f"Extender {self.url}{suffix}"

    @property
    def url(self) -> str:
        """As the configuration has it, but for a password."""
        return shown_url(self._config.url_prefix)

    @property
    def weight(self) -> int:
        return self._config.weight

    @property
    def is_ignorable(self) -> bool:
        """Its failures do not fail a pod."""
        return self._config.ignorable

    @property
    def is_filter(self) -> bool:
        return bool(self._config.filter_verb)

    @property
    def is_prioritizer(self) -> bool:
        return bool(self._config.prioritize_verb)

    @property
    def is_binder(self) -> bool:
        return bool(self._config.bind_verb)

    @property
    def supports_preemption(self) -> bool:
        return bool(self._config.preempt_verb)

    @property
    def caches_nodes(self) -> bool:
        """``nodeCacheCapable``: it wants names."""
        return self._config.node_cache_capable

    def is_interested(self, pod: Pod) -> bool:
        """Whether it looks after a resource that a container asks for; without managed resources
        it looks after every pod."""
        if not self._managed:
            return True
        return any(map(self._uses_managed, (*pod.containers, *pod.init_containers)))

    def _uses_managed(self, container: Container) -> bool:
        return not self._managed.isdisjoint((*container.requests, *container.limits))

    def filter(self, question: Question) -> FilterAnswer:
        """Which of the nodes it leaves.

        Raises:
            ExtenderError: no answer, an error in it, or a node that was not asked about.
        """
        reply = wire.read_filter(self._client.call(self._config.filter_verb, question.body))
        if reply.error:
            raise ExtenderError(reply.error)
        by_name = self.caches_nodes and reply.node_names is not None
        kept = (reply.node_names if by_name else reply.nodes) or ()
        known = frozenset(question.names)
        for name in kept:
            if name not in known:
                raise ExtenderError(
                    f'extender "{self.url}" claims a filtered node "{name}" which is not found in '
                    "the input node list"
                )
        return FilterAnswer(
            frozenset(kept),
            emptied=not by_name and reply.nodes is not None,
            failed=reply.failed,
            unresolvable=reply.unresolvable,
        )

    def start_prioritize(self, question: Question) -> Call:
        """Ask for scores; ``wire.read_prioritize`` reads the result."""
        return self._client.start(self._config.prioritize_verb, question.body)

    def process_preemption(
        self, pod: Pod, candidates: Mapping[str, Candidate], nodes: NodeInfos
    ) -> dict[str, Candidate]:
        """What it leaves of the candidates, in their order; the victims may be others.

        Raises:
            ExtenderError: no answer, or nodes and victims that cannot be.
        """
        body = wire.preempt_request(pod, candidates, self.caches_nodes)
        reply = wire.read_preempt(self._client.call(self._config.preempt_verb, body))
        for name in reply:
            if name not in candidates:
                raise self._unknown_node(name, nodes)
        kept = [name for name in candidates if name in reply]
        return {
            name: Candidate(
                name, self._victims(pod, name, reply[name], nodes), reply[name].pdb_violations
            )
            for name in kept
        }

    def _unknown_node(self, name: str, nodes: NodeInfos) -> ExtenderError:
        if nodes.get(name) is None:
            return ExtenderError(f'nodeinfo not found for node name "{name}"')
        return ExtenderError(
            f"extender: {self.url} claims to preempt on node: {name}, which is no candidate"
        )

    def _victims(
        self, pod: Pod, node: str, reply: wire.VictimsReply, nodes: NodeInfos
    ) -> tuple[Pod, ...]:
        info = nodes.get(node)
        on_node = {other.uid: other for other in info.pods} if info is not None else {}
        for uid in reply.uids:
            if uid not in on_node:
                raise self._impossible_victim(uid, node, "the pod is not found on that node")
            if on_node[uid].priority >= pod.priority:
                raise self._impossible_victim(uid, node, "its priority is not lower")
        return tuple(on_node[uid] for uid in dict.fromkeys(reply.uids))

    def _impossible_victim(self, uid: str, node: str, why: str) -> ExtenderError:
        return ExtenderError(
            f"extender: {self.url} claims to preempt pod (UID: &{{{uid}}}) on node: {node}, "
            f"but {why}"
        )

    def bind(self, pod: Pod, node: str) -> None:
        """Have it bind the pod; returns when it says that it has.

        Raises:
            ExtenderError: it did not.
        """
        body = wire.bind_request(pod, node)
        error = wire.read_bind(self._client.call(self._config.bind_verb, body))
        if error:
            raise ExtenderError(error)

    def close(self) -> None:
        self._client.close()
