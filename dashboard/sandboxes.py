"""Making a sandbox cluster and its first run; a worker takes them up from there."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from dashboard import audit, runs
from dashboard.models import AuditEntry, Cluster, Sandbox, SchedulerRun, cluster_name_validator
from dashboard.workload_specs import PRESETS, TRACE, save_trace
from scheduler_core.workloads.trace import Trace

#: The scheduler's configuration in a new sandbox.
DEFAULT_CONFIG: Final = "examples/demo.yaml"
SLOWEST, FASTEST = 0.1, 1000.0
MAX_SPEED: Final = "max"

Errors = dict[str, list[str]]


class InvalidSandbox(Exception):
    """What was asked for cannot be made; ``errors``: field -> messages."""

    def __init__(self, errors: Errors) -> None:
        super().__init__("; ".join(f"{k}: {' '.join(v)}" for k, v in errors.items()))
        self.errors = errors


def create_sandbox(
    *,
    name: Any,
    preset: Any = "demo",
    speed: Any = 1.0,
    user: Any = None,
    config: str | None = None,
) -> tuple[Cluster, SchedulerRun]:
    """A cluster, its sandbox and a run, all or nothing, with an audit row.

    ``speed`` is a number (1: real time) or "max".

    Raises:
        InvalidSandbox: a field is wrong, or the name is taken.
    """
    errors: Errors = {}
    name = _name(name, errors)
    if not isinstance(preset, str) or preset not in PRESETS:
        errors["preset"] = [f"Choose one of {', '.join(PRESETS)}."]
    mode, factor = _clock(speed, errors)
    if errors:
        raise InvalidSandbox(errors)
    sandbox = Sandbox(preset=preset, workload=PRESETS[preset], clock_mode=mode, speed=factor)
    return _create(name, sandbox, user, config)


def create_trace_sandbox(
    *,
    name: Any,
    trace: Trace,
    speed: float | None = None,
    user: Any = None,
    config: str | None = None,
) -> tuple[Cluster, SchedulerRun]:
    """As ``create_sandbox``, with a trace that is kept in the database and replayed live.

    ``speed`` is how many times as fast as it happened; None fits it into a few minutes.

    Raises:
        InvalidSandbox: the name is wrong or taken, or the speed is not positive.
    """
    errors: Errors = {}
    name = _name(name, errors)
    if speed is not None and not 0 < speed < float("inf"):
        errors["speed"] = ["Give a number above 0."]
    if errors:
        raise InvalidSandbox(errors)
    workload = {"kind": TRACE} if speed is None else {"kind": TRACE, "speed": speed}
    with transaction.atomic():
        cluster, run = _create(name, Sandbox(preset=TRACE, workload=workload), user, config)
        save_trace(cluster.pk, trace)
    return cluster, run


def _create(
    name: str, sandbox: Sandbox, user: Any, config: str | None
) -> tuple[Cluster, SchedulerRun]:
    try:
        with transaction.atomic():
            cluster = Cluster.objects.create(name=name, created_by=_person(user))
            sandbox.cluster = cluster
            sandbox.save(force_insert=True)
            run = runs.create_run(
                cluster, name=name, config=default_config() if config is None else config
            )
            audit.write(user, AuditEntry.Verb.CREATE_SANDBOX, name, run=run)
    except IntegrityError:
        raise InvalidSandbox({"name": [f'A cluster named "{name}" exists already.']}) from None
    return cluster, run


def default_config() -> str:
    """The KubeSchedulerConfiguration of a new sandbox's run."""
    return (Path(settings.BASE_DIR) / DEFAULT_CONFIG).read_text(encoding="utf-8")


def _name(value: Any, errors: Errors) -> str:
    if not isinstance(value, str) or not value.strip():
        errors["name"] = ["Give the sandbox a name."]
        return ""
    try:
        cluster_name_validator(value.strip())
    except ValidationError as error:
        errors["name"] = [str(message) for message in error.messages]
    else:
        if Cluster.objects.filter(name=value.strip()).exists():
            errors["name"] = [f'A cluster named "{value.strip()}" exists already.']
    return value.strip()


def _clock(speed: Any, errors: Errors) -> tuple[str, float]:
    if speed == MAX_SPEED:
        return Sandbox.ClockMode.MAX, 1.0
    try:
        factor = float(speed) if isinstance(speed, int | float | str) else float("nan")
    except (ValueError, OverflowError):
        factor = float("nan")
    if isinstance(speed, bool) or not SLOWEST <= factor <= FASTEST:
        errors["speed"] = [f'Give a number from {SLOWEST:g} to {FASTEST:g}, or "max".']
        return Sandbox.ClockMode.REALTIME, 1.0
    mode = Sandbox.ClockMode.REALTIME if factor == 1.0 else Sandbox.ClockMode.SCALED
    return mode, factor


def _person(user: Any) -> Any:
    return user if user is not None and user.pk else None
