"""This scheduler's plugins as the extender of another kube-scheduler (extender API version 1).

``args`` reads the requests, ``judge`` decides on the scheduler thread and writes the answers. The
other side of the same API, calls to extenders, is ``scheduler_core.extender``.
"""

from __future__ import annotations

from scheduler_core.extender_service.args import (
    BindingArgs,
    ExtenderArgs,
    InvalidArgs,
    PreemptionArgs,
    read_binding,
    read_nodes,
    read_preemption,
)
from scheduler_core.extender_service.given_nodes import GivenNodes
from scheduler_core.extender_service.judge import Judge

__all__ = [
    "BindingArgs",
    "ExtenderArgs",
    "GivenNodes",
    "InvalidArgs",
    "Judge",
    "PreemptionArgs",
    "read_binding",
    "read_nodes",
    "read_preemption",
]
