"""The judge of a round: reads a database that has come to rest, and says what is not as promised.

It knows the tables and nothing of the code that wrote them: waiting rows, people's decisions, the
sandbox's write log. It shares no line with the product: an error there is no error here.

What a violation is called: see ``RULES``.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

__all__ = ["RULES", "Database", "Terms", "Violation", "check"]

Row = dict[str, Any]
#: A question to the database: SQL with ``?`` for each value, and the values.
Database = Callable[..., list[Row]]

RULES: Final = {
    "bound twice": "a pod is bound at most once, and stays on its node",
    "bound without approval": "who asks for approval is bound only after enough people gave it",
    "approved by another's word": "a word counts for the pod, by uid, that it was said of",
    "lost decision": "a word that was given in time comes true, or its giver is told why not",
    "lost approval": "what was let go is bound, unless it went, or its wait broke",
    "late word won": "a word that was given when the time was over never counts",
    "deadline not applied": "a wait ends within 2 s of its deadline, or of the worker's return",
    "deadline moved": "a restart gives nobody more time, nor less",
    "gang partly bound": "of a gang as many are bound as it needs, or none, or its node went",
    "asked again too soon": "who was turned down does not ask for 5 minutes, unless it changes",
    "waits for nothing": "a pod that is gone, or bound, waits no more",
    "no reason": "a wait that ended otherwise than allowed says why",
}
#: Seconds within which a deadline is applied.
SOON: Final = 2.0
#: Seconds for which nobody asks who was turned down.
REST: Final = 300.0
#: Two readings of one clock may differ by so much when they went through a database.
EPSILON: Final = 1e-3
APPROVAL: Final = "kubesched.io/approval"
OPEN: Final = ("waiting", "sent")


@dataclass(frozen=True, slots=True)
class Violation:
    """A promise that was not kept."""

    rule: str
    text: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.text}"


@dataclass(frozen=True, slots=True)
class Terms:
    """What of the round is not in the database.

    Attributes:
        ended_at: when it was looked at; it was at rest for ``rest`` seconds.
        away: (from, until) in which no worker lived, or had no database.
        timeouts: how long a pod may wait for people, in all configurations of the round; empty:
            not known.
        always_asked: every configuration had ManualApproval.
        soon: seconds within which a deadline is applied.
    """

    ended_at: float
    rest: float = 10.0
    away: Sequence[tuple[float, float]] = ()
    timeouts: Sequence[float] = ()
    always_asked: bool = True
    soon: float = SOON


def check(database: Database, cluster: int, run: int, terms: Terms) -> list[Violation]:
    """Every violation in the rows of one sandbox and one run on it."""
    facts = _read(database, cluster, run)
    found: list[Violation] = []
    for rule, judge in _JUDGES.items():
        found += (Violation(rule, text) for text in judge(facts, terms))
    return found


# --- what the database says ----------------------------------------------------------------------


@dataclass(slots=True)
class Pod:
    """A pod's life by the write log."""

    uid: str
    key: str
    group: str  # "" or "kind namespace/name"
    asks: bool
    created_at: float
    binds: list[tuple[float, str]] = field(default_factory=list)
    nodes: list[str] = field(default_factory=list)
    deleted_at: float | None = None
    #: (since, labels)
    labels: list[tuple[float, Any]] = field(default_factory=list)

    @property
    def bound(self) -> bool:
        return bool(self.binds)


@dataclass(slots=True)
class Group:
    """A PodGroup's life, by uid."""

    uid: str
    key: str
    created_at: float
    #: (since, members needed)
    sizes: list[tuple[float, int]] = field(default_factory=list)
    asks: bool = False
    deleted_at: float | None = None
    #: (since, what it asks for)
    contents: list[tuple[float, Any]] = field(default_factory=list)

    def least_after(self, moment: float) -> int:
        """The least number of members that it has needed from then on."""
        before = [size for at, size in self.sizes if at <= moment]
        after = [size for at, size in self.sizes if at > moment]
        return min(before[-1:] + after, default=0)


