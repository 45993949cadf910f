"""What kube-apiserver 1.36 does with fields, beyond their names and types (`schemas.json`).

Each table names fields as `Type.field`. Sources: the API conventions, and the recorded answers.
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "ALWAYS",
    "ATOMIC_MAPS",
    "ATOMIC_TYPES",
    "GO_ORDER",
    "INT64",
    "KEY_DEFAULTS",
    "LIST_KEYS",
    "MERGE_KEYS",
    "MICRO_TIMES",
    "NEWER",
    "NULLS",
    "OWN_TYPES",
    "PRIMITIVE_MERGES",
    "QUANTITIES",
    "QUANTITY_MAPS",
    "RETAIN_KEYS",
    "SETS",
    "TEXT_POINTERS",
    "ZERO_OMITTED",
]


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _pairs(text: str) -> dict[str, tuple[str, ...]]:
    """Lines `Type.field: key key`."""
    rows = (line.partition(":") for line in text.strip().splitlines())
    return {name.strip(): tuple(keys.split()) for name, _, keys in rows}


#: fields that Kubernetes has from 1.37 on
NEWER: Final = _names("""
    PodSpec.evictionResponders PodStatus.volumeHealth JobSpec.scheduling
    NodeSpec.podPreemptionPolicy CSIDriverSpec.preventPodSchedulingIfMissing
    ConfigMapVolumeSource.defaultUser DownwardAPIVolumeSource.defaultUser
    DownwardAPIVolumeFile.user KeyToPath.user ProjectedVolumeSource.defaultUser
    SecretVolumeSource.defaultUser EmptyDirVolumeSource.mode ClusterTrustBundleProjection.user
    PodCertificateProjection.user ServiceAccountTokenProjection.user ListMeta.shardInfo
""")

#: lists that are merged by these keys in server-side apply
LIST_KEYS: Final = _pairs("""
    Container.env: name
    Container.ports: containerPort protocol
    Container.volumeDevices: devicePath
    Container.volumeMounts: mountPath
    ContainerStatus.volumeMounts: mountPath
    CSINodeSpec.drivers: name
    CustomResourceDefinitionStatus.conditions: type
    DeploymentStatus.conditions: type
    EphemeralContainer.env: name
    EphemeralContainer.ports: containerPort protocol
    EphemeralContainer.volumeDevices: devicePath
    EphemeralContainer.volumeMounts: mountPath
    JobStatus.conditions: type
    LoadBalancerStatus.ingress: ip
    NamespaceStatus.conditions: type
    NodeStatus.addresses: type
    NodeStatus.conditions: type
    ObjectMeta.ownerReferences: uid
    PersistentVolumeClaimStatus.conditions: type
    PodDisruptionBudgetStatus.conditions: type
    PodGroupStatus.conditions: type
    PodSpec.containers: name
    PodSpec.ephemeralContainers: name
    PodSpec.hostAliases: ip
    PodSpec.imagePullSecrets: name
    PodSpec.initContainers: name
    PodSpec.resourceClaims: name
    PodSpec.schedulingGates: name
    PodSpec.topologySpreadConstraints: topologyKey whenUnsatisfiable
    PodSpec.volumes: name
    PodStatus.conditions: type
    PodStatus.podIPs: ip
    PodStatus.resourceClaimStatuses: name
    ReplicaSetStatus.conditions: type
    ReplicationControllerStatus.conditions: type
    ResourceRequirements.claims: name
    ServiceSpec.ports: port protocol
    ServiceStatus.conditions: type
    StatefulSetStatus.conditions: type
    WorkloadSpec.podGroupTemplates: name
""")

#: keys of such lists that are taken for these where they are left out
KEY_DEFAULTS: Final = {"protocol": "TCP"}

#: lists that are sets of values in server-side apply
SETS: Final = _names("""
    ObjectMeta.finalizers NodeSpec.podCIDRs CSIDriverSpec.volumeLifecycleModes
    UncountedTerminatedPods.failed UncountedTerminatedPods.succeeded
