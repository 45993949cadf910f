"""Numbers of fields in Kubernetes' protobuf encoding, for what stock clients send in it.

Each row names the fields of a type in the order of their numbers; `-` is a number without a
field, `8=` goes on at 8, and `+Type` is a message whose fields belong to the type itself. What is
not here is not read: the client is told so.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

__all__ = ["NUMBERS"]

_ROWS: Final = """
ObjectMeta: name generateName namespace selfLink uid resourceVersion generation creationTimestamp
  deletionTimestamp deletionGracePeriodSeconds labels annotations ownerReferences finalizers
  17= managedFields
OwnerReference: kind 3= name uid apiVersion controller blockOwnerDeletion
ManagedFieldsEntry: manager operation apiVersion time - fieldsType fieldsV1 subresource
LabelSelector: matchLabels matchExpressions
LabelSelectorRequirement: key operator values
Condition: type status observedGeneration lastTransitionTime reason message
DeleteOptions: gracePeriodSeconds preconditions orphanDependents propagationPolicy dryRun
Preconditions: uid resourceVersion
ObjectReference: kind namespace name uid apiVersion resourceVersion fieldPath
LocalObjectReference: name

Binding: metadata target
Eviction: metadata deleteOptions
Namespace: metadata spec status
NamespaceSpec: finalizers
NamespaceStatus: phase conditions
ConfigMap: metadata data - immutable

Event: metadata eventTime series reportingController reportingInstance action reason regarding
  related note type deprecatedSource deprecatedFirstTimestamp deprecatedLastTimestamp
  deprecatedCount
EventSeries: count lastObservedTime
EventSource: component host
CoreEvent: metadata involvedObject reason message source firstTimestamp lastTimestamp count type
  eventTime series action related reportingComponent reportingInstance
CoreEventSeries: count lastObservedTime

Lease: metadata spec
LeaseSpec: holderIdentity leaseDurationSeconds acquireTime renewTime leaseTransitions strategy
  preferredHolder
PriorityClass: metadata value globalDefault description preemptionPolicy
PodDisruptionBudget: metadata spec status
PodDisruptionBudgetSpec: minAvailable selector maxUnavailable unhealthyPodEvictionPolicy
PodDisruptionBudgetStatus: observedGeneration disruptedPods disruptionsAllowed currentHealthy
  desiredHealthy expectedPods conditions

SelfSubjectAccessReview: metadata spec status
SelfSubjectAccessReviewSpec: resourceAttributes nonResourceAttributes
ResourceAttributes: namespace verb group version resource subresource name fieldSelector
  labelSelector
NonResourceAttributes: path verb
SubjectAccessReviewStatus: allowed reason evaluationError denied
SelfSubjectRulesReview: metadata spec status
SelfSubjectRulesReviewSpec: namespace
SubjectRulesReviewStatus: resourceRules nonResourceRules incomplete evaluationError
SelfSubjectReview: metadata status
SelfSubjectReviewStatus: userInfo
UserInfo: username uid groups

Scale: metadata spec status
ScaleSpec: replicas
ScaleStatus: replicas selector

Service: metadata spec status
ServiceSpec: ports selector clusterIP type externalIPs - sessionAffinity loadBalancerIP
  loadBalancerSourceRanges externalName externalTrafficPolicy healthCheckNodePort
  publishNotReadyAddresses sessionAffinityConfig 17= ipFamilyPolicy clusterIPs ipFamilies
  allocateLoadBalancerNodePorts loadBalancerClass internalTrafficPolicy trafficDistribution
ServicePort: name protocol port targetPort nodePort appProtocol
ServiceStatus: loadBalancer conditions
LoadBalancerStatus: ingress

Deployment: metadata spec status
DeploymentSpec: replicas selector template strategy minReadySeconds revisionHistoryLimit paused 9=
  progressDeadlineSeconds
DeploymentStrategy: type rollingUpdate
RollingUpdateDeployment: maxUnavailable maxSurge
DeploymentStatus: observedGeneration replicas updatedReplicas availableReplicas
  unavailableReplicas conditions readyReplicas collisionCount terminatingReplicas
DeploymentCondition: type status 4= reason message lastUpdateTime lastTransitionTime
ReplicaSet: metadata spec status
ReplicaSetSpec: replicas selector template minReadySeconds
ReplicaSetStatus: replicas fullyLabeledReplicas observedGeneration readyReplicas availableReplicas
  conditions terminatingReplicas
Job: metadata spec status
JobSpec: parallelism completions activeDeadlineSeconds selector manualSelector template
  backoffLimit ttlSecondsAfterFinished completionMode suspend podFailurePolicy
  backoffLimitPerIndex maxFailedIndexes podReplacementPolicy managedBy successPolicy