@dataclass(slots=True)
class Facts:
    """Everything, in the order in which it was written."""

    pods: dict[str, Pod]
    groups: dict[str, Group]
    waits: list[Row]
    decisions: dict[int, list[Row]]  # by wait
    nodes_deleted: dict[str, list[float]]

    def waits_of(self, uid: str) -> list[Row]:
        return [wait for wait in self.waits if wait["uid"] == uid]

    def members(self, group: Group) -> list[Pod]:
        """Pods that were there while it was."""
        until = group.deleted_at if group.deleted_at is not None else float("inf")
        return [
            pod
            for pod in self.pods.values()
            if pod.group == group.key
            and pod.created_at <= until
            and (pod.deleted_at is None or pod.deleted_at >= group.created_at)
        ]


def _read(database: Database, cluster: int, run: int) -> Facts:
    waits = database("select * from dashboard_waitingpod where run_id = ? order by id", run)
    for wait in waits:
        for column in ("terms", "approvals", "pending"):
            wait[column] = _json(wait[column])
    decisions: dict[int, list[Row]] = defaultdict(list)
    for row in database("select * from dashboard_decision where run_id = ? order by id", run):
        decisions[row["waiting_pod_id"]].append(row)
    facts = Facts({}, {}, waits, decisions, defaultdict(list))
    for write in database(
        "select at, verb, kind, namespace, name, uid, object from dashboard_sandboxwrite"
        " where cluster_id = ? order by resource_version",
        cluster,
    ):
        write["object"] = _json(write["object"])
        _take_in(facts, write)
    return facts


def _json(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str | bytes) else value


def _take_in(facts: Facts, write: Row) -> None:
    kind = write["kind"]
    if kind == "Pod":
        _take_in_pod(facts.pods, write)
    elif kind.startswith("PodGroup"):
        _take_in_group(facts.groups, write)
    elif kind == "Node" and write["verb"] == "delete":
        facts.nodes_deleted[write["name"]].append(write["at"])


def _take_in_pod(pods: dict[str, Pod], write: Row) -> None:
    obj, uid, at = write["object"], write["uid"], write["at"]
    pod = pods.get(uid)
    if pod is None:
        key = f"{write['namespace']}/{write['name']}"
        pod = pods[uid] = Pod(uid, key, _group_of(obj, write["namespace"]), _asks(obj), at)
    node = obj["spec"].get("nodeName") or ""
    _note(pod.labels, at, obj["metadata"].get("labels") or {})
    if write["verb"] == "bind":
        pod.binds.append((at, node))
    if node and (not pod.nodes or pod.nodes[-1] != node):
        pod.nodes.append(node)
    if write["verb"] == "delete":
        pod.deleted_at = at


def _note(history: list[tuple[float, Any]], at: float, value: Any) -> None:
    if not history or history[-1][1] != value:
        history.append((at, value))


def _group_of(pod: Row, namespace: str) -> str:
    name = (pod["spec"].get("schedulingGroup") or {}).get("podGroupName")
    if name:
        return f"scheduling.k8s.io {namespace}/{name}"
    name = (pod["metadata"].get("labels") or {}).get("scheduling.x-k8s.io/pod-group")
    return f"scheduling.x-k8s.io {namespace}/{name}" if name else ""


def _asks(obj: Row) -> bool:
    metadata = obj["metadata"]
    return "required" in (
        (metadata.get("labels") or {}).get(APPROVAL),
        (metadata.get("annotations") or {}).get(APPROVAL),
    )


def _take_in_group(groups: dict[str, Group], write: Row) -> None:
    obj, uid, at = write["object"], write["uid"], write["at"]
    group = groups.get(uid)
    if group is None:
        api = obj["apiVersion"].split("/")[0]
        key = f"{api} {write['namespace']}/{write['name']}"
        group = groups[uid] = Group(uid, key, at, asks=_asks(obj))
    spec = obj.get("spec") or {}
    policy = spec.get("schedulingPolicy") or {}
    size = int(spec.get("minMember") or (policy.get("gang") or {}).get("minCount") or 0)
    _note(group.sizes, at, size)
    metadata = obj["metadata"]
    _note(group.contents, at, [spec, metadata.get("labels"), metadata.get("annotations")])
    if write["verb"] == "delete":
        group.deleted_at = at


