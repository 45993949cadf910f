"""Bindings and evictions, which are posted to a pod."""

from __future__ import annotations

from typing import Final

from scheduler_core.api.reader import Reader
from scheduler_core.api.selectors import label_selector
from scheduler_core.ports import ApiError, Json

from .. import pod_verbs, verbs
from ..errors import bad_request, conflict
from ..objects import labels_of, name_of, namespace_of
from ..resources import RESOURCES
from ..store import Transaction
from . import bodies
from .negotiation import Format, media_type
from .options import delete_options, write_options
from .present import in_media
from .removals import remove
from .status import success
from .writes import Answered, Target, rehearsed

__all__ = ["bind", "evict"]

_BUSY_SECONDS: Final = 10
_EVICTION_VERSIONS: Final = ("policy/v1", "policy/v1beta1")


def _body(target: Target, kind: str) -> Json:
    media = media_type(target.request.headers.get("content-type", ""))
    found = bodies.parsed_as(kind, target.request.body, media)
    if found.get("kind") not in (None, "", kind):
        version = str(found.get("apiVersion") or "").rpartition("/")[2]
        package = "core" if kind == "Binding" else "policy"
        raise bad_request(
            f'{found["kind"]} in version "{version}" cannot be handled as a {kind}: converting '
            f"({version}.{found['kind']}) to ({package}.{kind}): unknown conversion"
        )
    body = bodies.decoded_as(kind, found)
    namespace = body["metadata"].get("namespace") or target.namespace
    if namespace != target.namespace:
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    return body


def bind(target: Target, format_: Format) -> Answered:
    """POST of a Binding.

    Raises:
        ApiError: 404, 409 and so on; 500 where the target is missing, as the real one says.
    """
    binding = _body(target, "Binding")
    options = write_options(target.request, "CreateOptions")
    metadata, node = binding["metadata"], binding.get("target") or {}
    name = target.name or str(metadata.get("name") or "")
    if target.name and metadata.get("name") != name:
        raise bad_request("name in URL does not match name in Binding object")
    kind = node.get("kind") or "Node"
    if kind not in ("Node", "Minion"):
        problem = f'Unsupported value: "{kind}": supported values: "Node", "<empty>"'
        raise ApiError(500, "", f"target.kind: {problem}")
    uid = str(metadata.get("uid") or "")

    def work(tx: Transaction) -> Json:
        where = str(node.get("name") or "")
        pod = verbs.find(tx, RESOURCES["Pod"], target.namespace, name)
        require_version(pod, str(metadata.get("resourceVersion") or ""))
        bound = pod_verbs.bind(tx, target.namespace, name, uid, where)
        return _described(tx, bound, metadata)

    _, kept = rehearsed(target, work, options.dry_run)
    return in_media(format_, success(code=201), 201), kept


def require_version(pod: Json, version: str) -> None:
    """Raises:
    ApiError: 409 where the pod is not at this version.
    """
    current = str(pod["metadata"]["resourceVersion"])
    if version in ("", current):
        return
    key = f"/registry/pods/{namespace_of(pod)}/{name_of(pod)}"
    why = (
        f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, "
        f"AdditionalErrorMsg: Precondition failed: ResourceVersion in precondition: {version}, "
        f"ResourceVersion in object meta: {current}"
    )
    raise conflict("pods", name_of(pod), why)


def _described(tx: Transaction, pod: Json, metadata: Json) -> Json:
    """A binding's labels and annotations go over to its pod."""
    added = {
        field: {**(pod["metadata"].get(field) or {}), **metadata[field]}
        for field in ("labels", "annotations")
        if metadata.get(field)
    }
    if not added:
        return pod
    return tx.put("update", RESOURCES["Pod"], {**pod, "metadata": {**pod["metadata"], **added}})


