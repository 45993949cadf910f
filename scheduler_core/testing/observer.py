"""RecordingObserver: keeps every fact that a scheduler tells."""

from __future__ import annotations

from scheduler_core.ports import Observer
from scheduler_core.records import (
    BindingRecord,
    ClusterUsage,
    CycleRecord,
    PermitDecision,
    QueueListing,
    WaitingPodRecord,
)


class RecordingObserver(Observer):
    """Lists of all records, oldest first."""

    def __init__(self) -> None:
        self.cycles: list[CycleRecord] = []
        self.bindings: list[BindingRecord] = []
        self.waiting: list[WaitingPodRecord] = []
        self.resolved: list[WaitingPodRecord] = []
        self.decisions: list[tuple[PermitDecision, bool, str]] = []
        self.listings: list[QueueListing] = []
        self.usages: list[ClusterUsage] = []

    def cycle_finished(self, record: CycleRecord) -> None:
        self.cycles.append(record)

    def binding_finished(self, record: BindingRecord) -> None:
        self.bindings.append(record)

    def pod_waiting(self, record: WaitingPodRecord) -> None:
        self.waiting.append(record)

    def pod_resolved(self, record: WaitingPodRecord) -> None:
        self.resolved.append(record)

    def decision_applied(self, decision: PermitDecision, applied: bool, message: str) -> None:
        self.decisions.append((decision, applied, message))

    def queues_listed(self, listing: QueueListing) -> None:
        self.listings.append(listing)

    def usage_changed(self, usage: ClusterUsage) -> None:
        self.usages.append(usage)