# --- what people said ----------------------------------------------------------------------------


def _name(wait: Row) -> str:
    return f"wait {wait['id']} of {wait['namespace']}/{wait['name']} ({wait['uid'][:8]})"


def _needed(wait: Row) -> int:
    return int(wait["terms"].get("approvers", 1))


def _counting(words: Sequence[Row], wait: Row, until: float = float("inf")) -> list[Row]:
    """The approvals that stand when all words up to a moment are heard, one a person. Who has taken
    theirs back may give another; an older one does not come back."""
    standing: dict[str, Row] = {}
    taken_back: dict[str, float] = {}
    own = not wait["terms"].get("requester_may_approve", True)
    for word in words:
        if word["at"] > until:
            continue
        user = word["username"]
        if word["verdict"] == "approve" and not (own and user == wait["requested_by"]):
            if word["at"] >= taken_back.get(user, word["at"]):
                standing.setdefault(user, word)
        elif word["verdict"] == "revoke" and word["applied"] not in (False, 0):
            standing.pop(user, None)
            taken_back[user] = word["at"]
    return list(standing.values())


def _enough(facts: Facts, wait: Row, until: float = float("inf")) -> bool:
    return len(_counting(facts.decisions[wait["id"]], wait, until)) >= _needed(wait)


def _by_time(wait: Row) -> bool:
    """Its terms let it go when its time is over."""
    return bool(wait["terms"].get("at_deadline") == "approve")


def _is_open(wait: Row) -> bool:
    return wait["state"] in OPEN


# --- the rules -----------------------------------------------------------------------------------


def _bound_twice(facts: Facts, terms: Terms) -> Iterator[str]:
    for pod in facts.pods.values():
        if len(pod.binds) > 1:
            yield f"{pod.key} ({pod.uid[:8]}) was bound {len(pod.binds)} times: {pod.binds}"
        if len(pod.nodes) > 1:
            yield f"{pod.key} ({pod.uid[:8]}) moved: {' -> '.join(pod.nodes)}"


def _bound_without_approval(facts: Facts, terms: Terms) -> Iterator[str]:
    asking = {group.key for group in facts.groups.values() if group.asks}
    for pod in facts.pods.values():
        if not pod.bound:
            continue
        waits = [wait for wait in facts.waits_of(pod.uid) if wait["needs_approval"]]
        if not waits:
            if terms.always_asked and (pod.asks or (pod.group in asking)):
                yield f"{pod.key} ({pod.uid[:8]}) asks for approval and was bound unasked"
            continue
        unknown = pod.deleted_at is not None and waits[-1]["state"] == "removed"
        if not unknown and not any(_let_it_go(facts, wait, pod) for wait in waits):
            states = [wait["state"] for wait in waits]
            yield f"{pod.key} ({pod.uid[:8]}) was bound; its waits ended as {states}"
            continue
        if terms.always_asked and not any(_was_let_go_rightly(facts, w, terms) for w in waits):
            yield f"{pod.key} ({pod.uid[:8]}) was bound; {_name(waits[-1])} has too few approvals"


def _let_it_go(facts: Facts, wait: Row, pod: Pod) -> bool:
    """The wait ended as allowed; or it had its approvals when the pod was bound to its node, and
    its gang broke afterwards, before that could be said."""
    if wait["state"] == "allowed":
        return True
    if wait["state"] != "broken":
        return False
    return any(
        wait["since"] <= at <= wait["resolved_at"] + EPSILON
        and node == wait["node"]
        and _enough(facts, wait, at + EPSILON)
        for at, node in pod.binds
    )


def _was_let_go_rightly(facts: Facts, wait: Row, terms: Terms) -> bool:
    if wait["state"] not in ("allowed", "removed", "broken"):
        return False
    ended, deadline = wait["resolved_at"], wait["deadline"]
    if wait["pod_group"] and terms.timeouts:
        # Its own time has let it go; what is shown after that is how long its gang may wait.
        deadline = min(deadline, wait["since"] + min(terms.timeouts))
    if _by_time(wait) and ended is not None and ended >= deadline - EPSILON:
        return True
    return _enough(facts, wait)