""")

#: lists that a strategic merge patch merges, and by which key
MERGE_KEYS: Final = {
    name: keys[0]
    for name, keys in _pairs("""
    Container.env: name
    Container.ports: containerPort
    Container.volumeDevices: devicePath
    Container.volumeMounts: mountPath
    CSINodeSpec.drivers: name
    DeploymentStatus.conditions: type
    EphemeralContainer.env: name
    EphemeralContainer.ports: containerPort
    EphemeralContainer.volumeDevices: devicePath
    EphemeralContainer.volumeMounts: mountPath
    JobStatus.conditions: type
    NamespaceStatus.conditions: type
    NodeStatus.addresses: type
    NodeStatus.conditions: type
    ObjectMeta.ownerReferences: uid
    PersistentVolumeClaimStatus.conditions: type
    PodDisruptionBudgetStatus.conditions: type
    PodGroupStatus.conditions: type
    PodSpec.containers: name
    PodSpec.ephemeralContainers: name
    PodSpec.hostAliases: ip
    PodSpec.imagePullSecrets: name
    PodSpec.initContainers: name
    PodSpec.resourceClaims: name
    PodSpec.schedulingGates: name
    PodSpec.topologySpreadConstraints: topologyKey
    PodSpec.volumes: name
    PodStatus.conditions: type
    PodStatus.hostIPs: ip
    PodStatus.podIPs: ip
    PodStatus.resourceClaimStatuses: name
    ReplicaSetStatus.conditions: type
    ReplicationControllerStatus.conditions: type
    ServiceSpec.ports: port
    ServiceStatus.conditions: type
    StatefulSetStatus.conditions: type
""").items()
}

#: lists of values that a strategic merge patch merges
PRIMITIVE_MERGES: Final = _names("ObjectMeta.finalizers NodeSpec.podCIDRs")

#: what a strategic merge patch with `$retainKeys` may narrow
RETAIN_KEYS: Final = _names("PodSpec.volumes DeploymentSpec.strategy")

#: structs that have one owner as a whole
ATOMIC_TYPES: Final = _names("""
    ConfigMapKeySelector LabelSelector LocalObjectReference NodeSelector NodeSelectorTerm
    ObjectFieldSelector ObjectReference ResourceFieldSelector SecretKeySelector SecretReference
    TopologySelectorTerm TypedLocalObjectReference OwnerReference FileKeySelector
""")

#: maps that have one owner as a whole
ATOMIC_MAPS: Final = _names("""
    PodSpec.nodeSelector ServiceSpec.selector ReplicationControllerSpec.selector
    ManagedFieldsEntry.fieldsV1 CustomResourceSubresources.status
""")

#: quantities, alone and in maps
QUANTITIES: Final = _names("""
    EmptyDirVolumeSource.sizeLimit ResourceFieldSelector.divisor CSIStorageCapacity.capacity
    CSIStorageCapacity.maximumVolumeSize
""")
QUANTITY_MAPS: Final = _names("""
    ResourceRequirements.limits ResourceRequirements.requests VolumeResourceRequirements.limits
    VolumeResourceRequirements.requests NodeStatus.capacity NodeStatus.allocatable
    PodSpec.overhead PersistentVolumeSpec.capacity PersistentVolumeClaimStatus.capacity
    PersistentVolumeClaimStatus.allocatedResources ContainerStatus.allocatedResources
    PodStatus.allocatedResources
""")

#: times with six digits behind the second
MICRO_TIMES: Final = _names("""
    LeaseSpec.acquireTime LeaseSpec.renewTime Event.eventTime EventSeries.lastObservedTime
    CoreEvent.eventTime CoreEventSeries.lastObservedTime
""")

#: integers of 64 bits; the others have 32
INT64: Final = _names("""
    activeDeadlineSeconds deletionGracePeriodSeconds expirationSeconds fsGroup generation gid
    gracePeriodSeconds observedGeneration remainingItemCount runAsGroup runAsUser seconds
    sizeBytes terminationGracePeriodSeconds tolerationSeconds uid
    nodeAllocatableUpdatePeriodSeconds
