"""A run's configuration: what people wish for, what the scheduler uses, and who changed it.

A person changes ``config`` and ``config_version`` only; the worker answers with ``applied_config``
or ``config_error``. What is wished for was checked before it is written, so a worker refuses it
only where its own Python differs from the web process's.

Text that came over the network may name plugins of the installation only. Paths of Python code
(``package.module:Class``) that the run's configuration names already, because somebody with access
to files wrote them there, may stay in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import unified_diff
from typing import Any, Final

import yaml
from django.db import transaction

from dashboard import audit, commits, leases, runs
from dashboard.models import AuditEntry, SchedulerRun
from dashboard.publisher import Publisher
from dashboard.redacted import in_text_without_userinfo, without_secrets
from dashboard.yaml_places import hide_secrets, line_of
from scheduler_core.config import InvalidConfiguration, SchedulerConfiguration, load_configuration
from scheduler_core.config.document import parse_document
from scheduler_core.plugins.registry import in_tree_registry
from scheduler_core.trial import try_to_make

#: Changes that the page lists, and characters of a difference that are kept.
HISTORY: Final = 20
MAX_DIFF: Final = 40_000
_NOT_SHOWN: Final = "# This text is not YAML. Only those who may change it can see it.\n"
_PYTHON_PATH = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")

Json = dict[str, Any]


class InvalidText(Exception):
    """The text cannot be used; ``errors``: ``{path, message, line}`` for each fault."""

    def __init__(self, errors: list[Json]) -> None:
        count = "1 fault" if len(errors) == 1 else f"{len(errors)} faults"
        super().__init__(f"The configuration has {count}.")
        self.errors = errors


class Conflict(Exception):
    """Somebody else changed the configuration meanwhile; ``by``: who, when, which version."""

    def __init__(self, run: SchedulerRun) -> None:
        entry = _changes(run).first()
        who = f"{entry.username} at {entry.at:%Y-%m-%d %H:%M:%S} UTC" if entry else "somebody else"
        super().__init__(
            f"The configuration was changed to version {run.config_version} by {who},"
            " after you had begun to edit. Your change was not applied."
        )
        self.by = {"version": run.config_version, **last_change(run)}


# --- people ---------------------------------------------------------------------------------


def check(run: SchedulerRun, text: str) -> SchedulerConfiguration:
    """The checked configuration of a text that a person sent; every plugin was made once.

    Raises:
        InvalidText: with every fault.
    """
    known = python_paths(run.config)
    try:
        config = load_configuration(text, in_tree_registry(), dotted_plugins=known)
        try_to_make(config)
    except InvalidConfiguration as error:
        raise InvalidText(faults(text, error)) from None
    return config


def change(run_id: int, *, text: str, comment: str, version: int, user: Any) -> SchedulerRun:
    """Wish for another configuration, with an audit row; the scheduler takes it up within about a
    second. The text that is there already is no change.

    Args:
        version: which one the person saw while editing.

    Raises:
        SchedulerRun.DoesNotExist: there is no such run.
        Conflict: somebody else was quicker.
        InvalidText: with every fault.
    """
    seen = SchedulerRun.objects.get(pk=run_id)
    if seen.config_version != version:
        raise Conflict(seen)
    text = _newlines(text)
    if text == _newlines(seen.config):
        return seen
    check(seen, text)
    with transaction.atomic():
        run = SchedulerRun.objects.select_for_update().get(pk=run_id)
        if run.config_version != version:
            raise Conflict(run)
        detail = {"version": version + 1, "diff": difference(run.config, text)}
        run = commits.next_commit(run_id, config=text, config_version=version + 1, config_error="")
        audit.write(
            user,
            AuditEntry.Verb.CHANGE_CONFIG,
            str(run),
            comment=comment,
            outcome=AuditEntry.Outcome.SENT,
            detail=detail,
            run=run,
        )
        transaction.on_commit(lambda: runs.publish(run))
    return run


def faults(text: str, error: InvalidConfiguration) -> list[Json]:
    """Each fault with its field path and, where it can be found, its line."""
    return [
        {
            "path": fault.path,
            "message": in_text_without_userinfo(fault.message),
            "line": line_of(text, fault.path, fault.message),
        }
        for fault in error.faults
    ]


def python_paths(text: str) -> frozenset[str]:
    """Paths of Python code that a configuration's plugins are named by."""
    try:
        tree = parse_document(text)
    except InvalidConfiguration:
        return frozenset()
    return frozenset(name for name in _names(tree) if _PYTHON_PATH.fullmatch(name))


