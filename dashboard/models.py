"""The rows that the worker writes and the pages read. The database is the truth.

Moments that come from a scheduler (``since``, ``deadline``, ``started_at`` of a cycle, ...) are
seconds since the epoch as floats, of that scheduler's clock: real time, also where a sandbox's own
clock (the ages of its objects, its workload) runs at N times real time, because people decide.
Moments of this product (``created_at``, ``at`` of an audit row) are datetimes.
"""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.core.validators import MinValueValidator, RegexValidator
from django.db import models
from django.db.models import Q

# Django looks here for an application's models.
from dashboard import permits_models  # noqa: F401
from dashboard.clusters import models as clusters_models  # noqa: F401
from dashboard.observe import models as observe_models  # noqa: F401
from dashboard.rest import models as rest_models  # noqa: F401
from dashboard.sandbox_api import models as sandbox_api_models  # noqa: F401
from dashboard.webhooks import models as webhook_models  # noqa: F401

cluster_name_validator = RegexValidator(
    r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\Z",
    "Use at most 63 lower-case letters, digits and '-', beginning and ending with a letter"
    " or a digit.",
)


class Cluster(models.Model):
    """A Kubernetes API that schedulers may run against."""

    class Kind(models.TextChoices):
        SANDBOX = "sandbox", "Sandbox"
        KUBE = "kube", "Kubernetes"

    name = models.CharField(max_length=63, unique=True, validators=[cluster_name_validator])
    kind = models.CharField(max_length=16, choices=Kind.choices, default=Kind.SANDBOX)
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )

    class Meta:
        ordering: ClassVar = ["name"]

    def __str__(self) -> str:
        return self.name


class Sandbox(models.Model):
    """How a sandbox cluster is made and kept alive; its objects are SandboxWrite rows.

    ``workload`` says what arrives in it and when; ``workload_state`` is how far that has come;
    ``resource_version`` is the last one acknowledged.
    """

    class ClockMode(models.TextChoices):
        REALTIME = "realtime", "Real time"
        SCALED = "scaled", "N times real time"
        MAX = "max", "As fast as possible"

    class DesiredState(models.TextChoices):
        RUNNING = "running", "Running"
        STOPPED = "stopped", "Stopped"

    class State(models.TextChoices):
        PENDING = "pending", "Pending"
        STARTING = "starting", "Starting"
        RUNNING = "running", "Running"
        STOPPED = "stopped", "Stopped"
        FAILED = "failed", "Failed"

    cluster = models.OneToOneField(
        Cluster, primary_key=True, on_delete=models.CASCADE, related_name="sandbox"
    )
    preset = models.CharField(max_length=63, blank=True)
    clock_mode = models.CharField(
        max_length=16, choices=ClockMode.choices, default=ClockMode.REALTIME
    )
    speed = models.FloatField(default=1.0, validators=[MinValueValidator(0.001)])
    workload = models.JSONField(default=dict, blank=True)
    workload_state = models.JSONField(default=dict, blank=True)
    resource_version = models.BigIntegerField(default=0)
    desired_state = models.CharField(
        max_length=16, choices=DesiredState.choices, default=DesiredState.RUNNING
    )
    state = models.CharField(max_length=16, choices=State.choices, default=State.PENDING)
    message = models.TextField(blank=True)

    class Meta:
        verbose_name_plural = "sandboxes"

    def __str__(self) -> str:
        return f"sandbox {self.cluster_id}"


class SandboxWrite(models.Model):
    """One write to a sandbox: what a restart replays, a watch resumes from and a checker reads."""

    # Indices of more columns begin with it.
    cluster = models.ForeignKey(
        Cluster, on_delete=models.CASCADE, related_name="writes", db_index=False
    )
    resource_version = models.BigIntegerField()
    at = models.FloatField()
    verb = models.CharField(max_length=16)
    # A custom resource's kind has its group behind a dot.
    kind = models.CharField(max_length=317)
    namespace = models.CharField(max_length=253, blank=True)
    name = models.CharField(max_length=253)
    uid = models.CharField(max_length=64, blank=True)
    actor = models.CharField(max_length=253, blank=True)
    object = models.JSONField(default=dict)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["cluster", "resource_version"], name="sandboxwrite_version"
            )
        ]

    def __str__(self) -> str:
        return f"{self.resource_version} {self.verb} {self.kind} {self.namespace}/{self.name}"