""")

#: numbers and truth values that are not told apart from "not said": zero is left out
ZERO_OMITTED: Final = _names("""
    AWSElasticBlockStoreVolumeSource.partition AWSElasticBlockStoreVolumeSource.readOnly
    AzureFilePersistentVolumeSource.readOnly AzureFileVolumeSource.readOnly
    CSIPersistentVolumeSource.readOnly CephFSPersistentVolumeSource.readOnly
    CephFSVolumeSource.readOnly CinderPersistentVolumeSource.readOnly CinderVolumeSource.readOnly
    Condition.observedGeneration Container.stdin Container.stdinOnce Container.tty
    ContainerImage.sizeBytes ContainerPort.hostPort ContainerStateTerminated.signal
    CoreEvent.count CoreEventSeries.count CustomResourceColumnDefinition.priority
    CustomResourceDefinitionCondition.observedGeneration
    CustomResourceDefinitionSpec.preserveUnknownFields
    CustomResourceDefinitionStatus.observedGeneration CustomResourceDefinitionVersion.deprecated
    DeploymentSpec.minReadySeconds DeploymentSpec.paused DeploymentStatus.availableReplicas
    DeploymentStatus.observedGeneration DeploymentStatus.readyReplicas DeploymentStatus.replicas
    DeploymentStatus.unavailableReplicas DeploymentStatus.updatedReplicas EphemeralContainer.stdin
    EphemeralContainer.stdinOnce EphemeralContainer.tty Event.deprecatedCount
    FCVolumeSource.readOnly FlexPersistentVolumeSource.readOnly FlexVolumeSource.readOnly
    GCEPersistentDiskVolumeSource.partition GCEPersistentDiskVolumeSource.readOnly
    GlusterfsPersistentVolumeSource.readOnly GlusterfsVolumeSource.readOnly
    ISCSIPersistentVolumeSource.chapAuthDiscovery ISCSIPersistentVolumeSource.chapAuthSession
    ISCSIPersistentVolumeSource.readOnly ISCSIVolumeSource.chapAuthDiscovery
    ISCSIVolumeSource.chapAuthSession ISCSIVolumeSource.readOnly JobStatus.active JobStatus.failed
    JobStatus.succeeded NFSVolumeSource.readOnly NodeSpec.unschedulable ObjectMeta.generation
    PersistentVolumeClaimVolumeSource.readOnly PodCondition.observedGeneration
    PodDisruptionBudgetStatus.observedGeneration PodSpec.hostIPC PodSpec.hostNetwork
    PodSpec.hostPID PodStatus.observedGeneration PortworxVolumeSource.readOnly
    PriorityClass.globalDefault Probe.failureThreshold Probe.initialDelaySeconds
    Probe.periodSeconds Probe.successThreshold Probe.timeoutSeconds QuobyteVolumeSource.readOnly
    RBDPersistentVolumeSource.readOnly RBDVolumeSource.readOnly ReplicaSetSpec.minReadySeconds
    ReplicaSetStatus.availableReplicas ReplicaSetStatus.fullyLabeledReplicas
    ReplicaSetStatus.observedGeneration ReplicaSetStatus.readyReplicas
    ReplicationControllerSpec.minReadySeconds ReplicationControllerStatus.availableReplicas
    ReplicationControllerStatus.fullyLabeledReplicas
    ReplicationControllerStatus.observedGeneration ReplicationControllerStatus.readyReplicas
    ScaleIOPersistentVolumeSource.readOnly ScaleIOPersistentVolumeSource.sslEnabled
    ScaleIOVolumeSource.readOnly ScaleIOVolumeSource.sslEnabled ScaleSpec.replicas
    ServicePort.nodePort ServiceSpec.healthCheckNodePort ServiceSpec.publishNotReadyAddresses
    StatefulSetSpec.minReadySeconds StatefulSetStatus.currentReplicas
    StatefulSetStatus.observedGeneration StatefulSetStatus.readyReplicas
    StatefulSetStatus.updatedReplicas Status.code StatusDetails.retryAfterSeconds
    StorageOSPersistentVolumeSource.readOnly StorageOSVolumeSource.readOnly
    SubjectAccessReviewStatus.denied VolumeMount.readOnly VolumeMountStatus.readOnly
