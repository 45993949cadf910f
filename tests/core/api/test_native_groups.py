"""PodGroup and Workload of scheduling.k8s.io: both API versions through the adapter, what is
refused, and what may not be changed (gang.md, section 3)."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_core.api import (
    KINDS,
    NATIVE_POD_GROUP,
    NativePodGroup,
    Pod,
    PodGroup,
    Workload,
    find_kind,
    kind_of,
    load_manifests,
    parse_object,
    unknown_fields,
    validate,
)
from scheduler_core.api.native import DisruptionMode, GroupSpec, TemplateRef, dialect_of
from scheduler_core.api.native.rules import update_faults
from scheduler_core.clock import VirtualClock
from scheduler_core.cluster.sandbox import SandboxCluster
from scheduler_core.ports import ApiError
from scheduler_core.testing.builders import make_native_pod_group, make_pod, make_pod_group

Json = dict[str, Any]

ALPHA2 = "scheduling.k8s.io/v1alpha2"
ALPHA3 = "scheduling.k8s.io/v1alpha3"
BETA1 = "scheduling.k8s.io/v1beta1"
VERSIONS = (ALPHA2, ALPHA3, BETA1)
LATER = (ALPHA3, BETA1)


def group(version: str = ALPHA2, **spec: Any) -> Json:
    spec.setdefault("schedulingPolicy", {"gang": {"minCount": 3}})
    return {
        "apiVersion": version,
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "ml"},
        "spec": spec,
    }


def workload(*templates: Json, version: str = ALPHA2, **spec: Any) -> Json:
    return {
        "apiVersion": version,
        "kind": "Workload",
        "metadata": {"name": "w", "namespace": "ml"},
        "spec": {"podGroupTemplates": list(templates), **spec},
    }


def template(name: str, count: int = 2) -> Json:
    return {"name": name, "schedulingPolicy": {"gang": {"minCount": count}}}


# -- kinds ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "written, version, kind",
    [
        pytest.param("PodGroup", "scheduling.x-k8s.io/v1alpha1", "PodGroup", id="coscheduling's"),
        *(pytest.param("PodGroup", v, NATIVE_POD_GROUP, id=f"native {v}") for v in VERSIONS),
        *(pytest.param("Workload", v, "Workload", id=f"workload {v}") for v in VERSIONS),
        pytest.param("PodGroup", "", "PodGroup", id="no version: the older one"),
    ],
)
def test_the_api_group_tells_which_pod_group_is_meant(
    written: str, version: str, kind: str
) -> None:
    assert find_kind(written, version) is KINDS[kind]


def test_both_pod_groups_parse_into_classes_of_their_own() -> None:
    assert isinstance(parse_object(make_pod_group("g").raw()), PodGroup)
    assert isinstance(parse_object(make_native_pod_group("g").raw()), NativePodGroup)


# -- one internal form ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(
            group(
                ALPHA2,
                podGroupTemplateRef={
                    "workload": {"workloadName": "train", "podGroupTemplateName": "workers"}
                },
                schedulingConstraints={"topology": [{"key": "rack"}]},
                disruptionMode="PodGroup",
                priorityClassName="high",
                priority=7,
            ),
            id="v1alpha2: podGroupTemplateRef, disruptionMode as text",
        ),
        *(
            pytest.param(
                group(
                    version,
                    workloadRef={"workloadName": "train", "templateName": "workers"},
                    schedulingConstraints={"topology": [{"key": "rack"}]},
                    disruptionMode={"all": {}},
                    priorityClassName="high",
                    priority=7,
                ),
                id=f"{version.rpartition('/')[2]}: workloadRef, disruptionMode as a union",
            )
            for version in LATER
        ),
    ],
)
def test_every_version_gives_the_same_internal_form(raw: Json) -> None:
    found = parse_object(raw)
    assert isinstance(found, NativePodGroup)
    assert found.key == "ml/g"
    assert found.template == TemplateRef("train", "workers")
    assert found.spec == GroupSpec(3, ("rack",), DisruptionMode.ALL, "high", 7)
    assert not validate(raw)
    assert unknown_fields(raw) == []


@pytest.mark.parametrize(
    "version, mode, expected",
    [
        pytest.param(ALPHA2, "Pod", DisruptionMode.SINGLE, id="v1alpha2 Pod"),
        pytest.param(ALPHA2, None, DisruptionMode.UNSET, id="v1alpha2 unset"),
        pytest.param(BETA1, {"single": {}}, DisruptionMode.SINGLE, id="v1beta1 single"),
        pytest.param(BETA1, None, DisruptionMode.UNSET, id="v1beta1 unset"),
    ],
)
def test_disruption_modes(version: str, mode: Any, expected: DisruptionMode) -> None:
    raw = group(version, **({} if mode is None else {"disruptionMode": mode}))
    found = parse_object(raw)
    assert isinstance(found, NativePodGroup)
    assert found.spec.disruption_mode is expected


@pytest.mark.parametrize(
    "version, condition",
    [
        (ALPHA2, "PodGroupScheduled"),
        (ALPHA3, "PodGroupInitiallyScheduled"),
        (BETA1, "PodGroupInitiallyScheduled"),
    ],
)
def test_the_condition_is_named_by_the_version(version: str, condition: str) -> None:
    raw = group(version)
    raw["status"] = {
        "conditions": [
            {"type": "DisruptionTarget", "status": "False"},
            {"type": condition, "status": "True", "reason": "Scheduled"},
        ]
    }
    found = parse_object(raw)
    assert isinstance(found, NativePodGroup)
    assert found.scheduled is not None and found.scheduled.type == condition
    assert dialect_of(version).scheduled_condition == condition


def test_a_basic_group_is_no_gang() -> None:
    found = make_native_pod_group("g").basic().obj()
    assert (found.spec.is_gang, found.min_count) == (False, 0)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_workload_and_its_templates(version: str) -> None:
    raw = workload(
        template("leader", 1),
        template("workers", 4),
        version=version,
        controllerRef={"apiGroup": "batch", "kind": "Job", "name": "train"},
    )
    found = parse_object(raw)
    assert isinstance(found, Workload)
    assert found.controller_ref == ("Job", "train")
    assert [(t.name, t.spec.min_count) for t in found.templates] == [("leader", 1), ("workers", 4)]
    assert not validate(raw)
    assert unknown_fields(raw) == []


def test_the_builder_writes_the_names_of_the_version() -> None:
    later = make_native_pod_group("g", 2).api_version(BETA1).template("train", "workers")
    assert later.raw()["spec"]["workloadRef"] == {
        "workloadName": "train",
        "templateName": "workers",
    }
    assert (
        later.obj().template
        == make_native_pod_group("g").template("train", "workers").obj().template
    )


@pytest.mark.parametrize(
    "raw, path",
    [
        pytest.param(
            group(ALPHA2, workloadRef={}), "spec.workloadRef", id="a later name in v1alpha2"
        ),
        pytest.param(
            group(BETA1, podGroupTemplateRef={}),
            "spec.podGroupTemplateRef",
            id="an earlier name in v1beta1",
        ),
        pytest.param(
            group(ALPHA2, schedulingPolicy={"gang": {"minMember": 2}}),
            "spec.schedulingPolicy.gang.minMember",
            id="coscheduling's name",
        ),
    ],
)
def test_misspelt_fields_are_named(raw: Json, path: str) -> None:
    assert unknown_fields(raw) == [path]


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(
            group(BETA1, parentCompositePodGroupName="job", preemptionPolicy="Never"),
            id="1.37: parentCompositePodGroupName and preemptionPolicy",
        ),
        pytest.param(
            workload(version=BETA1, compositePodGroupTemplates=[]),
            id="1.37: compositePodGroupTemplates",
        ),
    ],
)
def test_fields_of_later_versions_are_known(raw: Json) -> None:
    assert unknown_fields(raw) == []


def test_a_pod_of_1_35_is_in_no_group() -> None:
    """spec.workloadRef of Kubernetes 1.35 is told as a field that nobody reads here."""
    raw = make_pod("p").raw()
    raw["spec"]["workloadRef"] = {"name": "train", "podGroup": "workers"}
    assert unknown_fields(raw) == ["spec.workloadRef"]
    assert Pod.from_dict(raw).scheduling_group == ""


# -- what is refused -----------------------------------------------------------------------------

NAME_RULE = "a lowercase RFC 1123 label must consist of"


@pytest.mark.parametrize(
    "raw, path, message",
    [
        pytest.param(
            group(schedulingPolicy={"gang": {"minCount": 0}}),
            "spec.schedulingPolicy.gang.minCount",
            "Required value",
            id="minCount 0 counts as missing",
        ),
        pytest.param(
            group(schedulingPolicy={"gang": {"minCount": -1}}),
            "spec.schedulingPolicy.gang.minCount",
            "Invalid value: -1: must be greater than or equal to 1",
            id="minCount >= 1",
        ),
        pytest.param(
            group(schedulingPolicy={"gang": {"minCount": 2**31}}),
            "spec.schedulingPolicy.gang.minCount",
            "Invalid value: 2147483648: must be less than or equal to 2147483647",
            id="minCount is an int32",
        ),
        pytest.param(
            group(schedulingPolicy={}),
            "spec.schedulingPolicy",
            'Invalid value: "": must specify one of: `basic`, `gang`',
            id="a policy is needed",
        ),
        pytest.param(
            group(schedulingPolicy={"basic": {}, "gang": {"minCount": 1}}),
            "spec.schedulingPolicy",
            'Invalid value: "{`basic`, `gang`}": exactly one of `basic`, `gang` is required, '
            "but multiple fields are set",
            id="one policy only",
        ),
        pytest.param(
            group(schedulingConstraints={"topology": [{"key": "rack"}, {"key": "zone"}]}),
            "spec.schedulingConstraints.topology",
            "Too many: 2: must have at most 1 item",
            id="max 1 topology constraint",
        ),
        pytest.param(
            group(resourceClaims=[{"name": f"c{i}"} for i in range(5)]),
            "spec.resourceClaims",
            "Too many: 5: must have at most 4 items",
            id="max 4 resourceClaims",
        ),
        pytest.param(
            group(disruptionMode="all"),
            "spec.disruptionMode",
            'Unsupported value: "all": supported values: "Pod", "PodGroup"',
            id="v1alpha2 disruptionMode Pod or PodGroup",
        ),
        pytest.param(
            group(BETA1, disruptionMode={"single": {}, "all": {}}),
            "spec.disruptionMode",
            'Invalid value: "{`single`, `all`}": exactly one of `single`, `all` is required, '
            "but multiple fields are set",
            id="v1beta1 disruptionMode single or all",
        ),
        pytest.param(
            group(podGroupTemplateRef={"workload": {"workloadName": "train"}}),
            "spec.podGroupTemplateRef.workload.podGroupTemplateName",
            "Required value",
            id="v1alpha2 template name",
        ),
        pytest.param(
            group(BETA1, workloadRef={"workloadName": "train"}),
            "spec.workloadRef.templateName",
            "Required value",
            id="v1beta1 template name",
        ),
        pytest.param(
            workload(),
            "spec.podGroupTemplates",
            "Required value: must have at least one item",
            id="a workload has templates",
        ),
        pytest.param(
            workload(*(template(f"t{i}") for i in range(9))),
            "spec.podGroupTemplates",
            "Too many: 9: must have at most 8 items",
            id="max 8 templates",
        ),
        pytest.param(
            workload(template("a"), template("a")),
            "spec.podGroupTemplates[1]",
            'Duplicate value: {"name":"a"}',
            id="template names are unique",
        ),
        pytest.param(
            workload(template("a", -2)),
            "spec.podGroupTemplates[0].schedulingPolicy.gang.minCount",
            "Invalid value: -2: must be greater than or equal to 1",
            id="minCount of a template",
        ),
        pytest.param(
            workload(template("a"), controllerRef={"name": "train"}),
            "spec.controllerRef.kind",
            "Required value",
            id="controllerRef has a kind",
        ),
    ],
)
def test_what_is_refused(raw: Json, path: str, message: str) -> None:
    assert validate(raw) == [(path, message)]


def test_a_template_is_named_by_a_dns_label() -> None:
    faults = validate(workload(template("Not_A_Label")))
    assert [path for path, _ in faults] == ["spec.podGroupTemplates[0].name"]
    assert NAME_RULE in faults[0][1]


# -- what may not be changed ---------------------------------------------------------------------


def policy(count: int) -> Json:
    return {"schedulingPolicy": {"gang": {"minCount": count}}}


@pytest.mark.parametrize(
    "old, new, paths",
    [
        pytest.param(group(), group(), [], id="nothing changes"),
        pytest.param(
            group(**policy(3)),
            group(**policy(2)),
            ["spec.schedulingPolicy"],
            id="1.36: minCount is immutable",
        ),
        pytest.param(
            group(BETA1, **policy(3)), group(BETA1, **policy(2)), [], id="1.37: minCount may change"
        ),
        pytest.param(
            group(BETA1),
            group(BETA1, schedulingPolicy={"basic": {}}),
            ["spec.schedulingPolicy"],
            id="1.37: the policy may not",
        ),
        pytest.param(group(priority=1), group(priority=2), ["spec.priority"], id="copied fields"),
        pytest.param(
            workload(template("a")),
            workload(template("a"), template("b")),
            ["spec.podGroupTemplates"],
            id="templates",
        ),
        pytest.param(
            workload(template("a", 2), version=BETA1),
            workload(template("a", 3), version=BETA1),
            [],
            id="1.37: minCount of a template",
        ),
    ],
)
def test_immutable_fields(old: Json, new: Json, paths: list[str]) -> None:
    faults = update_faults(old, new)
    assert [path for path, _ in faults] == paths
    assert all(message.endswith(": field is immutable") for _, message in faults)


# -- in the sandbox ------------------------------------------------------------------------------


@pytest.fixture
def cluster() -> SandboxCluster:
    return SandboxCluster(VirtualClock(1_000_000.0))


def test_both_pod_groups_of_one_name_are_kept_apart(cluster: SandboxCluster) -> None:
    cluster.create_all([make_pod_group("g", 2).raw(), make_native_pod_group("g", 3).raw()])
    native = cluster.get(NATIVE_POD_GROUP, "default", "g")
    assert (native["kind"], native["apiVersion"]) == ("PodGroup", ALPHA2)
    assert cluster.get("PodGroup", "default", "g")["spec"] == {"minMember": 2}
    assert kind_of(native).kind == NATIVE_POD_GROUP
    assert native["metadata"]["generation"] == 1


@pytest.mark.parametrize("version", VERSIONS)
def test_objects_keep_the_version_in_which_they_were_written(
    cluster: SandboxCluster, version: str
) -> None:
    cluster.create(NATIVE_POD_GROUP, make_native_pod_group("g").api_version(version).raw())
    assert cluster.list(NATIVE_POD_GROUP).items[0]["apiVersion"] == version


def test_the_server_says_what_is_immutable(cluster: SandboxCluster) -> None:
    cluster.create(NATIVE_POD_GROUP, make_native_pod_group("g", 3).raw())
    with pytest.raises(ApiError) as refused:
        cluster.patch(NATIVE_POD_GROUP, "default", "g", {"spec": policy(2)})
    assert refused.value.code == 422
    assert str(refused.value.message) == (
        'PodGroup.scheduling.k8s.io "g" is invalid: spec.schedulingPolicy: Invalid value: '
        '{"gang":{"minCount":2}}: field is immutable'
    )


def test_the_status_is_written_by_its_subresource(cluster: SandboxCluster) -> None:
    cluster.create(NATIVE_POD_GROUP, make_native_pod_group("g").raw())
    status = {"conditions": [{"type": "PodGroupScheduled", "status": "True"}]}
    cluster.patch(NATIVE_POD_GROUP, "default", "g", {"status": status}, subresource="status")
    assert cluster.get(NATIVE_POD_GROUP, "default", "g")["status"] == status
    assert "status" not in cluster.create(
        NATIVE_POD_GROUP, {**make_native_pod_group("h").raw(), "status": status}
    )


def test_the_group_of_a_pod_is_immutable(cluster: SandboxCluster) -> None:
    cluster.create("Pod", make_pod("p").scheduling_group("g").raw())
    with pytest.raises(ApiError, match="pod updates may not change fields other than"):
        cluster.patch("Pod", "default", "p", {"spec": {"schedulingGroup": {"podGroupName": "h"}}})


def test_a_store_that_is_loaded_again_knows_them_apart() -> None:
    clock = VirtualClock(1_000_000.0)
    first = SandboxCluster(clock)
    first.create_all([make_pod_group("g", 2).raw(), make_native_pod_group("g", 3).raw()])
    again = SandboxCluster.restore(first.snapshot(), (), clock)
    for kind in (NATIVE_POD_GROUP, "PodGroup"):
        assert again.get(kind, "default", "g") == first.get(kind, "default", "g")


def test_manifests_of_both_kinds_load() -> None:
    text = f"""
apiVersion: {ALPHA2}
kind: Workload
metadata: {{name: train}}
spec:
  podGroupTemplates:
    - name: workers
      schedulingPolicy: {{gang: {{minCount: 2}}}}
---
apiVersion: {ALPHA2}
kind: PodGroup
metadata: {{name: train-workers}}
spec:
  podGroupTemplateRef:
    workload: {{workloadName: train, podGroupTemplateName: workers}}
  schedulingPolicy: {{gang: {{minCount: 2}}}}
"""
    first, second = (manifest.parse() for manifest in load_manifests(text))
    assert isinstance(first, Workload)
    assert isinstance(second, NativePodGroup)
    assert second.template == TemplateRef(first.name, first.templates[0].name)
