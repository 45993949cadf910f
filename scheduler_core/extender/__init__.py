"""HTTP extenders: services outside of the scheduler that take part in its decisions.

kube-scheduler 1.36: extender API version 1. ``Extenders`` is what the cycles use.
"""

from __future__ import annotations

from scheduler_core.extender.errors import ExtenderError
from scheduler_core.extender.extenders import EXTENDER, Extenders, Filtered
from scheduler_core.extender.http_extender import HTTPExtender

__all__ = ["EXTENDER", "ExtenderError", "Extenders", "Filtered", "HTTPExtender"]