""")

#: texts that are told apart from "not said": "" is kept
TEXT_POINTERS: Final = _names("""
    CSIDriverSpec.fsGroupPolicy Container.restartPolicy EphemeralContainer.restartPolicy
    JobSpec.completionMode JobSpec.managedBy JobSpec.podReplacementPolicy JobStatus.failedIndexes
    LeaseSpec.holderIdentity LeaseSpec.preferredHolder LeaseSpec.strategy
    PersistentVolumeClaimSpec.storageClassName PersistentVolumeClaimSpec.volumeAttributesClassName
    PersistentVolumeClaimSpec.volumeMode PersistentVolumeSpec.volumeAttributesClassName
    PersistentVolumeSpec.volumeMode PodGroupSpec.priorityClassName PodSpec.hostnameOverride
    PodSpec.preemptionPolicy PodSpec.runtimeClassName PriorityClass.preemptionPolicy
    ServicePort.appProtocol ServiceSpec.internalTrafficPolicy ServiceSpec.ipFamilyPolicy
    ServiceSpec.loadBalancerClass ServiceSpec.trafficDistribution StorageClass.reclaimPolicy
    StorageClass.volumeBindingMode TopologySpreadConstraint.nodeAffinityPolicy
    TopologySpreadConstraint.nodeTaintsPolicy TypedLocalObjectReference.apiGroup
    TypedObjectReference.apiGroup TypedObjectReference.namespace VolumeMount.mountPropagation
    VolumeMount.recursiveReadOnly VolumeAttachmentSource.persistentVolumeName
""")

#: optional fields that are written even if nothing was said of them (structs, times, counters);
#: required ones are always written, and the metadata of every object
ALWAYS: Final = _names("""
    ResourceClaim.status ResourceClaimSpec.devices
    Binding.target CSIDriver.spec CSINode.spec Container.resources ContainerStateRunning.startedAt
    ContainerStateTerminated.finishedAt ContainerStateTerminated.startedAt
    ContainerStatus.lastState ContainerStatus.state CoreEvent.eventTime CoreEvent.firstTimestamp
    CoreEvent.involvedObject CoreEvent.lastTimestamp CoreEvent.reportingComponent
    CoreEvent.reportingInstance CoreEvent.source CoreEventSeries.lastObservedTime
    CustomResourceDefinition.spec CustomResourceDefinition.status
    CustomResourceDefinitionCondition.lastTransitionTime
    CustomResourceDefinitionStatus.acceptedNames CustomResourceDefinitionStatus.conditions
    CustomResourceDefinitionStatus.storedVersions Deployment.spec Deployment.status
    DeploymentCondition.lastTransitionTime DeploymentCondition.lastUpdateTime
    DeploymentSpec.strategy EphemeralContainer.resources Event.deprecatedFirstTimestamp
    Event.deprecatedLastTimestamp Event.deprecatedSource Event.eventTime Event.regarding Job.spec
    Job.status JobCondition.lastProbeTime JobCondition.lastTransitionTime Lease.spec
    Namespace.spec Namespace.status NamespaceCondition.lastTransitionTime Node.spec Node.status
    NodeCondition.lastHeartbeatTime NodeCondition.lastTransitionTime
    NodeDaemonEndpoints.kubeletEndpoint NodeStatus.daemonEndpoints NodeStatus.nodeInfo
    PersistentVolume.spec PersistentVolume.status PersistentVolumeClaim.spec
    PersistentVolumeClaim.status PersistentVolumeClaimCondition.lastProbeTime
    PersistentVolumeClaimCondition.lastTransitionTime PersistentVolumeClaimSpec.resources Pod.spec
    Pod.status PodCondition.lastProbeTime PodCondition.lastTransitionTime PodDisruptionBudget.spec
    PodDisruptionBudget.status PodDisruptionBudgetStatus.currentHealthy
    PodDisruptionBudgetStatus.desiredHealthy PodDisruptionBudgetStatus.disruptionsAllowed
    PodDisruptionBudgetStatus.expectedPods PodTemplateSpec.metadata PodTemplateSpec.spec
    PriorityClass.value ReplicaSet.spec ReplicaSet.status ReplicaSetCondition.lastTransitionTime
    ReplicationController.spec ReplicationController.status
    ReplicationControllerCondition.lastTransitionTime Scale.spec Scale.status Service.spec
    Service.status ServiceStatus.loadBalancer StatefulSet.spec StatefulSet.status
    StatefulSetCondition.lastTransitionTime StatefulSetSpec.serviceName
    StatefulSetSpec.updateStrategy StatefulSetStatus.availableReplicas SubjectAccessReview.status
    SelfSubjectAccessReview.status SelfSubjectAccessReview.spec LocalSubjectAccessReview.status
    SelfSubjectRulesReview.spec SelfSubjectRulesReview.status SelfSubjectReview.status
    VolumeAttachment.spec VolumeAttachment.status ServicePort.targetPort ReplicaSetSpec.template