class SandboxSnapshot(models.Model):
    """The whole store at one resourceVersion, compressed; it bounds the replay of a restart."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="snapshots")
    resource_version = models.BigIntegerField()
    blob = models.BinaryField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["cluster", "resource_version"], name="sandboxsnapshot_version"
            )
        ]

    def __str__(self) -> str:
        return f"cluster {self.cluster_id} at {self.resource_version}"


class SandboxTrace(models.Model):
    """A cluster trace that is replayed in a sandbox: zlib-compressed JSON (``workload_specs``)."""

    cluster = models.OneToOneField(
        Cluster, primary_key=True, on_delete=models.CASCADE, related_name="trace"
    )
    blob = models.BinaryField()

    def __str__(self) -> str:
        return f"trace of cluster {self.cluster_id}"


class Lease(models.Model):
    """Who owns a sandbox or carries a run; see ``dashboard.leases``.

    ``epoch`` rises with every change of holder: a write stamped with an older one is refused.
    """

    name = models.CharField(max_length=63, unique=True)
    holder = models.CharField(max_length=253, blank=True)
    epoch = models.BigIntegerField(default=0)
    renewed_at = models.FloatField(default=0.0)
    # A worker's name: its part, @ and a host name.
    queue = models.CharField(max_length=300, blank=True)

    def __str__(self) -> str:
        return f"{self.name} epoch {self.epoch} held by {self.holder or 'nobody'}"


class SchedulerRun(models.Model):
    """One scheduler on one cluster, across restarts of its worker.

    ``commit_seq`` numbers every transaction that changes what pages of this run show;
    ``last_sequence`` is the number of the last recorded cycle.

    ``config`` is the configuration that people wish for, ``applied_config`` the one that the
    scheduler uses; each change of the wish has the next ``config_version``. ``config_error`` says
    why the scheduler could not take the wish up. See ``dashboard.configuration``.

    A run that observes schedules nothing; see ``dashboard.observe``.
    """

    class Mode(models.TextChoices):
        SCHEDULE = "schedule", "Schedule"
        OBSERVE = "observe", "Observe"

    class DesiredState(models.TextChoices):
        RUNNING = "running", "Running"
        PAUSED = "paused", "Paused"
        STOPPED = "stopped", "Stopped"

    class State(models.TextChoices):
        PENDING = "pending", "Pending"
        STARTING = "starting", "Starting"
        RUNNING = "running", "Running"
        PAUSED = "paused", "Paused"
        STOPPED = "stopped", "Stopped"
        FAILED = "failed", "Failed"

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="runs")
    name = models.CharField(max_length=63)
    mode = models.CharField(
        max_length=16,
        choices=Mode.choices,
        default=Mode.SCHEDULE,
        help_text="Whether it places pods, or only says where it would. Never changed.",
    )
    config = models.TextField(blank=True, help_text="KubeSchedulerConfiguration as YAML.")
    config_version = models.BigIntegerField(default=1)
    applied_config = models.TextField(blank=True)
    applied_config_version = models.BigIntegerField(
        default=0, help_text="0: no worker has used a configuration of this run yet."
    )
    config_error = models.TextField(blank=True)
    seed = models.BigIntegerField(
        null=True, blank=True, help_text="Seed of tie-breaking; empty: a new one at every start."
    )
    desired_state = models.CharField(
        max_length=16, choices=DesiredState.choices, default=DesiredState.RUNNING
    )
    state = models.CharField(max_length=16, choices=State.choices, default=State.PENDING)
    message = models.TextField(blank=True)
    commit_seq = models.BigIntegerField(default=0)
    last_sequence = models.BigIntegerField(default=0)
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True, blank=True)
    stopped_at = models.DateTimeField(null=True, blank=True)
    scheduled = models.BigIntegerField(default=0)
    waiting = models.BigIntegerField(default=0)
    unschedulable = models.BigIntegerField(default=0)
    error = models.BigIntegerField(default=0)
    skipped = models.BigIntegerField(default=0)
    advised = models.BigIntegerField(default=0)
    bound = models.BigIntegerField(default=0)
    bind_failed = models.BigIntegerField(default=0)
    matrices_dropped = models.BigIntegerField(default=0)
    rows_refused = models.BigIntegerField(
        default=0, help_text="Rows that the database refused and that were given up."
    )
    back_pressure_seconds = models.FloatField(default=0.0)

    class Meta:
        ordering: ClassVar = ["-id"]
        permissions: ClassVar = [
            ("control_run", "Can start, pause, resume and stop a run"),
            ("extend_run", "Can ask a run as an extender, and bind pods by it"),
        ]

    def __str__(self) -> str:
        return f"{self.name} (run {self.pk})"


class RunState(models.Model):
    """The small states of a run that every batch of its recorder replaces.

    ``clock_at``/``wall_at`` pair the scheduler's clock with the time of day, ``clock_speed`` says
    how it goes on; ``last_batch`` names the recorder's last committed batch, so that one whose
    commit was cut off by a lost connection is not written twice.
    """

    run = models.OneToOneField(
        SchedulerRun, primary_key=True, on_delete=models.CASCADE, related_name="latest"
    )
    recorder_queued = models.IntegerField(default=0)
    last_batch = models.CharField(max_length=64, blank=True)
    clock_at = models.FloatField(null=True)
    wall_at = models.FloatField(null=True)
    clock_speed = models.FloatField(default=1.0)

    def __str__(self) -> str:
        return f"state of run {self.run_id}"


class RunListing(models.Model):
    """The latest queue listing or node usage of a run: zlib-compressed JSON."""

    class Topic(models.TextChoices):
        QUEUES = "queues", "Queues"
        USAGE = "usage", "Node usage"

    run = models.ForeignKey(SchedulerRun, on_delete=models.CASCADE, related_name="listings")
    topic = models.CharField(max_length=16, choices=Topic.choices)
    commit_seq = models.BigIntegerField()
    blob = models.BinaryField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["run", "topic"], name="runlisting_topic")
        ]

    def __str__(self) -> str:
        return f"{self.topic} of run {self.run_id}"


class SchedulingCycle(models.Model):
    """One scheduling cycle of one pod. Never dropped.

    ``detail`` holds what only the decision page shows: ``point_seconds, plugin_seconds,
    rejections, best, unschedulable_plugins, nominated_node, victims, depths``. ``binding`` is the
    end of the binding cycle. ``commit_seq`` moves on when the binding's end is recorded.
    """

    class Outcome(models.TextChoices):
        SCHEDULED = "scheduled", "Scheduled"
        WAITING = "waiting", "Waiting"
        UNSCHEDULABLE = "unschedulable", "Unschedulable"
        ERROR = "error", "Error"
        SKIPPED = "skipped", "Skipped"
        ADVISED = "advised", "Advised"

    run = models.ForeignKey(
        SchedulerRun, on_delete=models.CASCADE, related_name="cycles", db_index=False
    )
    sequence = models.BigIntegerField()
    commit_seq = models.BigIntegerField()
    pod_uid = models.CharField(max_length=64)
    namespace = models.CharField(max_length=253)
    name = models.CharField(max_length=253)
    pod_group = models.CharField(max_length=507, blank=True)
    attempt = models.IntegerField()
    profile = models.CharField(max_length=253)
    priority = models.BigIntegerField()
    outcome = models.CharField(max_length=16, choices=Outcome.choices)
    node = models.CharField(max_length=253, blank=True)
    score = models.BigIntegerField(null=True)
    ties = models.IntegerField(default=0)
    nodes_total = models.IntegerField(default=0)
    nodes_evaluated = models.IntegerField(default=0)
    nodes_feasible = models.IntegerField(default=0)
    started_at = models.FloatField()
    duration = models.FloatField()
    message = models.TextField(blank=True)
    plugin = models.CharField(max_length=253, blank=True)
    bound = models.BooleanField(null=True)
    binding = models.JSONField(null=True)
    matrix_dropped = models.BooleanField(default=False)
    has_nodes = models.BooleanField(default=False, help_text="A node was looked at.")
    detail = models.JSONField(default=dict)

    class Meta:
        ordering: ClassVar = ["run", "sequence"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["run", "sequence"], name="cycle_sequence")
        ]
        indexes: ClassVar = [
            models.Index(fields=["run", "commit_seq"], name="cycle_commit"),
            models.Index(fields=["run", "pod_uid", "sequence"], name="cycle_pod"),
            models.Index(fields=["run", "outcome", "sequence"], name="cycle_outcome"),
            models.Index(fields=["run", "namespace", "name"], name="cycle_pod_name"),
        ]

    def __str__(self) -> str:
        return f"cycle {self.sequence} of {self.namespace}/{self.name}: {self.outcome}"


class NodeNames(models.Model):
    """The names of a matrix's rows, shared by all matrices with the same nodes."""

    hash = models.CharField(max_length=64, unique=True)
    blob = models.BinaryField()

    class Meta:
        verbose_name_plural = "node names"

    def __str__(self) -> str:
        return self.hash


