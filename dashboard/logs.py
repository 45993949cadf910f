"""Logs: one JSON object per line where wanted, and one id through a pod's whole way."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Any, Final

from scheduler_core.ports import Observer
from scheduler_core.records import (
    BindingRecord,
    CycleRecord,
    Outcome,
    PermitDecision,
    PodRef,
    WaitingPodRecord,
)

__all__ = ["JsonFormatter", "PodLog", "trace_id"]

log = logging.getLogger("kubesched.pods")

#: What every LogRecord has: the rest was given with ``extra``.
_STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class JsonFormatter(logging.Formatter):
    """One line per record: ts (UTC, RFC 3339), level, logger, msg, error, and every extra field."""

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC)
        line: dict[str, Any] = {
            "ts": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "msg": record.getMessage(),
        }
        line |= {name: value for name, value in vars(record).items() if name not in _STANDARD}
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


def trace_id(run_id: int, cycle: int) -> str:
    """Names one attempt of one pod, from pop to bound: "RUN-CYCLE", as the pages number them."""
    return f"{run_id}-{cycle}"


class PodLog(Observer):
    """Writes a line for every step of a pod's way, all with the id of its attempt.

    In the line format the id stands in the text, in JSON in the field ``id`` (with ``pod``,
    ``uid``, ``run`` and ``cycle``).
    """

    def __init__(self, run_id: int) -> None:
        self._run_id = run_id

    def cycle_finished(self, record: CycleRecord) -> None:
        if record.outcome is Outcome.SCHEDULED:
            what = f"node {record.node} chosen of {record.nodes_feasible} feasible"
        elif record.outcome is Outcome.WAITING:
            what = f"waits at Permit for node {record.node}"
        else:
            what = f"{record.outcome.value}: {record.message}"
        level = logging.ERROR if record.outcome is Outcome.ERROR else logging.INFO
        self._say(
            level,
            record.sequence,
            record.pod,
            what,
            outcome=record.outcome.value,
            node=record.node,
            attempt=record.attempt,
            profile=record.profile,
            seconds=round(record.duration, 6),
        )

    def binding_finished(self, record: BindingRecord) -> None:
        if record.bound:
            self._say(
                logging.INFO,
                record.cycle,
                record.pod,
                f"bound to {record.node}",
                node=record.node,
                seconds=round(record.duration, 6),
            )
        else:
            text = f"not bound to {record.node}: {record.message}"
            self._say(logging.WARNING, record.cycle, record.pod, text, node=record.node)

    def pod_resolved(self, record: WaitingPodRecord) -> None:
        outcome = record.outcome.value if record.outcome is not None else ""
        text = f"its wait ended: {outcome}" + (f", {record.message}" if record.message else "")
        self._say(
            logging.INFO,
            record.cycle,
            record.pod,
            text,
            outcome=outcome,
            node=record.node,
            resolved_by=record.resolved_by,
        )

    def decision_applied(self, decision: PermitDecision, applied: bool, message: str) -> None:
        log.info(
            "%s of %s for the pod with uid %s: %s",
            decision.verdict.value,
            decision.user,
            decision.pod_uid,
            "applied" if applied else f"too late, {message}",
            extra={"run": self._run_id, "uid": decision.pod_uid, "user": decision.user},
        )

    def _say(self, level: int, cycle: int, pod: PodRef, text: str, **fields: object) -> None:
        if not log.isEnabledFor(level):
            return
        name = trace_id(self._run_id, cycle)
        extra = {"id": name, "run": self._run_id, "cycle": cycle, "pod": pod.key, "uid": pod.uid}
        log.log(level, "%s pod %s: %s", name, pod.key, text, extra={**extra, **fields})