def evict(target: Target, format_: Format) -> Answered:
    """POST of an Eviction: a delete that disruption budgets may refuse.

    Raises:
        ApiError: 404, 429 where a budget has nothing left.
    """
    eviction = _body(target, "Eviction")
    if eviction.get("apiVersion", "policy/v1") not in _EVICTION_VERSIONS:
        raise bad_request(f"no kind Eviction in version {eviction['apiVersion']}")
    if eviction["metadata"].get("name") != target.name:
        raise bad_request("name in URL does not match name in Eviction object")
    asked = eviction.get("deleteOptions") or {}
    options = delete_options(target.request, asked)

    def work(tx: Transaction) -> Json:
        pod = verbs.find(tx, target.served.resource, target.namespace, target.name)
        if not _may_go_freely(pod):
            _spend(tx, target, pod)
            pod = verbs.find(tx, target.served.resource, target.namespace, target.name)
        return remove(tx, target, _disrupted(tx, pod), options)

    _, kept = rehearsed(target, work, options.dry_run)
    return in_media(format_, success(code=201), 201), kept


def _disrupted(tx: Transaction, pod: Json) -> Json:
    """Says in its status what becomes of it, while it is still to be seen."""
    if not pod["spec"].get("nodeName"):
        return pod
    status = pod.get("status", {})
    others = [c for c in status.get("conditions") or [] if c.get("type") != "DisruptionTarget"]
    target = {
        "type": "DisruptionTarget",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": tx.timestamp,
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
    }
    told = {**pod, "status": {**status, "conditions": [*others, target]}}
    return tx.put("status", RESOURCES["Pod"], told)


def _may_go_freely(pod: Json) -> bool:
    """Ended, not yet running, or going already: no budget counts it."""
    phase = pod.get("status", {}).get("phase")
    return phase in ("Succeeded", "Failed", "Pending") or bool(
        pod["metadata"].get("deletionTimestamp")
    )


def _spend(tx: Transaction, target: Target, pod: Json) -> None:
    budgets = [
        budget
        for budget in tx.objects("PodDisruptionBudget").values()
        if namespace_of(budget) == target.namespace and _covers(budget, pod)
    ]
    if not budgets:
        return
    if len(budgets) > 1:
        raise ApiError(
            500,
            "",
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does "
            "not support.",
        )
    budget = budgets[0]
    status = budget.get("status", {})
    if _unready_may_go(budget, pod):
        return
    _check(budget)
    left = int(status.get("disruptionsAllowed", 0)) - 1
    disrupted = {**status.get("disruptedPods", {}), name_of(pod): tx.timestamp}
    spent = {**status, "disruptionsAllowed": left, "disruptedPods": disrupted}
    resource = RESOURCES["PodDisruptionBudget"]
    tx.put("status", resource, {**budget, "status": spent})


def _covers(budget: Json, pod: Json) -> bool:
    selector = label_selector(Reader(budget.get("spec", {})), "selector")
    return selector is not None and selector.matches(labels_of(pod))


def _unready_may_go(budget: Json, pod: Json) -> bool:
    """A pod that is not ready disrupts nothing where the policy, or a healthy budget, says so."""
    conditions = pod.get("status", {}).get("conditions") or []
    if any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions):
        return False
    if budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = budget.get("status", {})
    desired = int(status.get("desiredHealthy", 0))
    return int(status.get("currentHealthy", 0)) >= desired > 0


def _check(budget: Json) -> None:
    status, name = budget.get("status", {}), name_of(budget)
    observed = int(status.get("observedGeneration", 0))
    if observed < int(budget["metadata"].get("generation", 0)):
        raise _too_many(
            f"The disruption budget {name} is still being processed by the server.", _BUSY_SECONDS
        )
    if int(status.get("disruptionsAllowed", 0)) < 0:
        raise ApiError(403, "Forbidden", "pdb disruptions allowed is negative")
    if int(status.get("disruptionsAllowed", 0)) == 0:
        desired, current = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
        if current > desired:
            raise _too_many(
                f"The disruption budget {name} does not allow evicting pods currently", None
            )
        raise _too_many(
            f"The disruption budget {name} needs {status.get('desiredHealthy', 0)} healthy pods "
            f"and has {status.get('currentHealthy', 0)} currently",
            None,
        )


def _too_many(why: str, seconds: int | None) -> ApiError:
    return ApiError(
        429,
        "TooManyRequests",
        "Cannot evict pod as it would violate the pod's disruption budget.",
        [("DisruptionBudget", why)],
        retry_after=seconds,
    )
