"""DatabaseJournal: a sandbox's writes as SandboxWrite rows, and snapshots that bound the replay."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from django.db import Error as DatabaseError
from django.db import connection

from dashboard import bulk, snapshot_blob
from dashboard.leases import Fence, FencedError
from dashboard.models import Sandbox, SandboxSnapshot, SandboxWrite
from scheduler_core.cluster.journal import FateUnknownError, Journal, StoreSnapshot, Write

logger = logging.getLogger(__name__)

#: Snapshots kept: the newest, and one before it in case somebody still reads from there.
SNAPSHOTS_KEPT: Final = 2
#: Rows read at a time when a sandbox is restored.
READ_CHUNK: Final = 2_000
#: Between two questions whether a commit has happened whose answer was lost, in seconds.
ASK_SECONDS: Final = 0.5

_COLUMNS: Final = (
    "cluster_id",
    "resource_version",
    "at",
    "verb",
    "kind",
    "namespace",
    "name",
    "uid",
    "actor",
    "object",
)


def _sleep(seconds: float) -> bool:
    time.sleep(seconds)
    return False


class DatabaseJournal(Journal):
    """Keeps the writes of one sandbox, under the lease of its owner.

    Args:
        workload_state: how far the workload has come; stored with each batch, so that a restart
            goes on from where the objects are.
        pause: waits so many seconds, then says whether the owner ends (its lease is lost, or it is
            to stop). By default it never does.
    """

    def __init__(
        self,
        cluster_id: int,
        fence: Fence,
        workload_state: Callable[[], dict[str, Any] | None],
        pause: Callable[[float], bool] = _sleep,
    ) -> None:
        self._cluster_id = cluster_id
        self._fence = fence
        self._workload_state = workload_state
        self._pause = pause
        #: The COMMIT of the batch at hand may have reached the database.
        self._commit_began = False

    def append(self, writes: Sequence[Write]) -> None:
        """Keep all writes in one transaction.

        While the database is away after a COMMIT without an answer this waits until it is asked
        again, or the owner ends.

        Raises:
            FencedError: the sandbox has another owner by now.
            django.db.Error: nothing was kept.
            FateUnknownError: the owner ended before the database could be asked.
        """
        self._commit_began = False
        try:
            self._keep(writes)
        except FencedError:
            raise
        except Exception as error:
            connection.close()
            if not self._commit_began or not self._find_out(writes[-1], error):
                raise

    def close(self) -> None:
        connection.close()

    def _keep(self, writes: Sequence[Write]) -> None:
        rows = [self._row(write) for write in writes]
        with bulk.write_turn():
            self._fence.check()
            bulk.insert(SandboxWrite, _COLUMNS, rows)
            changes: dict[str, Any] = {"resource_version": writes[-1].resource_version}
            state = self._workload_state()
            if state is not None:
                changes["workload_state"] = state
            Sandbox.objects.filter(pk=self._cluster_id).update(**changes)
            self._commit_began = True

    def _find_out(self, write: Write, error: Exception) -> bool:
        """Whether a commit whose answer was lost has happened after all; asks until it is known."""
        while True:
            try:
                return self._was_kept(write)
            except FencedError as fenced:
                # What the next owner has found, and written since, is no answer to this one.
                raise FateUnknownError(f"{error}; then {fenced}") from error
            except (DatabaseError, OSError) as away:
                connection.close()
                logger.warning("sandbox %s: was it kept? %s", self._cluster_id, away)
                if self._pause(ASK_SECONDS):
                    raise FateUnknownError(f"{error}; then {away}") from error
            except Exception as fault:
                raise FateUnknownError(f"{error}; then {fault!r}") from fault

    def _was_kept(self, write: Write) -> bool:
        """Whether the commit has happened.

        Looks under the lease's lock: a transaction that is still to end on the server has it.
        """
        with bulk.write_turn():
            self._fence.check()
            return SandboxWrite.objects.filter(
                cluster=self._cluster_id, resource_version=write.resource_version, uid=write.uid
            ).exists()

    def _row(self, write: Write) -> bulk.Row:
        namespace, _, name = write.key.rpartition("/")
        return (
            self._cluster_id,
            write.resource_version,
            write.at,
            write.verb,
            write.kind,
            namespace,
            name,
            write.uid,
            write.actor,
            bulk.json_text(write.object),
        )


def save_snapshot(cluster_id: int, snapshot: StoreSnapshot, fence: Fence) -> None:
    """Keep a snapshot and drop all but the newest ones.

    Raises:
        FencedError: the sandbox has another owner by now.
    """
    blob = snapshot_blob.pack(snapshot)
    with bulk.write_turn():
        fence.check()
        SandboxSnapshot.objects.update_or_create(
            cluster_id=cluster_id,
            resource_version=snapshot.resource_version,
            defaults={"blob": blob},
        )
        rows = SandboxSnapshot.objects.filter(cluster_id=cluster_id).order_by("-resource_version")
        old = list(rows.values_list("pk", flat=True)[SNAPSHOTS_KEPT:])
        SandboxSnapshot.objects.filter(pk__in=old).delete()


def load(cluster_id: int) -> tuple[StoreSnapshot | None, list[Write]]:
    """The newest snapshot and every write after it, in order."""
    row = (
        SandboxSnapshot.objects.filter(cluster_id=cluster_id).order_by("-resource_version").first()
    )
    snapshot = None if row is None else snapshot_blob.unpack(bytes(row.blob), row.resource_version)
    since = 0 if snapshot is None else snapshot.resource_version
    rows = SandboxWrite.objects.filter(cluster_id=cluster_id, resource_version__gt=since).order_by(
        "resource_version"
    )
    return snapshot, [_write(found) for found in rows.iterator(chunk_size=READ_CHUNK)]


def _write(row: SandboxWrite) -> Write:
    key = f"{row.namespace}/{row.name}" if row.namespace else row.name
    return Write(
        resource_version=row.resource_version,
        at=row.at,
        verb=row.verb,  # type: ignore[arg-type]
        kind=row.kind,
        key=key,
        uid=row.uid,
        actor=row.actor,
        object=row.object,
    )