class CycleMatrix(models.Model):
    """The whole node x plugin matrix of a cycle (``dashboard.matrices``), and why it is kept."""

    class Pin(models.TextChoices):
        LATEST = "latest", "Among the latest cycles"
        WAITING = "waiting", "The pod waits at Permit"
        LAST_FAILED = "last_failed", "The pod's last failed attempt"

    cycle = models.OneToOneField(
        SchedulingCycle, primary_key=True, on_delete=models.CASCADE, related_name="matrix"
    )
    run = models.ForeignKey(
        SchedulerRun, on_delete=models.CASCADE, related_name="matrices", db_index=False
    )
    sequence = models.BigIntegerField()
    pod_uid = models.CharField(max_length=64)
    pin = models.CharField(max_length=16, choices=Pin.choices, default=Pin.LATEST)
    node_names = models.ForeignKey(NodeNames, on_delete=models.PROTECT, related_name="+")
    blob = models.BinaryField()

    class Meta:
        verbose_name_plural = "cycle matrices"
        indexes: ClassVar = [
            models.Index(fields=["run", "sequence"], name="matrix_sequence"),
            models.Index(fields=["run", "pin", "sequence"], name="matrix_pin"),
            models.Index(fields=["run", "pod_uid"], name="matrix_pod"),
        ]

    def __str__(self) -> str:
        return f"matrix of cycle {self.sequence} of run {self.run_id}"


