"""POST pods/binding, with an outcome for whatever the server or the network does.

| answer | what follows |
| --- | --- |
| 2xx | bound |
| 404, 409, 410, 422, other 4xx | the refusal is raised; the pod is scheduled anew |
| 429 | not carried out: again after Retry-After |
| 502, 503, 504, 5xx with Retry-After | may have been carried out: look, then again |
| 500 and the like | may have been carried out: look, then the refusal is raised |
| no connection | not sent: again |
| no answer | may have been carried out, or may yet be: look, then again |

"Look" is a consistent GET of the pod: bound to our node and of our uid is success, anything else
that is final is raised; where the pod cannot be seen the binding is sent again. While a lost
request may still arrive the node stays the same, so that it does no harm when it does: who gives up
too early lets a pod be bound twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import orjson

from scheduler_core.api.kinds import KINDS
from scheduler_core.ports import ApiError, Conflict, Json

from .api import KubeApi
from .resources import object_path
from .statuses import LostAnswer, error_of
from .timing import Backoff
from .transport import Answer

__all__ = ["Binding", "bind"]

_POD: Final = KINDS["Pod"]
#: Seconds within which a server has ended what it was sent, whatever becomes of the connection
#: (kube-apiserver's --request-timeout).
SERVER_TIMEOUT: Final = 60.0
#: Seconds that a binding is tried in all; longer only while a lost request may still arrive.
BUDGET: Final = 120.0


@dataclass(frozen=True, slots=True)
class Binding:
    namespace: str
    name: str
    uid: str
    node: str

    @property
    def body(self) -> Json:
        """The Binding object; the uid makes a namesake of the pod a Conflict."""
        metadata = {"name": self.name, "namespace": self.namespace or "default"}
        if self.uid:
            metadata["uid"] = self.uid
        target = {"apiVersion": "v1", "kind": "Node", "name": self.node}
        return {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}


def bind(api: KubeApi, binding: Binding) -> None:
    """Bind a pod.

    Raises:
        ApiError: it is not bound to the node, or it is not known whether it is (`LostAnswer`).
    """
    path = object_path(_POD, "v1", binding.namespace, binding.name, "binding")
    body = orjson.dumps(binding.body)
    backoff = api.backoff()
    deadline = api.timing.monotonic() + BUDGET
    doubtful = False  # an earlier request may have been carried out
    while True:
        try:
            answer = api.once("POST", path, (), body)
        except LostAnswer as lost:
            if lost.sent:
                doubtful = True
                deadline = max(deadline, api.timing.monotonic() + SERVER_TIMEOUT)
                if _is_ours(api, binding):
                    return
            api.pause(backoff.pause(), deadline, lost)
            continue
        except ApiError:
            # The fence is closed: the next holder of the lease sees what became of the pod.
            if doubtful and _is_ours(api, binding):
                return
            raise
        if answer.status < 300:
            return
        doubtful = doubtful or answer.status >= 500
        seconds = _after_refusal(api, binding, answer, backoff, doubtful=doubtful)
        if seconds is None:
            return
        api.pause(seconds, deadline, error_of(answer))


def _after_refusal(
    api: KubeApi, binding: Binding, answer: Answer, backoff: Backoff, *, doubtful: bool
) -> float | None:
    """Seconds after which it is sent again; None: it is bound all the same.

    Raises:
        ApiError: it is not.
    """
    ours = _is_ours(api, binding) if doubtful and answer.status != 429 else False
    if ours:
        return None
    seconds = api.retry_after(answer, backoff, repeatable=True)
    if seconds is not None:
        return seconds
    if ours is None:
        return (
            backoff.pause()
        )  # it could not be seen: only the repetition can say what became of it
    raise error_of(answer)


def _is_ours(api: KubeApi, binding: Binding) -> bool | None:
    """Whether the pod is bound to our node; False: not yet; None: it could not be seen.

    Raises:
        ApiError: it never will be: gone, another pod of that name, or bound elsewhere.
    """
    try:
        pod = api.get(object_path(_POD, "v1", binding.namespace, binding.name))
    except ApiError as refusal:
        if refusal.code in (404, 410):
            raise
        return None
    uid = pod.get("metadata", {}).get("uid")
    if binding.uid and uid != binding.uid:
        raise Conflict(f'pods "{binding.name}" was made anew: its uid is {uid}')
    node = pod.get("spec", {}).get("nodeName")
    if node and node != binding.node:
        raise Conflict(f'pods "{binding.name}" is already assigned to node "{node}"')
    return bool(node)
