"""Pods that a run observes, and how often it agreed."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from scheduler_core.observations import LEFT_OUT
from scheduler_core.observations import Verdict as _Verdict


class ObservedPod(models.Model):
    """The latest word on one pod (``scheduler_core.observations.Observation``); a pod that waits
    has one, which its end replaces. ``comparison``: ``[[plugin, ours, theirs], ...]``, each of the
    two ``[raw, normalised, weighted]``.
    """

    class Verdict(models.TextChoices):
        AGREE = "agree", "Same node"
        TIE = "tie", "Tie"
        DIFFERS = "differs", "Differs"
        INFEASIBLE = "infeasible", "Turned down by us"
        UNSCHEDULABLE = "unschedulable", "No node for us"
        ERROR = "error", "Error"
        PENDING = "pending", "Not placed yet"
        GONE = "gone", "Gone unplaced"
        MISSED = "missed", "Missed"

    run = models.ForeignKey(
        "dashboard.SchedulerRun", on_delete=models.CASCADE, related_name="observed"
    )
    uid = models.CharField(max_length=64)
    namespace = models.CharField(max_length=253)
    name = models.CharField(max_length=253)
    sequence = models.BigIntegerField()
    commit_seq = models.BigIntegerField()
    verdict = models.CharField(max_length=16, choices=Verdict.choices)
    scheduler = models.CharField(max_length=253)
    profile = models.CharField(max_length=253)
    seen_at = models.FloatField()
    at = models.FloatField()
    ours = models.CharField(max_length=253, blank=True)
    actual = models.CharField(max_length=253, blank=True)
    ours_total = models.BigIntegerField(null=True)
    actual_total = models.BigIntegerField(null=True)
    ties = models.IntegerField(default=0)
    nodes_total = models.IntegerField(default=0)
    nodes_feasible = models.IntegerField(default=0)
    first = models.CharField(max_length=253, blank=True)
    why = models.TextField(blank=True)
    plugin = models.CharField(max_length=253, blank=True)
    comparison = models.JSONField(default=list)
    duration = models.FloatField(default=0.0)

    class Meta:
        ordering: ClassVar = ["run", "-sequence"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["run", "uid"], name="observedpod_uid")
        ]
        indexes: ClassVar = [
            models.Index(fields=["run", "sequence"], name="observedpod_sequence"),
            models.Index(fields=["run", "commit_seq"], name="observedpod_commit"),
            models.Index(fields=["run", "verdict", "sequence"], name="observedpod_verdict"),
            models.Index(fields=["run", "namespace", "sequence"], name="observedpod_namespace"),
        ]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}: {self.verdict}"


class ObservedTotals(models.Model):
    """How many pods of a run got each verdict in all, those whose rows are gone included, and how
    many were left out. Pods that wait are not in it."""

    COUNTED: ClassVar = tuple(v.value for v in _Verdict if v is not _Verdict.PENDING)
    LEFT_OUT: ClassVar = tuple(sorted(v.value for v in LEFT_OUT))

    run = models.OneToOneField(
        "dashboard.SchedulerRun",
        primary_key=True,
        on_delete=models.CASCADE,
        related_name="observed_totals",
    )
    counts = models.JSONField(default=dict)

    def __str__(self) -> str:
        return f"observed by run {self.run_id}"
