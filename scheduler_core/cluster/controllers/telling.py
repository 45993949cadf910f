"""Events that controllers write about the objects they look after."""

from __future__ import annotations

from scheduler_core.ports import Json

from ..objects import name_of, namespace_of, uid_of
from ..sandbox import ActingView

__all__ = ["tell"]


def tell(view: ActingView, about: Json, reason: str, note: str, *, warning: bool = False) -> None:
    """Write an Event that regards `about`; a store that cannot is no reason to stop."""
    view.emit_event(
        {
            "apiVersion": about["apiVersion"],
            "kind": about["kind"],
            "namespace": namespace_of(about),
            "name": name_of(about),
            "uid": uid_of(about),
        },
        type="Warning" if warning else "Normal",
        reason=reason,
        action=reason,
        note=note,
        reporting_controller=view.actor,
    )
