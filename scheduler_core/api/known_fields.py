"""Fields that Kubernetes 1.36 knows, for the kinds and the parts that decide about scheduling.

A misspelt field would otherwise be ignored in silence, and the pod placed as if it were not there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from .native.dialects import VERSIONS
from .native.form import Dialect

__all__ = ["unknown_fields"]

# A mapping lists the fields of an object; None stands for anything, a list for a list of its item.
_ANY: Final = None


def _fields(names: str, **known: Any) -> dict[str, Any]:
    return {**dict.fromkeys(names.split(), _ANY), **known}


_LABEL_SELECTOR = _fields("matchLabels", matchExpressions=[_fields("key operator values")])
_NODE_TERM = _fields(
    "",
    matchExpressions=[_fields("key operator values")],
    matchFields=[_fields("key operator values")],
)
_POD_TERM = _fields(
    "topologyKey namespaces matchLabelKeys mismatchLabelKeys",
    labelSelector=_LABEL_SELECTOR,
    namespaceSelector=_LABEL_SELECTOR,
)
_POD_AFFINITY = _fields(
    "",
    requiredDuringSchedulingIgnoredDuringExecution=[_POD_TERM],
    preferredDuringSchedulingIgnoredDuringExecution=[_fields("weight", podAffinityTerm=_POD_TERM)],
)
_AFFINITY = _fields(
    "",
    nodeAffinity=_fields(
        "",
        requiredDuringSchedulingIgnoredDuringExecution=_fields("", nodeSelectorTerms=[_NODE_TERM]),
        preferredDuringSchedulingIgnoredDuringExecution=[_fields("weight", preference=_NODE_TERM)],
    ),
    podAffinity=_POD_AFFINITY,
    podAntiAffinity=_POD_AFFINITY,
)
_CONTAINER = _fields(
    "args command env envFrom image imagePullPolicy lifecycle livenessProbe name readinessProbe "
    "resizePolicy restartPolicy restartPolicyRules securityContext startupProbe stdin stdinOnce "
    "terminationMessagePath terminationMessagePolicy tty volumeDevices volumeMounts workingDir",
    ports=[_fields("name containerPort hostPort hostIP protocol")],
    resources=_fields("requests limits claims"),
)
_POD_SPEC = _fields(
    "activeDeadlineSeconds automountServiceAccountToken dnsConfig dnsPolicy enableServiceLinks "
    "ephemeralContainers hostAliases hostIPC hostNetwork hostPID hostUsers hostname "
    "hostnameOverride imagePullSecrets nodeName nodeSelector os overhead preemptionPolicy priority "
    "priorityClassName readinessGates restartPolicy runtimeClassName schedulerName "
    "securityContext serviceAccount serviceAccountName setHostnameAsFQDN shareProcessNamespace "
    "subdomain terminationGracePeriodSeconds volumes",
    affinity=_AFFINITY,
    containers=[_CONTAINER],
    initContainers=[_CONTAINER],
    resourceClaims=[_fields("name resourceClaimName resourceClaimTemplateName")],
    resources=_fields("requests limits claims"),
    schedulingGates=[_fields("name")],
    schedulingGroup=_fields("podGroupName"),
    tolerations=[_fields("key operator value effect tolerationSeconds")],
    topologySpreadConstraints=[
        _fields(
            "maxSkew topologyKey whenUnsatisfiable matchLabelKeys minDomains nodeAffinityPolicy "
            "nodeTaintsPolicy",
            labelSelector=_LABEL_SELECTOR,
        )
    ],
)
_NODE_SPEC = _fields(
    "configSource externalID podCIDR podCIDRs providerID unschedulable",
    taints=[_fields("key value effect timeAdded")],
)
_METADATA = _fields(
    "annotations creationTimestamp deletionGracePeriodSeconds deletionTimestamp finalizers "
    "generateName generation labels managedFields name namespace ownerReferences resourceVersion "
    "selfLink uid"
)


def _kind(spec: Any = _ANY, **known: Any) -> dict[str, Any]:
    return _fields("apiVersion kind", metadata=_METADATA, spec=spec, status=_ANY, **known)


_KINDS: Final[Mapping[str, Any]] = {
    "Pod": _kind(_POD_SPEC),
    "Node": _kind(_NODE_SPEC),
    "PodGroup": _kind(_fields("minMember minResources scheduleTimeoutSeconds")),
    "Namespace": _kind(_fields("finalizers")),
    "PriorityClass": _fields(
        "apiVersion kind description globalDefault preemptionPolicy value", metadata=_METADATA
    ),
    "PodDisruptionBudget": _kind(
        _fields("minAvailable maxUnavailable unhealthyPodEvictionPolicy", selector=_LABEL_SELECTOR)
    ),
}


def _group_fields(dialect: Dialect, more: str) -> dict[str, Any]:
    """A native PodGroup's spec, or a template of it in a Workload."""
    return _fields(
        f"priorityClassName priority {dialect.fields} {more}",
        schedulingPolicy=_fields("", basic=_fields(""), gang=_fields("minCount")),
        schedulingConstraints=_fields("", topology=[_fields("key")]),
        resourceClaims=[_fields("name resourceClaimName resourceClaimTemplateName")],
        disruptionMode=dialect.disruption_mode_fields,
    )


def _native_kinds(dialect: Dialect) -> dict[str, Any]:
    group = _group_fields(dialect, "")
    template = _group_fields(dialect, "name")
    return {
        "PodGroup": _kind({**group, dialect.template_ref_field: dialect.template_ref_fields}),
        "Workload": _kind(
            _fields(
                "compositePodGroupTemplates",
                controllerRef=_fields("apiGroup kind name"),
                podGroupTemplates=[template],
            )
        ),
    }


#: apiVersion -> kinds of scheduling.k8s.io that have another meaning than those above
_NATIVE: Final[Mapping[str, Mapping[str, Any]]] = MappingProxyType(
    {version: _native_kinds(dialect) for version, dialect in VERSIONS.items()}
)


def unknown_fields(raw: Mapping[str, Any]) -> list[str]:
    """Paths of fields that Kubernetes does not know, such as `spec.containers[0].imagee`.

    Kinds without a table here, and parts that do not matter for scheduling, are not looked at.
    """
    kind = str(raw.get("kind"))
    known = _NATIVE.get(str(raw.get("apiVersion")), _KINDS).get(kind)
    return [] if known is None else list(_unknown(raw, known, ""))


def _unknown(value: Any, known: Any, path: str) -> Iterator[str]:
    if isinstance(known, list) and isinstance(value, list):
        for index, item in enumerate(value):
            yield from _unknown(item, known[0], f"{path}[{index}]")
    elif isinstance(known, Mapping) and isinstance(value, Mapping):
        for key, part in value.items():
            at = f"{path}.{key}" if path else str(key)
            if key not in known:
                yield at
            else:
                yield from _unknown(part, known[key], at)