def _anothers_word(facts: Facts, terms: Terms) -> Iterator[str]:
    for wait in facts.waits:
        pod = facts.pods.get(wait["uid"])
        key = f"{wait['namespace']}/{wait['name']}"
        if pod is None or pod.key != key:
            yield f"{_name(wait)}: there was no such pod"
            continue
        said = {(word["username"], word["at"]) for word in facts.decisions[wait["id"]]}
        for item in wait["approvals"]:
            if (item["user"], item["at"]) not in said:
                yield f"{_name(wait)}: the approval of {item['user']} was not said of it"
        for word in facts.decisions[wait["id"]]:
            if (
                pod.deleted_at is not None
                and word["at"] > pod.deleted_at + EPSILON
                and word["applied"]
            ):
                yield f"{_name(wait)}: {word['username']}'s word counted after the pod was gone"


def _lost_decision(facts: Facts, terms: Terms) -> Iterator[str]:
    for wait in facts.waits:
        words = facts.decisions[wait["id"]]
        if not _is_open(wait):
            for word in words:
                if word["applied"] is None:
                    yield f"{_name(wait)} has ended; {word['username']} was never told of theirs"
        yield from _counted_otherwise(wait, words)
        yield from _without_effect(facts, wait, words, terms)


def _counted_otherwise(wait: Row, words: Sequence[Row]) -> Iterator[str]:
    counted = sorted(item["user"] for item in wait["approvals"])
    said = sorted(word["username"] for word in _counting(words, wait))
    refused = {word["username"] for word in words if word["applied"] in (False, 0)}
    if _is_open(wait) and counted != said and not refused:
        yield f"{_name(wait)} counts {counted}, people said {said}"


def _without_effect(facts: Facts, wait: Row, words: Sequence[Row], terms: Terms) -> Iterator[str]:
    denials = [word for word in words if word["verdict"] == "deny"]
    ended, deadline = wait["resolved_at"], wait["deadline"]
    if wait["state"] == "allowed":
        for word in denials:
            if _ran_in_part(facts, wait, word["at"]):
                continue
            later = [w for w in _words_of_gang(facts, wait) if w["id"] > word["id"]]
            decided = any(w["verdict"] == "approve" and w["applied"] for w in later)
            if word["applied"] or (decided and ended is not None and word["at"] < ended - SOON):
                yield f"{_name(wait)} was allowed, though {word['username']} denied it before"
    if wait["state"] == "timed_out" and wait["resolved_by"] == "ManualApproval":
        if denials and denials[0]["at"] < deadline:
            yield f"{_name(wait)} timed out, though {denials[0]['username']} denied it in time"
        end = _end_by_time(facts, wait)
        gang = _asked_with(facts, wait)
        if all(_enough(facts, other, end - EPSILON) for other in gang) and not any(
            _taken_back_after(facts, other, end) for other in gang
        ):
            yield f"{_name(wait)} timed out, though it was approved in time"
    if _is_open(wait) and words:
        yield from _no_effect_yet(facts, wait, words, terms)


def _ran_in_part(facts: Facts, wait: Row, at: float) -> bool:
    """A member of its gang was bound by then: it was let go, and nobody can take that back."""
    mates = {other["uid"] for other in _asked_with(facts, wait)}
    return any(
        bound <= at for uid in mates if uid in facts.pods for bound, _ in facts.pods[uid].binds
    )


def _taken_back_after(facts: Facts, wait: Row, end: float) -> bool:
    """An approved member waits for its gang beyond its own deadline; without its approval that is
    over at once."""
    words = facts.decisions[wait["id"]]
    return any(
        w["verdict"] == "revoke" and w["applied"] and w["at"] >= end - EPSILON for w in words
    )


def _asked_with(facts: Facts, wait: Row) -> list[Row]:
    """It, and the members of its gang that were asked at the same time: they go as one."""
    return [
        other
        for other in facts.waits
        if other["id"] == wait["id"]
        or (
            wait["gang_uid"]
            and other["gang_uid"] == wait["gang_uid"]
            and other["since"] <= wait["resolved_at"]
            and (other["resolved_at"] or float("inf")) >= wait["resolved_at"] - EPSILON
        )
    ]


