"""Fields of KubeSchedulerConfiguration v1, and its strict decoding."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from scheduler_core.api.errors import invalid
from scheduler_core.config.args_schema import ARGS_FIELDS
from scheduler_core.config.defaults import API_VERSION, KIND
from scheduler_core.config.errors import Faults
from scheduler_core.config.schema import (
    ANYTHING,
    BOOLEAN,
    BYTES,
    DURATION,
    INT32,
    INT64,
    NUMBER,
    TEXT,
    ListOf,
    Sink,
    Struct,
)

__all__ = ["PLUGIN_POINTS", "decode"]

#: Extension points as the configuration names them, in the reference's order of fields.
PLUGIN_POINTS: Final = (
    "preEnqueue",
    "queueSort",
    "preFilter",
    "filter",
    "postFilter",
    "preScore",
    "score",
    "reserve",
    "permit",
    "preBind",
    "bind",
    "postBind",
    "multiPoint",
    "placementGenerate",
    "placementScore",
)

_PLUGIN_SET = Struct(
    {
        "enabled": ListOf(Struct({"name": TEXT, "weight": INT32})),
        "disabled": ListOf(Struct({"name": TEXT, "weight": INT32})),
    }
)
_PROFILE = Struct(
    {
        "schedulerName": TEXT,
        "percentageOfNodesToScore": INT32,
        "plugins": Struct(dict.fromkeys(PLUGIN_POINTS, _PLUGIN_SET)),
        "pluginConfig": ListOf(Struct({"name": TEXT, "args": ANYTHING})),
    }
)
_TLS_CONFIG = Struct(
    {
        "insecure": BOOLEAN,
        "serverName": TEXT,
        "certFile": TEXT,
        "keyFile": TEXT,
        "caFile": TEXT,
        "certData": BYTES,
        "keyData": BYTES,
        "caData": BYTES,
    }
)
_EXTENDER = Struct(
    {
        "urlPrefix": TEXT,
        "filterVerb": TEXT,
        "preemptVerb": TEXT,
        "prioritizeVerb": TEXT,
        "weight": INT64,
        "bindVerb": TEXT,
        "enableHTTPS": BOOLEAN,
        "tlsConfig": _TLS_CONFIG,
        "httpTimeout": DURATION,
        "nodeCacheCapable": BOOLEAN,
        "managedResources": ListOf(Struct({"name": TEXT, "ignoredByScheduler": BOOLEAN})),
        "ignorable": BOOLEAN,
    }
)
_CONFIGURATION = Struct(
    {
        "apiVersion": TEXT,
        "kind": TEXT,
        "parallelism": INT32,
        "leaderElection": Struct(
            {
                "leaderElect": BOOLEAN,
                "leaseDuration": DURATION,
                "renewDeadline": DURATION,
                "retryPeriod": DURATION,
                "resourceLock": TEXT,
                "resourceName": TEXT,
                "resourceNamespace": TEXT,
            }
        ),
        "clientConnection": Struct(
            {
                "kubeconfig": TEXT,
                "acceptContentTypes": TEXT,
                "contentType": TEXT,
                "qps": NUMBER,
                "burst": INT32,
            }
        ),
        "enableProfiling": BOOLEAN,
        "enableContentionProfiling": BOOLEAN,
        "percentageOfNodesToScore": INT32,
        "podInitialBackoffSeconds": INT64,
        "podMaxBackoffSeconds": INT64,
        "profiles": ListOf(_PROFILE),
        "extenders": ListOf(_EXTENDER),
        "delayCacheUntilActive": BOOLEAN,
    }
)
_STRICT = "strict decoding error: "


def decode(tree: Mapping[str, Any], faults: Faults) -> dict[str, Any] | None:
    """The configuration with known fields of the right types only; what was wrong goes to
    ``faults``. None where it is not a KubeSchedulerConfiguration v1 at all, so that nothing else
    can be said about it."""
    if not _check_kind(tree, faults):
        return None
    sink = Sink(faults)
    decoded = cast(dict[str, Any], _CONFIGURATION.read(tree, "", sink))
    if sink.unknown:
        faults.add("", _STRICT + _unknown(sink.unknown))
    for i, profile in enumerate(decoded.get("profiles", ())):
        for j, entry in enumerate(profile.get("pluginConfig", ())):
            _decode_args(entry, f"profiles[{i}].pluginConfig[{j}]", faults)
    return decoded


def _check_kind(tree: Mapping[str, Any], faults: Faults) -> bool:
    kind, version = tree.get("kind"), tree.get("apiVersion")
    if not kind:
        faults.add("", "Object 'Kind' is missing: kind must be KubeSchedulerConfiguration")
    if not version:
        faults.add("", f"Object 'apiVersion' is missing: apiVersion must be {API_VERSION}")
    if not kind or not version:
        return False
    if kind == KIND and version == API_VERSION:
        return True
    scheme = 'in scheme "kubescheduler.config.k8s.io"'
    faults.add(
        "",
        f"no kind {json.dumps(kind)} is registered for version {json.dumps(version)} {scheme}",
    )
    return False


def _decode_args(entry: dict[str, Any], path: str, faults: Faults) -> None:
    """Decode the arguments of a known plugin in place; others are passed through."""
    name = entry.get("name", "")
    fields = ARGS_FIELDS.get(name)
    if fields is None:
        return
    args = entry.get("args")
    if args is None:
        entry["args"] = {}
        return
    if not isinstance(args, dict) or not _is_args_of(name, args):
        faults.add(f"{path}.args", invalid(args, "has to match plugin args"))
        entry["args"] = {}
        return
    prefix = f"{path}.args"
    sink = Sink(faults)
    entry["args"] = fields.read(args, prefix, sink)
    if sink.unknown:
        unknown = _unknown([field.removeprefix(f"{prefix}.") for field in sink.unknown])
        place = f"decoding .{path}: {_STRICT}decoding args for plugin {name}: "
        faults.add("", f"{_STRICT}{place}{_STRICT}{unknown}")


def _is_args_of(name: str, args: Mapping[str, Any]) -> bool:
    kind, version = args.get("kind"), args.get("apiVersion")
    return kind in (None, "", f"{name}Args") and version in (None, "", API_VERSION)


def _unknown(paths: Sequence[str]) -> str:
    return ", ".join(f"unknown field {json.dumps(path)}" for path in paths)