class WaitingPod(models.Model):
    """One wait of one pod at Permit.

    Two writers: ``permits.decide`` moves ``waiting`` to ``sent`` (and back, where an approval is
    taken back), the recorder moves either of them to an end; both under the run's lock. Who said
    what is in ``Decision``; ``approvals`` (``[{user, at, comment, gang}]``) and ``decision_*`` are
    what counts of it now. ``decision_applied_at`` (scheduler's clock) is set once the scheduler has
    taken the deciding word up, in time or not.

    ``terms`` are ``records.ApprovalTerms`` as JSON, ``node_use`` is ``{resource: [allocatable,
    before, after]}``. ``unbound``: a person's approval let the pod go, and it is not bound yet; a
    restart takes such a wait up again.
    """

    class State(models.TextChoices):
        WAITING = "waiting", "Waiting"
        SENT = "sent", "Sent"
        ALLOWED = "allowed", "Allowed"
        REJECTED = "rejected", "Rejected"
        TIMED_OUT = "timed_out", "Timed out"
        PREEMPTED = "preempted", "Preempted"
        REMOVED = "removed", "Removed"
        BROKEN = "broken", "Broken"

    class Verdict(models.TextChoices):
        APPROVE = "approve", "Approve"
        DENY = "deny", "Deny"

    OPEN: ClassVar = (State.WAITING, State.SENT)

    run = models.ForeignKey(SchedulerRun, on_delete=models.CASCADE, related_name="waiting_pods")
    uid = models.CharField(max_length=64)
    namespace = models.CharField(max_length=253)
    name = models.CharField(max_length=253)
    node = models.CharField(max_length=253)
    pod_group = models.CharField(max_length=507, blank=True)
    group_min_member = models.IntegerField(default=0)
    gang_uid = models.CharField(max_length=64, blank=True)
    profile = models.CharField(max_length=253)
    priority = models.BigIntegerField()
    since = models.FloatField()
    deadline = models.FloatField()
    pending = models.JSONField(default=list)
    needs_approval = models.BooleanField(default=False)
    requested_by = models.CharField(max_length=253, blank=True)
    requests = models.JSONField(default=dict)
    node_use = models.JSONField(default=dict)
    terms = models.JSONField(default=dict)
    approvals = models.JSONField(default=list)
    unbound = models.BooleanField(default=False)
    cycle = models.BigIntegerField(help_text="Sequence number of the cycle that parked it.")
    state = models.CharField(max_length=16, choices=State.choices, default=State.WAITING)
    message = models.TextField(blank=True)
    resolved_by = models.CharField(max_length=300, blank=True)
    resolved_at = models.FloatField(null=True)
    decision_verdict = models.CharField(max_length=16, choices=Verdict.choices, blank=True)
    decision_user = models.CharField(max_length=150, blank=True)
    decision_at = models.FloatField(null=True)
    decision_comment = models.TextField(blank=True)
    decision_applied_at = models.FloatField(null=True)
    commit_seq = models.BigIntegerField()

    class Meta:
        ordering: ClassVar = ["run", "id"]
        permissions: ClassVar = [
            ("decide_waitingpod", "Can approve and deny pods that wait at Permit")
        ]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["run", "uid"],
                condition=Q(state__in=["waiting", "sent"]),
                name="waitingpod_one_open",
            )
        ]
        indexes: ClassVar = [
            # Over all rows: SQLite does not use a partial index where states are parameters.
            models.Index(fields=["run", "state", "uid"], name="waitingpod_state"),
            models.Index(fields=["run", "commit_seq"], name="waitingpod_commit"),
            models.Index(fields=["run", "pod_group", "id"], name="waitingpod_gang"),
            models.Index(fields=["run", "unbound", "cycle"], name="waitingpod_unbound"),
            models.Index(fields=["uid"], name="waitingpod_uid"),
            models.Index(fields=["gang_uid"], name="waitingpod_gang_uid"),
        ]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name} on {self.node}: {self.state}"

    @property
    def is_open(self) -> bool:
        return self.state in self.OPEN

    @property
    def gang(self) -> tuple[str, str]:
        """Which gang it is of, within its run: "namespace/name" and uid of the PodGroup. A gang of
        scheduling.x-k8s.io and a native one may share the name. ("", "") where it is of none."""
        return self.pod_group, self.gang_uid if self.pod_group else ""

    @property
    def approvers_needed(self) -> int:
        """How many different people have to approve."""
        return int(self.terms.get("approvers", 1))