def _words_of_gang(facts: Facts, wait: Row) -> Iterator[Row]:
    for other in _asked_with(facts, wait):
        yield from facts.decisions[other["id"]]


def _no_effect_yet(facts: Facts, wait: Row, words: Sequence[Row], terms: Terms) -> Iterator[str]:
    long_ago = terms.ended_at - terms.rest
    denials = [word for word in words if word["verdict"] == "deny" and word["at"] < long_ago]
    if denials:
        yield f"{_name(wait)} is open, though {denials[0]['username']} denied it"
    if wait["pod_group"] or not _enough(facts, wait, long_ago):
        return
    yield f"{_name(wait)} is open, though it is approved"


def _lost_approval(facts: Facts, terms: Terms) -> Iterator[str]:
    for pod in facts.pods.values():
        waits = facts.waits_of(pod.uid)
        if not waits or pod.bound or pod.deleted_at is not None:
            continue
        last = waits[-1]
        if last["state"] == "allowed" and last["needs_approval"]:
            yield f"{_name(last)} was allowed, and the pod is not bound"


def _late_word(facts: Facts, terms: Terms) -> Iterator[str]:
    for wait in facts.waits:
        deadline = wait["deadline"]
        if terms.timeouts and not wait["pod_group"]:
            # A pod that is let go twice, because its binding failed, is shown with a new one.
            deadline = min(deadline, wait["since"] + max(terms.timeouts))
        if wait["resolved_at"] and _enough(facts, wait, deadline - EPSILON):
            # Approved in time, it waits for its gang until the others' deadlines.
            deadline = max(float(other["deadline"]) for other in _asked_with(facts, wait))
        for word in facts.decisions[wait["id"]]:
            if word["applied"] and word["verdict"] != "revoke" and word["at"] >= deadline:
                late = f"{word['at'] - deadline:.3f} s late"
                yield f"{_name(wait)}: {word['username']}'s {word['verdict']} came {late}"


def _end_by_time(facts: Facts, wait: Row) -> float:
    """When time ends a wait: at its deadline, or at that of the member of its gang whose time was
    over first and ended the wait of all (docs/approvals.md)."""
    ended = wait["resolved_at"]
    over = [
        float(other["deadline"])
        for other in _asked_with(facts, wait)
        if other["state"] == "timed_out" and other["resolved_at"] == ended
    ]
    return min([float(wait["deadline"]), *over])


def _deadline_not_applied(facts: Facts, terms: Terms) -> Iterator[str]:
    for wait in facts.waits:
        deadline, ended = wait["deadline"], wait["resolved_at"]
        due = _due(deadline, terms)
        if wait["state"] == "timed_out":
            due = _due(_over_at(facts, wait), terms)
            if ended is None or ended > due + EPSILON:
                yield f"{_name(wait)} timed out {ended} s, due {due}"
            elif ended < _end_by_time(facts, wait) - EPSILON:
                yield f"{_name(wait)} timed out {deadline - ended:.3f} s too early"
        elif (
            wait["state"] == "waiting" and terms.ended_at > due and not _waits_for_gang(facts, wait)
        ):
            yield f"{_name(wait)} is open {terms.ended_at - deadline:.3f} s after its deadline"
        elif _let_go_by_time(facts, wait) and ended > due + EPSILON:
            yield f"{_name(wait)} was approved by time {ended - deadline:.3f} s late"


def _over_at(facts: Facts, wait: Row) -> float:
    """When the time of a wait was over that timed out: at its deadline. A member of a gang that had
    its approvals by then has no deadline any more; it waits for the others. Its time is over when
    an approval is taken back after that, or when that of the first other member is which had not
    enough: that ends the wait of all (docs/approvals.md). Both are in the rows."""
    deadline = float(wait["deadline"])
    if not wait["gang_uid"] or not _enough(facts, wait, deadline - EPSILON):
        return deadline
    over = [
        float(word["at"])
        for word in facts.decisions[wait["id"]]
        if word["verdict"] == "revoke" and word["applied"] and word["at"] >= deadline - EPSILON
    ]
    over += [
        float(other["deadline"])
        for other in _asked_with(facts, wait)
        if other["state"] == "timed_out" and other["resolved_at"] == wait["resolved_at"]
        if not _enough(facts, other, other["deadline"] - EPSILON)
    ]
    return max(deadline, min(over, default=deadline))