JobStatus: conditions startTime completionTime active succeeded failed completedIndexes
  uncountedTerminatedPods ready failedIndexes terminating
UncountedTerminatedPods: succeeded failed

PodTemplateSpec: metadata spec
Pod: metadata spec status
PodSpec: volumes containers restartPolicy terminationGracePeriodSeconds activeDeadlineSeconds
  dnsPolicy nodeSelector serviceAccountName serviceAccount nodeName hostNetwork hostPID hostIPC
  securityContext imagePullSecrets hostname subdomain affinity schedulerName initContainers
  automountServiceAccountToken tolerations hostAliases priorityClassName priority dnsConfig
  shareProcessNamespace readinessGates runtimeClassName enableServiceLinks preemptionPolicy
  overhead topologySpreadConstraints ephemeralContainers setHostnameAsFQDN os hostUsers
  schedulingGates
PodSecurityContext: seLinuxOptions runAsUser runAsNonRoot supplementalGroups fsGroup runAsGroup
PodSchedulingGate: name
PodReadinessGate: conditionType
PodStatus: phase conditions message reason hostIP podIP startTime containerStatuses qosClass
  initContainerStatuses nominatedNodeName podIPs
PodCondition: type status lastProbeTime lastTransitionTime reason message observedGeneration
PodIP: ip
Toleration: key operator value effect tolerationSeconds
TopologySpreadConstraint: maxSkew topologyKey whenUnsatisfiable labelSelector minDomains
  nodeAffinityPolicy nodeTaintsPolicy matchLabelKeys
Affinity: nodeAffinity podAffinity podAntiAffinity
NodeAffinity: requiredDuringSchedulingIgnoredDuringExecution
  preferredDuringSchedulingIgnoredDuringExecution
NodeSelector: nodeSelectorTerms
NodeSelectorTerm: matchExpressions matchFields
NodeSelectorRequirement: key operator values
PreferredSchedulingTerm: weight preference
PodAffinity: requiredDuringSchedulingIgnoredDuringExecution
  preferredDuringSchedulingIgnoredDuringExecution
PodAntiAffinity: requiredDuringSchedulingIgnoredDuringExecution
  preferredDuringSchedulingIgnoredDuringExecution
PodAffinityTerm: labelSelector namespaces topologyKey namespaceSelector matchLabelKeys
  mismatchLabelKeys
WeightedPodAffinityTerm: weight podAffinityTerm
Container: name image command args workingDir ports env resources volumeMounts livenessProbe
  readinessProbe lifecycle terminationMessagePath imagePullPolicy securityContext stdin stdinOnce
  tty envFrom terminationMessagePolicy volumeDevices startupProbe resizePolicy restartPolicy
ContainerPort: name hostPort containerPort protocol hostIP
EnvVar: name value valueFrom
ResourceRequirements: limits requests claims
VolumeMount: name readOnly mountPath subPath mountPropagation subPathExpr recursiveReadOnly
SecurityContext: capabilities privileged seLinuxOptions runAsUser runAsNonRoot
  readOnlyRootFilesystem allowPrivilegeEscalation runAsGroup
Volume: name +VolumeSource
VolumeSource: hostPath emptyDir
HostPathVolumeSource: path type
EmptyDirVolumeSource: medium sizeLimit
ContainerStatus: name state lastState ready restartCount image imageID containerID started
ContainerState: waiting running terminated
ContainerStateWaiting: reason message
ContainerStateRunning: startedAt
ContainerStateTerminated: exitCode signal reason message startedAt finishedAt containerID

Node: metadata spec status
NodeSpec: podCIDR externalID providerID unschedulable taints configSource podCIDRs
Taint: key value effect timeAdded
NodeStatus: capacity allocatable phase conditions addresses daemonEndpoints nodeInfo
NodeCondition: type status lastHeartbeatTime lastTransitionTime reason message
NodeAddress: type address
NodeDaemonEndpoints: kubeletEndpoint
DaemonEndpoint: Port
NodeSystemInfo: machineID systemUUID bootID kernelVersion osImage containerRuntimeVersion
  kubeletVersion kubeProxyVersion operatingSystem architecture
"""


def _read(rows: str) -> dict[str, Mapping[int, str]]:
    found: dict[str, dict[int, str]] = {}
    number, current = 1, found
    name = ""
    for line in rows.strip().splitlines():
        if line[:1].strip():
            name, _, line = line.partition(":")
            found[name], number = {}, 1
        for word in line.split():
            if word.endswith("="):
                number = int(word[:-1])
                continue
            if word != "-":
                current[name][number] = word
            number += 1
    return {name: MappingProxyType(fields) for name, fields in found.items()}


#: type -> number -> field; a field that begins with `+` is a message that belongs to the type
NUMBERS: Final[Mapping[str, Mapping[int, str]]] = MappingProxyType(_read(_ROWS))