""")

#: always written, `null` where nothing was said: structs behind a pointer
NULLS: Final = _names("""
    DeploymentSpec.selector ReplicaSetSpec.selector StatefulSetSpec.selector
    CustomResourceValidation.openAPIV3Schema
""")

#: the order in which the server's own encoder writes the fields of a struct
GO_ORDER: Final = {
    name: tuple(fields.split())
    for name, fields in {
        "ObjectMeta": (
            "name generateName namespace selfLink uid resourceVersion generation creationTimestamp "
            "deletionTimestamp deletionGracePeriodSeconds labels annotations ownerReferences "
            "finalizers managedFields"
        ),
        "ManagedFieldsEntry": ("manager operation apiVersion time fieldsType fieldsV1 subresource"),
        "NodeCondition": ("type status lastHeartbeatTime lastTransitionTime reason message"),
        "NodeSystemInfo": (
            "machineID systemUUID bootID kernelVersion osImage containerRuntimeVersion "
            "kubeletVersion kubeProxyVersion operatingSystem architecture"
        ),
        "NodeStatus": (
            "capacity allocatable phase conditions addresses daemonEndpoints nodeInfo images "
            "volumesInUse volumesAttached config"
        ),
        "PodCondition": (
            "type observedGeneration status lastProbeTime lastTransitionTime reason message"
        ),
        "PodStatus": (
            "observedGeneration phase conditions message reason nominatedNodeName hostIP hostIPs "
            "podIP podIPs startTime initContainerStatuses containerStatuses qosClass"
        ),
        "Taint": "key value effect timeAdded",
        "Toleration": "key operator value effect tolerationSeconds",
    }.items()
}

#: types that the client's models do not have in the version that is served
OWN_TYPES: Final[dict[str, dict[str, str]]] = {
    # scheduling.k8s.io/v1alpha2
    "Workload": {
        "apiVersion": "string",
        "kind": "string",
        "metadata": "ObjectMeta!",
        "spec": "WorkloadSpec!",
    },
    "WorkloadSpec": {
        "controllerRef": "TypedLocalObjectReference",
        "podGroupTemplates": "[]PodGroupTemplate!",
    },
    "PodGroupTemplate": {
        "disruptionMode": "string",
        "name": "string!",
        "priority": "integer",
        "priorityClassName": "string",
        "resourceClaims": "[]PodResourceClaim",
        "schedulingConstraints": "PodGroupSchedulingConstraints",
        "schedulingPolicy": "PodGroupSchedulingPolicy!",
    },
    "PodGroupSchedulingConstraints": {"topology": "[]TopologyConstraint"},
    "TopologyConstraint": {"key": "string!"},
    "PodGroupSchedulingPolicy": {
        "basic": "BasicSchedulingPolicy",
        "gang": "GangSchedulingPolicy",
    },
    "BasicSchedulingPolicy": {},
    "GangSchedulingPolicy": {"minCount": "integer!"},
    "PodGroup": {
        "apiVersion": "string",
        "kind": "string",
        "metadata": "ObjectMeta!",
        "spec": "PodGroupSpec!",
        "status": "PodGroupStatus!",
    },
    "PodGroupSpec": {
        "disruptionMode": "string",
        "podGroupTemplateRef": "PodGroupTemplateReference",
        "priority": "integer",
        "priorityClassName": "string",
        "resourceClaims": "[]PodResourceClaim",
        "schedulingConstraints": "PodGroupSchedulingConstraints",
        "schedulingPolicy": "PodGroupSchedulingPolicy!",
    },
    "PodGroupTemplateReference": {"workload": "WorkloadPodGroupTemplateReference"},
    "WorkloadPodGroupTemplateReference": {
        "podGroupTemplateName": "string!",
        "workloadName": "string!",
    },
    "PodGroupStatus": {"conditions": "[]Condition"},
}