def _due(deadline: float, terms: Terms) -> float:
    """Until when a deadline has to be applied."""
    due = deadline + terms.soon
    for since, until in sorted(terms.away):
        if since < due and until > deadline:
            due = max(due, until + terms.soon)
    return due


def _waits_for_gang(facts: Facts, wait: Row) -> bool:
    """Its own time has let it go, and others of its gang are still asked."""
    return bool(wait["pod_group"]) and _by_time(wait)


def _let_go_by_time(facts: Facts, wait: Row) -> bool:
    alone = not wait["pod_group"] and wait["needs_approval"]
    return alone and wait["state"] == "allowed" and _by_time(wait) and not _enough(facts, wait)


def _deadline_moved(facts: Facts, terms: Terms) -> Iterator[str]:
    for wait in facts.waits:
        alone = not wait["pod_group"] and wait["needs_approval"]
        # What was let go, and is tried again because its binding failed, is shown with a new one.
        if not terms.timeouts or not alone or wait["state"] in ("allowed", "broken"):
            continue
        length = wait["deadline"] - wait["since"]
        if all(abs(length - timeout) > EPSILON for timeout in terms.timeouts):
            yield f"{_name(wait)} had {length:.3f} s; there are only {sorted(terms.timeouts)}"


def _gang_partly_bound(facts: Facts, terms: Terms) -> Iterator[str]:
    for group in facts.groups.values():
        members = facts.members(group)
        bound = [pod for pod in members if pod.bound]
        if not bound:
            continue
        let_go = [
            wait["resolved_at"]
            for wait in facts.waits
            if wait["gang_uid"] == group.uid and wait["state"] == "allowed"
        ]
        # Whoever changes its number between decision and bind wants what comes of it.
        first = min([*let_go, *(at for pod in bound for at, _ in pod.binds)])
        first = _all_approved_at(facts, group, first)
        if len(bound) >= group.least_after(first) or _is_excused(facts, group, members, first):
            continue
        if _went_before_the_rest(bound, terms):
            continue
        names = sorted(pod.key for pod in bound)
        yield f"{group.key}: {names} are bound, {group.least_after(first)} are needed"


def _all_approved_at(facts: Facts, group: Group, first: float) -> float:
    """When the gang was let go: not after ``first``, but the worker may have died before it could
    say when. Then it was when all who waited had their approvals."""
    waits = [w for w in facts.waits if w["gang_uid"] == group.uid and w["needs_approval"]]
    words = {word["at"] for wait in waits for word in facts.decisions[wait["id"]]}
    for at in sorted(at for at in words if at <= first):
        asked = [wait for wait in waits if wait["since"] <= at <= (wait["resolved_at"] or at)]
        if asked and all(_enough(facts, wait, at + EPSILON) for wait in asked):
            return at
    return first


def _is_excused(facts: Facts, group: Group, members: Iterable[Pod], first: float) -> bool:
    """Its row says broken and why, and those that are not bound hold nothing of it any more; or
    its users took away what was to be bound."""
    if group.deleted_at is not None:
        return True
    waits = [wait for wait in facts.waits if wait["gang_uid"] == group.uid]
    broken = [wait for wait in waits if _lost_its_node(facts, wait, first)]
    if broken:
        until = max(wait["resolved_at"] for wait in broken)
        return not any(_is_open(wait) and wait["since"] < until - EPSILON for wait in waits)
    let_go = min([first, *(w["resolved_at"] for w in waits if w["state"] == "allowed")])
    waited = {wait["uid"] for wait in waits}
    gone = [
        pod
        for pod in members
        if not pod.bound and pod.uid in waited
        if pod.deleted_at is not None and pod.deleted_at >= let_go - EPSILON
    ]
    bound = [pod for pod in members if pod.bound]
    return bool(gone) and len(bound) + len(gone) >= group.least_after(first)


