"""ManualApproval: pods, or gangs, that need it wait at Permit for people."""

from scheduler_core.plugins.manual_approval.plugin import (
    APPROVAL_KEY,
    REQUESTED_BY,
    REQUIRED,
    ManualApproval,
)

__all__ = ["APPROVAL_KEY", "REQUESTED_BY", "REQUIRED", "ManualApproval"]
