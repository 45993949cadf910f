"""Which pods a person has to approve, and under which terms: the arguments of ManualApproval.

Apart from the plugin, because the configuration is checked by them too.
"""

from scheduler_core.approval_rules.policies import Asked, Demand, Policy, Rules
from scheduler_core.approval_rules.reading import LONGEST_WAIT, read_rules
from scheduler_core.approval_rules.windows import WeeklyWindow, next_opening

__all__ = [
    "LONGEST_WAIT",
    "Asked",
    "Demand",
    "Policy",
    "Rules",
    "WeeklyWindow",
    "next_opening",
    "read_rules",
]