def _went_before_the_rest(bound: Sequence[Pod], terms: Terms) -> bool:
    """Its users deleted every member that was bound before a worker had to bind the others: the
    worker died between two bindings, and when one was there again, or within the time in which it
    has to act, nobody of the gang ran any more. All or none: then none is right, and to bind the
    others would have left the gang in part. A worker that lived, and left them unbound for longer
    than it may, is not excused by a deletion that came later."""
    last = max(at for pod in bound for at, _ in pod.binds)
    gone = [pod.deleted_at for pod in bound]
    return all(at is not None and at <= _due(last, terms) for at in gone)


def _lost_its_node(facts: Facts, wait: Row, first: float) -> bool:
    """It broke, and says why, after the gang was let go: its node was deleted since its wait
    began. That its binding failed and another took its room is no excuse."""
    if wait["state"] != "broken" or not wait["message"]:
        return False
    if wait["resolved_at"] < first - EPSILON:
        return False
    gone = facts.nodes_deleted.get(wait["node"], ())
    return any(wait["since"] - EPSILON <= at <= wait["resolved_at"] + EPSILON for at in gone)


def _asked_again(facts: Facts, terms: Terms) -> Iterator[str]:
    for wait in facts.waits:
        if not _was_turned_down(wait):
            continue
        ended = wait["resolved_at"]
        for later in facts.waits:
            if not _is_of_the_same(wait, later) or not later["needs_approval"]:
                continue
            if not ended + EPSILON < later["since"] < ended + REST - EPSILON:
                continue
            if not _changed(facts, wait, ended - SOON, later["since"]):
                after = later["since"] - ended
                yield f"{_name(wait)} was turned down; {_name(later)} began {after:.1f} s later"


def _was_turned_down(wait: Row) -> bool:
    if wait["state"] == "timed_out":
        return bool(wait["resolved_by"] == "ManualApproval")
    return bool(wait["state"] == "rejected" and wait["message"].startswith("denied by "))


def _is_of_the_same(wait: Row, other: Row) -> bool:
    if wait["gang_uid"]:
        return bool(wait["gang_uid"] == other["gang_uid"])
    return bool(wait["uid"] == other["uid"])


def _changed(facts: Facts, wait: Row, since: float, until: float) -> bool:
    """Its PodGroup, or a member of its gang; or another member has come."""
    group = facts.groups.get(wait["gang_uid"])
    pods = facts.members(group) if group is not None else [facts.pods[wait["uid"]]]
    times = [at for pod in pods for at, _ in pod.labels]
    times += [at for at, _ in group.contents] if group is not None else []
    return any(since <= at <= until for at in times)


def _waits_for_nothing(facts: Facts, terms: Terms) -> Iterator[str]:
    for wait in facts.waits:
        pod = facts.pods.get(wait["uid"])
        if not _is_open(wait) or pod is None:
            continue
        if pod.deleted_at is not None and pod.deleted_at < terms.ended_at - SOON:
            yield f"{_name(wait)} is open; the pod was deleted"
        if pod.bound:
            yield f"{_name(wait)} is open; the pod is bound"


def _no_reason(facts: Facts, terms: Terms) -> Iterator[str]:
    for wait in facts.waits:
        if not _is_open(wait) and wait["state"] != "allowed" and not wait["message"]:
            yield f"{_name(wait)} is {wait['state']} without a word why"


_JUDGES: Final[dict[str, Callable[[Facts, Terms], Iterator[str]]]] = {
    "bound twice": _bound_twice,
    "bound without approval": _bound_without_approval,
    "approved by another's word": _anothers_word,
    "lost decision": _lost_decision,
    "lost approval": _lost_approval,
    "late word won": _late_word,
    "deadline not applied": _deadline_not_applied,
    "deadline moved": _deadline_moved,
    "gang partly bound": _gang_partly_bound,
    "asked again too soon": _asked_again,
    "waits for nothing": _waits_for_nothing,
    "no reason": _no_reason,
}