def _names(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        name = value.get("name")
        if isinstance(name, str):
            yield name
        for item in value.values():
            yield from _names(item)
    elif isinstance(value, list):
        for item in value:
            yield from _names(item)


def difference(before: str, after: str) -> str:
    """A unified diff, without secrets, cut to ``MAX_DIFF`` characters."""
    old, new = (hide_secrets(text) for text in (before, after))
    if old is None or new is None:
        return ""
    lines = list(unified_diff(old.splitlines(), new.splitlines(), "before", "after", lineterm=""))
    whole = "\n".join(lines)
    if len(whole) <= MAX_DIFF:
        return whole
    cut = whole[:MAX_DIFF].rpartition("\n")[0]
    left = len(lines) - cut.count("\n") - 1
    return f"{cut}\n({left} more lines)"


def _newlines(text: str) -> str:
    """As browsers send what they were given."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


# --- what the page shows --------------------------------------------------------------------


def view(run: SchedulerRun, *, with_secrets: bool) -> Json:
    """The text that is wished for, the completed configuration that the scheduler uses, and the
    history. Until a worker has used one, the completed one is that of the text."""
    in_use = run.applied_config_version or run.config_version
    used_text = run.applied_config if run.applied_config_version else run.config
    answer = {
        "run": run.pk,
        "seq": run.commit_seq,
        "text": run.config if with_secrets else _shown(run.config),
        "version": run.config_version,
        "applied_version": run.applied_config_version,
        "error": in_text_without_userinfo(run.config_error),
        "history": history(run),
        "completed_version": in_use,
        **last_change(run),
    }
    try:
        config = load_configuration(used_text, in_tree_registry(), dotted_plugins=True)
    except InvalidConfiguration as error:
        return {**answer, "completed": "", "profiles": [], "faults": faults(used_text, error)}
    return {**answer, **completed(config), "faults": []}


def completed(config: SchedulerConfiguration) -> Json:
    """The configuration with every default filled in: as YAML, and its plugins by profile and
    extension point."""
    tree = without_secrets(config.completed())
    return {
        "completed": yaml.safe_dump(tree, sort_keys=False, allow_unicode=True),
        "profiles": [
            {
                "name": profile.scheduler_name,
                "percentage": profile.percentage_of_nodes_to_score,
                "points": [
                    {
                        "point": point,
                        "plugins": [
                            {"name": ref.name, "weight": ref.weight if point == "score" else None}
                            for ref in refs
                        ],
                    }
                    for point, refs in profile.plugins.items()
                ],
            }
            for profile in config.profiles
        ],
    }


def history(run: SchedulerRun) -> list[Json]:
    """The latest changes, newest first."""
    return [
        {
            "version": entry.detail.get("version", 0),
            "by": entry.username,
            "at": entry.at.timestamp(),
            "comment": entry.comment,
            "outcome": entry.outcome,
            "outcome_label": entry.get_outcome_display(),
            "message": entry.message,
            "diff": entry.detail.get("diff", ""),
        }
        for entry in _changes(run)[:HISTORY]
    ]


def last_change(run: SchedulerRun) -> Json:
    """``changed_by`` and ``changed_at`` (seconds since the epoch); of a run's first version nobody
    and None."""
    entry = _changes(run).first()
    if entry is None:
        return {"changed_by": "", "changed_at": None}
    return {"changed_by": entry.username, "changed_at": entry.at.timestamp()}


def _changes(run: SchedulerRun) -> Any:
    return AuditEntry.objects.filter(run=run, verb=AuditEntry.Verb.CHANGE_CONFIG).order_by("-id")


def _shown(text: str) -> str:
    hidden = hide_secrets(text)
    return _NOT_SHOWN if hidden is None else hidden


# --- the worker's side ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Wish:
    """A configuration that a run shall use."""

    version: int
    text: str


def wished(run_id: int) -> Wish:
    """The latest one.

    Raises:
        SchedulerRun.DoesNotExist: the run is gone.
    """
    found = SchedulerRun.objects.values_list("config_version", "config").get(pk=run_id)
    return Wish(*found)


def applied(
    run_id: int, wish: Wish, *, fence: leases.Fence | None, publisher: Publisher | None = None
) -> None:
    """The scheduler uses it from now on.

    Raises:
        FencedError: the lease is another's by now; nothing was written.
    """
    columns = {"applied_config": wish.text, "applied_config_version": wish.version}
    _answer(run_id, wish, columns, "", fence, publisher)


def refused(
    run_id: int,
    wish: Wish,
    message: str,
    *,
    fence: leases.Fence | None,
    publisher: Publisher | None = None,
) -> None:
    """The scheduler cannot use it, and goes on with what it has. Passwords that ``message`` quotes
    from the text are kept from rows, frames and the audit.

    Raises:
        FencedError: the lease is another's by now; nothing was written.
    """
    _answer(run_id, wish, {}, in_text_without_userinfo(message), fence, publisher)


def _answer(
    run_id: int,
    wish: Wish,
    columns: Json,
    message: str,
    fence: leases.Fence | None,
    publisher: Publisher | None,
) -> None:
    with transaction.atomic():
        if fence is not None:
            fence.check()
        run = commits.next_commit(run_id, **columns)
        # What was wished for meanwhile has an answer of its own.
        SchedulerRun.objects.filter(pk=run_id, config_version=wish.version).update(
            config_error=message
        )
        run.refresh_from_db(fields=["config_error"])
        audit.settle_config(run_id, wish.version, message)
        transaction.on_commit(lambda: runs.publish(run, publisher))
