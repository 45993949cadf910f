"""What people do with real clusters; each with its audit row in the same transaction.

Before a cluster is kept it is looked at once, so that what cannot be reached is said while the
person who knows why is still there.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils import timezone

from dashboard import audit, runs
from dashboard.clusters.credentials import access_of, columns_of
from dashboard.clusters.models import ClusterConnection
from dashboard.models import AuditEntry, Cluster, SchedulerRun, cluster_name_validator
from dashboard.observe import services as observe
from scheduler_core.kube.access import Access, AccessError, InCluster
from scheduler_core.ports import ApiError

if TYPE_CHECKING:
    from scheduler_core.kube.cluster import KubeCluster

PERMISSION: Final = "dashboard.manage_clusters"
RUN_PERMISSION: Final = "dashboard.control_run"
_LONGEST_NAME: Final = 63
#: Where a pod with a service account finds its token.
TOKEN_FILE: Final = "/var/run/secrets/kubernetes.io/serviceaccount/token"  # noqa: S105 - a path


class CannotConnect(Exception):
    """The cluster is not to be had this way; the message says why to a person, and no secret."""


class NameTaken(Exception):
    """There is a cluster, or a run of it, of that name, or it is no name; the message says so."""


def add(
    user: Any,
    name: str,
    access: Access,
    config: str | None = None,
    mode: str = SchedulerRun.Mode.SCHEDULE,
) -> SchedulerRun:
    """A cluster, the way to it, and a run that waits to be started.

    Raises:
        NameTaken, CannotConnect: nothing was kept.
    """
    _check_name(name)
    columns, version = _looked_at(access)
    try:
        with transaction.atomic():
            cluster = Cluster.objects.create(
                name=name, kind=Cluster.Kind.KUBE, created_by=_person(user)
            )
            ClusterConnection.objects.create(
                cluster=cluster, **columns, **_seen(version), **_changed(user)
            )
            run = runs.create_run(
                cluster,
                name=name,
                config=default_config(mode) if config is None else config,
                desired_state=SchedulerRun.DesiredState.STOPPED,
                mode=mode,
            )
            audit.write(user, AuditEntry.Verb.ADD_CLUSTER, name, run=run, detail=_public(columns))
    except IntegrityError:
        raise NameTaken(f'A cluster named "{name}" exists already.') from None
    return run


def add_run(user: Any, cluster: Cluster, mode: str, name: str = "") -> SchedulerRun:
    """One more run on a cluster, which waits to be started. Any number may schedule: of those that
    name the same lease one does.

    Args:
        name: "" for one made of the cluster's.

    Raises:
        NameTaken: nothing was added.
    """
    if name:
        _check_form(name)
    with transaction.atomic():
        Cluster.objects.select_for_update().get(pk=cluster.pk)
        taken = set(cluster.runs.values_list("name", flat=True))
        if name in taken:
            raise NameTaken(f'{cluster.name} has a run named "{name}" already.')
        run = runs.create_run(
            cluster,
            name=name or _free_name(cluster.name, mode, taken),
            config=default_config(mode),
            desired_state=SchedulerRun.DesiredState.STOPPED,
            mode=mode,
        )
        audit.write(user, AuditEntry.Verb.CREATE_RUN, str(run), run=run, detail={"mode": str(mode)})
    return run


def _free_name(cluster: str, mode: str, taken: Collection[str]) -> str:
    """cluster-observer, cluster-observer-2, ..."""
    word = "observer" if mode == SchedulerRun.Mode.OBSERVE else "scheduler"
    suffixes = itertools.chain((f"-{word}",), (f"-{word}-{n}" for n in itertools.count(2)))
    names = (f"{cluster[: _LONGEST_NAME - len(suffix)]}{suffix}" for suffix in suffixes)
    return next(name for name in names if name not in taken)


def change(user: Any, connection: ClusterConnection, access: Access) -> None:
    """Another way to the same cluster; runs take it up when they are started the next time.

    Raises:
        CannotConnect: nothing was changed.
    """
    columns, version = _looked_at(access)
    with transaction.atomic():
        ClusterConnection.objects.filter(pk=connection.pk).update(
            **columns, **_seen(version), **_changed(user)
        )
        name = connection.cluster.name
        audit.write(user, AuditEntry.Verb.CHANGE_CLUSTER, name, detail=_public(columns))


def is_the_workers_alone(access: Access) -> bool:
    """The service account is that of the worker's pod, and this is another pod, which has none: it
    cannot look at the cluster, and says nothing about it."""
    is_pod = "KUBERNETES_SERVICE_HOST" in os.environ
    return isinstance(access, InCluster) and is_pod and not Path(TOKEN_FILE).exists()


def may_look(connection: ClusterConnection) -> bool:
    """Whether this process can look at the cluster."""
    is_in_cluster = connection.method == ClusterConnection.Method.IN_CLUSTER
    return not (is_in_cluster and is_the_workers_alone(InCluster()))


def look(connection: ClusterConnection) -> str:
    """Whether it can be reached now; why not, or "". Kept on the row."""
    if not may_look(connection):
        return "Only the worker's pod can look at it."
    try:
        version = _version(access_of(connection))
        problem = ""
    except (AccessError, CannotConnect) as error:
        version, problem = connection.version, str(error)
    rows = ClusterConnection.objects.filter(pk=connection.pk)
    rows.update(version=version[:100], problem=problem, checked_at=timezone.now())
    return problem


def default_config(mode: str = SchedulerRun.Mode.SCHEDULE) -> str:
    """The configuration of a new run that schedules or observes."""
    return observe.default_config(mode)


def _check_form(name: str) -> None:
    try:
        cluster_name_validator(name)
    except ValidationError as error:
        raise NameTaken(" ".join(error.messages)) from None


def _check_name(name: str) -> None:
    _check_form(name)
    if Cluster.objects.filter(name=name).exists():
        raise NameTaken(f'A cluster named "{name}" exists already.')


def _looked_at(access: Access) -> tuple[dict[str, Any], str]:
    if is_the_workers_alone(access):
        return columns_of(access), ""
    try:
        return columns_of(access), _version(access)
    except AccessError as error:
        raise CannotConnect(f"{_sentence(str(error))}") from None


def _version(access: Access) -> str:
    """Raises AccessError, CannotConnect."""
    # Half a second and 50 MB, which only those pay who have real clusters.
    from scheduler_core.kube.cluster import KubeCluster
    from scheduler_core.kube.connect import connect

    connection = connect(access)
    with KubeCluster(connection) as cluster:
        try:
            return probe(cluster)
        except ApiError as error:
            raise CannotConnect(words(connection.server, error)) from None


def probe(cluster: KubeCluster) -> str:
    """The server's version; everybody may ask for that, so that something is read as well.

    Raises:
        ApiError
    """
    version = cluster.version()
    cluster.list("Namespace", field_selector="metadata.name=default")
    return version


def words(server: str, error: ApiError) -> str:
    """Why a cluster cannot be used, for people."""
    if error.code == 401:
        return f"{server} does not accept these credentials (401 Unauthorized)."
    if error.code == 403:
        return f"{server} lets these credentials do too little: {error.message}"
    _, _, cause = error.message.partition(": ")
    return f"{server} cannot be reached: {cause or error.message}"


def _seen(version: str) -> dict[str, Any]:
    """``version``: "" where nobody has looked."""
    looked = timezone.now() if version else None
    return {"version": version[:100], "problem": "", "checked_at": looked}


def _changed(user: Any) -> dict[str, Any]:
    return {"changed_at": timezone.now(), "changed_by": _person(user)}


def _person(user: Any) -> Any:
    return user if user is not None and user.pk else None


def _public(columns: dict[str, Any]) -> dict[str, Any]:
    """For the audit: no credentials."""
    return {key: str(value) for key, value in columns.items() if value and key != "sealed"}


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."
