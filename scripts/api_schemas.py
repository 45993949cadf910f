"""Write down which fields the served kinds have, as the official Python client's models know them.

The client is a dependency of the project, but importing it takes half a second and 50 MB, so that
the sandbox's API reads this digest instead: names and types of fields, and which are required.
What the models do not know (how lists merge, which numbers are pointers) is written by hand in
`scheduler_core/cluster/api/schema_facts.py`.

    python scripts/api_schemas.py [--check]
"""

from __future__ import annotations

import argparse
import datetime
import json
import re
import sys
import types
import typing
from pathlib import Path
from typing import Any

from kubernetes.client import models

TARGET = Path(__file__).parents[1] / "scheduler_core" / "cluster" / "api" / "schemas.json"

#: package of the definition -> models that are served, or sent
ROOTS = {
    "io.k8s.apimachinery.pkg.apis.meta.v1": "V1DeleteOptions V1ObjectMeta V1LabelSelector V1Status",
    "io.k8s.api.core.v1": (
        "V1Pod V1Node V1Namespace V1Service V1PersistentVolume V1PersistentVolumeClaim V1ConfigMap "
        "CoreV1Event V1ReplicationController V1Binding"
    ),
    "io.k8s.api.events.v1": "EventsV1Event",
    "io.k8s.api.apps.v1": "V1Deployment V1ReplicaSet V1StatefulSet",
    "io.k8s.api.autoscaling.v1": "V1Scale",
    "io.k8s.api.batch.v1": "V1Job",
    "io.k8s.api.policy.v1": "V1PodDisruptionBudget V1Eviction",
    "io.k8s.api.storage.v1": (
        "V1StorageClass V1CSINode V1CSIDriver V1CSIStorageCapacity V1VolumeAttachment"
    ),
    "io.k8s.api.scheduling.v1": "V1PriorityClass",
    "io.k8s.api.resource.v1": (
        "ResourceV1ResourceClaim V1ResourceClaimTemplate V1DeviceClass V1ResourceSlice"
    ),
    "io.k8s.api.coordination.v1": "V1Lease",
    "io.k8s.api.authorization.v1": (
        "V1SelfSubjectAccessReview V1SelfSubjectRulesReview V1SubjectAccessReview "
        "V1LocalSubjectAccessReview"
    ),
    "io.k8s.api.authentication.v1": "V1SelfSubjectReview",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1": "V1CustomResourceDefinition",
}
#: models whose name would clash once the version is taken off
RENAMED = {
    "CoreV1Event": "CoreEvent",
    "CoreV1EventSeries": "CoreEventSeries",
    "EventsV1Event": "Event",
    "EventsV1EventSeries": "EventSeries",
    "ResourceV1ResourceClaim": "ResourceClaim",
    "CoreV1ResourceClaim": "ContainerResourceClaim",
    "StorageV1TokenRequest": "TokenRequest",
}
SCALARS = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    bytes: "string",
    object: "any",
    Any: "any",
    datetime.datetime: "time",
    # A schema within a CustomResourceDefinition: JSON that is read when it is put to use.
    models.V1JSONSchemaProps: "any",
}


#: fields whose description kube-apiserver gives to columns of tables
DESCRIBED = {
    column["of"]
    for columns in json.loads((TARGET.parent / "columns.json").read_text()).values()
    for column in columns
    if "of" in column
}
#: those in which the API has two blanks itself
TWO_BLANKS = {
    "ServiceSpec.clusterIP",
    "ServiceSpec.externalIPs",
    "StorageClass.volumeBindingMode",
}


def short(model: type) -> str:
    """`V1PodSpec` -> `PodSpec`."""
    return RENAMED.get(model.__name__, re.sub(r"^V1(?=[A-Z])", "", model.__name__))


def spelled(annotation: Any, found: list[type]) -> str:
    """The type of a field: `string`, `[]Container`, `{}quantity`, ..."""
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return spelled(args[0], found)
    if origin in (typing.Union, types.UnionType):
        real = [arg for arg in args if arg is not type(None)]
        if len(real) == 1:
            return spelled(real[0], found)
        names = {spelled(arg, found) for arg in real}
        return {frozenset({"integer", "number"}): "number"}.get(frozenset(names), "int-or-string")
    if origin is list:
        return f"[]{spelled(args[0], found)}"
    if origin is dict:
        return f"{{}}{spelled(args[1], found)}"
    if annotation in SCALARS:
        return SCALARS[annotation]
    found.append(annotation)
    return short(annotation)


def fields_of(model: Any, found: list[type]) -> dict[str, str]:
    """Field -> type; what is required has a `!` behind it."""
    # Words that Python keeps to itself are spelled differently in the two tables, which have one
    # order.
    named = zip(model.attribute_map.values(), model.model_fields.values(), strict=True)
    return {
        name: spelled(field.annotation, found) + ("!" if field.is_required() else "")
        for name, field in named
    }


def paragraphs(of: str, text: str) -> str:
    """The models have two blanks where the API has a new paragraph."""
    return text if of in TWO_BLANKS else re.sub(r"(?<! )  (?! )", "\n\n", text)


def descriptions_of(name: str, model: Any) -> dict[str, str]:
    """The descriptions that tables need."""
    named = zip(model.attribute_map.values(), model.model_fields.values(), strict=True)
    return {
        f"{name}.{key}": paragraphs(f"{name}.{key}", field.description)
        for key, field in named
        if f"{name}.{key}" in DESCRIBED and field.description
    }


def digest() -> dict[str, Any]:
    """Every type that can be reached from the roots."""
    types_: dict[str, dict[str, str]] = {}
    packages: dict[str, str] = {}
    described: dict[str, str] = {}
    for package, names in ROOTS.items():
        queue: list[type] = [getattr(models, name) for name in names.split()]
        while queue:
            model = queue.pop()
            name = short(model)
            if name in types_:
                continue
            packages[name] = package
            types_[name] = fields_of(model, queue)
            described.update(descriptions_of(name, model))
    return {"descriptions": dict(sorted(described.items())), "packages": packages, "types": types_}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--check", action="store_true", help="only say whether it is up to date")
    args = parser.parse_args()
    text = json.dumps(digest(), indent=1, sort_keys=True) + "\n"
    if not args.check:
        TARGET.write_text(text)
        return 0
    if TARGET.read_text() == text:
        return 0
    print(f"{TARGET} is not what the installed client's models say; run this without --check")
    return 1


if __name__ == "__main__":
    sys.exit(main())