class AuditEntry(models.Model):
    """Who did what, when, with which words, and what came of it. Never changed by a person.

    ``detail`` of a changed configuration is ``{"version": N, "diff": unified diff}``.
    """

    class Verb(models.TextChoices):
        APPROVE = "approve", "Approve"
        DENY = "deny", "Deny"
        REVOKE = "revoke", "Take back an approval"
        START = "start", "Start"
        PAUSE = "pause", "Pause"
        RESUME = "resume", "Resume"
        STOP = "stop", "Stop"
        CREATE_RUN = "create_run", "Create run"
        CREATE_SANDBOX = "create_sandbox", "Create sandbox"
        DOWNLOAD_KUBECONFIG = "download_kubeconfig", "Download kubeconfig"
        NEW_SANDBOX_TOKEN = "new_sandbox_token", "New sandbox token"
        ADD_CLUSTER = "add_cluster", "Add cluster"
        CHANGE_CLUSTER = "change_cluster", "Change cluster"
        REMOVE_CLUSTER = "remove_cluster", "Remove cluster"
        CHANGE_CONFIG = "change_config", "Change configuration"
        CREATE_TOKEN = "create_token", "Create API token"
        REVOKE_TOKEN = "revoke_token", "Revoke API token"
        CREATE_WEBHOOK = "create_webhook", "Create webhook"
        CHANGE_WEBHOOK = "change_webhook", "Change webhook"
        DELETE_WEBHOOK = "delete_webhook", "Delete webhook"
        RESEND_WEBHOOK = "resend_webhook", "Send webhook again"
        BIND = "bind", "Bind as an extender"
        CREATE_USER = "create_user", "Create user"
        CHANGE_USER = "change_user", "Change user"
        DELETE_USER = "delete_user", "Delete user"
        CREATE_GROUP = "create_group", "Create group"
        CHANGE_GROUP = "change_group", "Change group"
        DELETE_GROUP = "delete_group", "Delete group"

    class Outcome(models.TextChoices):
        DONE = "done", "Done"
        SENT = "sent", "Sent, not applied yet"
        APPLIED = "applied", "Applied"
        TOO_LATE = "too_late", "Too late"
        REFUSED = "refused", "Refused"

    at = models.DateTimeField()
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    username = models.CharField(max_length=150, blank=True)
    verb = models.CharField(max_length=32, choices=Verb.choices)
    target = models.CharField(max_length=600, help_text="namespace/name of a pod, a run, a cluster")
    comment = models.TextField(blank=True)
    outcome = models.CharField(max_length=16, choices=Outcome.choices, default=Outcome.DONE)
    message = models.TextField(blank=True)
    detail = models.JSONField(default=dict, blank=True)
    run = models.ForeignKey(
        SchedulerRun, null=True, blank=True, on_delete=models.SET_NULL, related_name="audit"
    )
    waiting_pod = models.ForeignKey(
        WaitingPod, null=True, blank=True, on_delete=models.SET_NULL, related_name="audit"
    )

    class Meta:
        ordering: ClassVar = ["-id"]
        verbose_name_plural = "audit entries"
        indexes: ClassVar = [models.Index(fields=["run", "-id"], name="audit_run")]

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M:%S} {self.username} {self.verb} {self.target}"


class SecondSample(models.Model):
    """What happened in one second of the time of day: cycles by outcome, and the last depths.

    The time of day, not the scheduler's clock: a sandbox at a thousand times real time would fill
    a thousand samples a second that nobody can see.
    """

    run = models.ForeignKey(SchedulerRun, on_delete=models.CASCADE, related_name="seconds")
    second = models.BigIntegerField()
    commit_seq = models.BigIntegerField()
    scheduled = models.IntegerField(default=0)
    unschedulable = models.IntegerField(default=0)
    error = models.IntegerField(default=0)
    depth_active = models.IntegerField(default=0)
    depth_backoff = models.IntegerField(default=0)
    depth_unschedulable = models.IntegerField(default=0)
    depth_gated = models.IntegerField(default=0)
    depth_in_flight = models.IntegerField(default=0)
    depth_waiting = models.IntegerField(default=0)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["run", "second"], name="secondsample_second")
        ]

    def __str__(self) -> str:
        return f"run {self.run_id} second {self.second}"
