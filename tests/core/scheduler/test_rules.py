"""Each rule of queue, cache and binding cycle (kube-scheduler 1.36) has a named case somewhere.

The table says where, so that a rule cannot lose its test unnoticed. A case is ``file::test`` or
``file::test[id]``; files are below tests/.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.rule_table import Rules, all_cases, missing

TESTS = Path(__file__).parents[2]

BACKEND, SCHEDULER, PLUGINS = "core/backend", "core/scheduler", "plugins"
BACKOFF = f"{BACKEND}/test_backoff.py"
PLACES = f"{BACKEND}/test_queue_places.py"
EVENTS = f"{BACKEND}/test_queue_events.py"
UPDATES = f"{BACKEND}/test_queue_updates.py"
CHANGES = f"{BACKEND}/test_object_changes.py"
HANDLERS = f"{BACKEND}/test_eventhandlers.py"
HINTS = f"{BACKEND}/test_hints.py"
NOMINATOR = f"{BACKEND}/test_nominator.py"
CACHE = f"{BACKEND}/test_cache.py"
CYCLE = f"{SCHEDULER}/test_cycle.py"
BINDING = f"{SCHEDULER}/test_binding_rules.py"
TABLE = f"{SCHEDULER}/test_hint_table.py"
PREEMPTION = f"{PLUGINS}/test_default_preemption.py"

#: (section, rule) -> cases
RULES: Rules = {
    "4.2 backoff": {
        "doubles": [f"{BACKOFF}::test_duration[second]", f"{BACKOFF}::test_duration[fourth]"],
        "is at most the maximum": [f"{BACKOFF}::test_duration[fifth-is-the-maximum]"],
        "counts errors instead of rejections": [
            f"{BACKOFF}::test_duration[errors-count-instead-of-rejections]"
        ],
        "a rejection ends a row of errors, the other count never resets": [
            f"{PLACES}::test_a_rejection_ends_a_row_of_errors_and_keeps_its_own_count"
        ],
        "nothing failed, no backoff": [f"{BACKOFF}::test_duration[never-failed]"],
        "its end is cut to the second": [
            f"{BACKOFF}::test_is_backing_off_after_one_failure[end-is-cut-to-the-second]"
        ],
        "that second belongs to it": [
            f"{BACKOFF}::test_is_backing_off_after_one_failure[the-second-of-its-end-belongs-to-it]"
        ],
        "moves to activeQ on whole seconds": [f"{PLACES}::test_backoff_ends_on_whole_seconds"],
        "sweep after five minutes, every 30 seconds": [
            f"{PLACES}::test_pods_are_swept_after_five_minutes_at_the_next_30_seconds",
            f"{PLACES}::test_exactly_five_minutes_are_not_too_long",
            f"{PLACES}::test_the_limit_can_be_set",
        ],
        "an idle scheduler takes a rejected pod early": [
            f"{PLACES}::test_an_idle_scheduler_takes_a_rejected_pod_early"
        ],
        "but never an error": [f"{PLACES}::test_an_error_is_never_taken_early"],
    },
    "4.3 after a failed attempt": {
        "the timestamp is now": [f"{PLACES}::test_the_timestamp_is_the_re_entry"],
        "no plugin recorded: error backoff": [f"{PLACES}::test_an_error_backs_off"],
        "or activeQ where the backoff is over": [
            f"{PLACES}::test_an_error_that_took_longer_than_its_backoff_goes_to_activeq"
        ],
        "events in flight are replayed, one says Queue": [
            f"{EVENTS}::test_an_event_with_queue_sends_it_to_backoffq"
        ],
        "else it is unschedulable": [
            f"{EVENTS}::test_other_events_leave_it_unschedulable[hint-skips]",
            f"{PLACES}::test_a_rejected_pod_waits_for_an_event",
        ],
        "done drops what was in flight": [f"{EVENTS}::test_done_ends_the_memory"],
        "after Permit nothing is kept": [
            f"{BINDING}::test_events_after_permit_are_not_kept_for_the_pod"
        ],
    },
    "4.4 updates of a waiting pod": {
        "in flight: stored as an event of each kind": [
            f"{EVENTS}::test_an_update_of_the_pod_counts_by_the_hints"
        ],
        "in activeQ or backoffQ: replaced, its place fixed": [
            f"{UPDATES}::test_the_pod_is_replaced_where_it_is[active]",
            f"{UPDATES}::test_an_update_may_change_the_place_in_activeq",
            f"{UPDATES}::test_an_update_may_change_the_place_in_backoffq",
        ],
        "unschedulable: hints decide": [
            f"{UPDATES}::test_hints_decide_for_an_unschedulable_pod[queue]",
            f"{UPDATES}::test_hints_decide_for_an_unschedulable_pod[skip]",
        ],
        "per kind": [f"{UPDATES}::test_the_first_kind_of_change_that_queues_moves_it_once"],
        "unknown: added": [f"{UPDATES}::test_an_unknown_pod_is_added"],
        "the same resourceVersion is ignored": [
            f"{HANDLERS}::test_an_update_with_the_same_resource_version_is_ignored"
        ],
        "UpdatePodLabel": [f"{CHANGES}::test_pod_changes[label]"],
        "UpdatePodScaleDown": [
            f"{CHANGES}::test_pod_changes[request-lower]",
            f"{CHANGES}::test_pod_changes[request-gone]",
        ],
        "UpdatePodSchedulingGatesEliminated": [
            f"{CHANGES}::test_pod_changes[last-gate-gone]",
            f"{CHANGES}::test_pod_changes[one-of-two-gates-gone]",
        ],
        "UpdatePodToleration": [f"{CHANGES}::test_pod_changes[toleration]"],
        "UpdatePodGeneratedResourceClaim": [f"{CHANGES}::test_generated_resource_claims"],
        "none of these: a plain Update": [f"{CHANGES}::test_pod_changes[nothing-plain-update]"],
        "UpdateNodeTaint": [
            f"{CHANGES}::test_node_changes[taint]",
            f"{CHANGES}::test_uncordoning_counts_as_a_taint_change",
        ],
        "UpdateNodeAllocatable": [f"{CHANGES}::test_node_changes[allocatable]"],
        "UpdateNodeLabel": [f"{CHANGES}::test_node_changes[label]"],
        "UpdateNodeCondition": [f"{CHANGES}::test_node_changes[condition]"],
        "UpdateNodeAnnotation": [f"{CHANGES}::test_node_changes[annotation]"],
        "UpdateNodeDeclaredFeature": [f"{CHANGES}::test_node_changes[feature]"],
        "several at once": [f"{CHANGES}::test_node_changes[several]"],
        "none: nobody moves": [f"{HANDLERS}::test_a_heartbeat_moves_nobody"],
        "AssignedPodDelete: a bound pod left": [f"{HANDLERS}::test_its_deletion_makes_room"],
        "AssignedPodDelete: an assumed pod was forgotten": [
            f"{HANDLERS}::test_one_that_does_not_wait_is_forgotten_at_once",
            f"{BINDING}::test_others_hear_of_the_room_and_the_pod_that_failed_does_not",
        ],
        "AssignedPodDelete: a nomination went, for equal and lower priority": [
            f"{HANDLERS}::test_it_goes[witness-of-equal-priority]",
            f"{HANDLERS}::test_it_goes[witness-of-higher-priority]",
        ],
        "AssignedPodAdd: an own pod was bound": [
            f"{HANDLERS}::test_binding_confirms_the_assumed_pod"
        ],
    },
    "4.5 moving on events": {
        "nobody registered it": [f"{EVENTS}::test_an_event_that_nobody_registered_moves_nothing"],
        "gated pods: only if the gate registered it": [
            f"{EVENTS}::test_an_event_that_the_gate_did_not_register_is_not_for_them[wildcard]",
            f"{EVENTS}::test_an_event_that_the_gate_registered_asks_it_again",
        ],
        "only plugins that rejected the pod are asked": [
            f"{EVENTS}::test_only_pods_of_interested_plugins_are_asked_about",
            f"{HINTS}::test_strategy[another-plugin-rejected-it]",
        ],
        "all Skip: it stays": [f"{EVENTS}::test_a_hint_decides[skip-stays]"],
        "Queue of a pending plugin: activeQ": [
            f"{EVENTS}::test_a_pending_plugin_sends_the_pod_to_activeq_at_once"
        ],
        "Queue while backing off: backoffQ": [
            f"{EVENTS}::test_a_hint_decides[queue-while-backing-off]"
        ],
        "Queue after it: activeQ": [f"{EVENTS}::test_a_hint_decides[queue-after-backoff]"],
        "a hint that fails is Queue": [f"{HINTS}::test_strategy[a-hint-that-raises-queues]"],
        "no plugin recorded is Queue": [f"{HINTS}::test_strategy[no-plugin-recorded]"],
        "wildcard events always Queue": [f"{HINTS}::test_wildcard_events[timeout]"],
        "unless aimed at another pod": [f"{HINTS}::test_wildcard_events[aimed-at-another-pod]"],
        "Pod takes AssignedPod and UnschedulablePod": [
            f"{HINTS}::test_matching[Pod-takes-AssignedPod]",
            f"{HINTS}::test_matching[Pod-takes-UnschedulablePod]",
        ],
        "* takes every resource": [f"{HINTS}::test_matching[any-resource]"],
        "actions overlap": [f"{HINTS}::test_matching[other-action]"],
        "and have no bits above the registered ones": [
            f"{HINTS}::test_matching[bits-above-the-registered-ones]"
        ],
        "remembered while a pod is in flight": [
            f"{EVENTS}::test_nothing_is_remembered_while_nobody_is_in_flight"
        ],
        "Node/Add brings Node/UpdateNodeTaint": [
            f"{HINTS}::test_node_add_brings_node_taint_with_always_queue[Add-alone-gets-it]",
            f"{TABLE}::test_who_hears_of_taints_although_it_did_not_ask",
        ],
        "SchedulingGates": [f"{TABLE}::test_hint[gates: its own last]"],
        "NodeUnschedulable": [f"{TABLE}::test_hint[cordon: opened]"],
        "NodeName": [f"{TABLE}::test_hint[name: any node]"],
        "TaintToleration": [f"{TABLE}::test_hint[taints: gone]"],
        "NodeAffinity": [f"{TABLE}::test_hint[affinity: matches now]"],
        "NodePorts": [f"{TABLE}::test_hint[ports: its port is free]"],
        "NodeResourcesFit": [f"{TABLE}::test_hint[fit: a pod left its node]"],
        "VolumeRestrictions": [f"{PLUGINS}/test_volume_restrictions.py::test_hints"],
        "NodeVolumeLimits": [f"{PLUGINS}/test_node_volume_limits.py::test_hints"],
        "VolumeBinding": [f"{PLUGINS}/test_volume_binding.py::test_hints"],
        "VolumeZone": [f"{PLUGINS}/test_volume_zone.py::test_hints"],
        "PodTopologySpread": [
            f"{PLUGINS}/test_pod_topology_spread.py::test_hint_after_pod_change",
            f"{PLUGINS}/test_pod_topology_spread.py::test_hint_after_node_change",
        ],
        "InterPodAffinity": [
            f"{PLUGINS}/test_inter_pod_affinity.py::test_hint_after_pod_change",
            f"{PLUGINS}/test_inter_pod_affinity.py::test_hint_after_node_change",
        ],
        "DefaultPreemption": [f"{PREEMPTION}::test_hints"],
        "DynamicResources": [f"{PLUGINS}/test_dynamic_resources.py::test_hints"],
        "NodeDeclaredFeatures": [f"{PLUGINS}/test_node_declared_features.py::test_hints"],
        "Extender": [
            "core/extender/test_filter_rules.py"
            "::test_any_event_may_help_a_pod_that_an_extender_rejected"
        ],
    },
    "4.6 activation and nominator": {
        "past its backoff": [f"{PLACES}::test_it_goes_to_activeq_past_its_backoff[backing-off]"],
        "PreEnqueue still holds": [f"{PLACES}::test_gates_still_hold_an_unschedulable_pod"],
        "except from backoffQ": [f"{PLACES}::test_gates_are_not_asked_for_a_pod_from_backoffq"],
        "in flight: a wildcard event for it": [
            f"{PLACES}::test_a_pod_in_flight_comes_back_to_backoffq",
            f"{HINTS}::test_wildcard_events[aimed-at-this-pod]",
        ],
        "pods to activate, after a successful scheduling cycle": [
            f"{BINDING}::test_pods_that_plugins_want_to_be_activated"
            "[after a successful scheduling cycle]"
        ],
        "and after a successful binding cycle": [
            f"{BINDING}::test_pods_that_plugins_want_to_be_activated"
            "[after a successful binding cycle]"
        ],
        "nominated by its status, on entry": [
            f"{UPDATES}::test_a_new_pods_nomination_is_taken_from_its_status"
        ],
        "by preemption": [f"{NOMINATOR}::test_add[override]"],
        "by updates": [f"{UPDATES}::test_an_update_in_the_queue_changes_it"],
        "an update without one keeps that in memory": [
            f"{NOMINATOR}::test_update[neither-carries-one-memory-stays]"
        ],
        "gone on assume": [f"{PREEMPTION}::test_a_pod_of_higher_priority_takes_the_room"],
        "gone on delete": [f"{UPDATES}::test_a_deleted_pod_loses_it"],
        "gone on bind": [f"{HANDLERS}::test_a_nominated_pod_that_is_bound_is_no_longer_nominated"],
        "a pod that is gone or bound is not added": [
            f"{NOMINATOR}::test_a_pod_that_is_gone_or_bound_is_not_nominated[gone]",
            f"{NOMINATOR}::test_a_pod_that_is_gone_or_bound_is_not_nominated[bound]",
        ],
    },
    "5.1 pod states": {
        "assumed: counted on its node": [f"{CACHE}::test_an_assumed_pod_counts_on_its_node"],
        "the watch confirms it": [f"{CACHE}::test_the_watch_confirms_an_assumed_pod"],
        "on another node: moved": [f"{CACHE}::test_a_pod_bound_elsewhere_than_assumed_is_moved"],
        "updated": [f"{CACHE}::test_update_replaces_the_pod_and_its_requests"],
        "removed": [f"{CACHE}::test_an_assumed_pod_may_be_removed"],
        "forgotten": [f"{CACHE}::test_forgetting_takes_the_pod_off_its_node"],
        "forgetting one that is gone is no error": [
            f"{CACHE}::test_forgetting_a_pod_that_is_gone_is_no_error"
        ],
        "never expires": [
            f"{SCHEDULER}/test_traps_queue.py"
            "::test_trap_24_an_assumed_pod_stays_until_it_is_confirmed_or_forgotten"
        ],
        "... is in the cache, so can't be assumed": [
            f"{CACHE}::test_what_contradicts_the_cache_is_refused_and_changes_nothing"
            "[assume-a-known-pod]"
        ],
        "... wasn't assumed so cannot be forgotten": [
            f"{CACHE}::test_what_contradicts_the_cache_is_refused_and_changes_nothing"
            "[forget-a-bound-pod]"
        ],
        "deleted while it waits on Permit: rejected": [
            f"{CYCLE}::test_a_pod_deleted_while_it_waits_is_let_go"
        ],
        "deleted otherwise: forgotten at once": [
            f"{HANDLERS}::test_one_that_does_not_wait_is_forgotten_at_once"
        ],
        "an unknown node is a ghost": [f"{CACHE}::test_a_pod_on_an_unknown_node_makes_a_ghost"],
        "which is not in the snapshot": [
            f"{BACKEND}/test_snapshot.py::test_ghosts_are_not_in_the_snapshot"
        ],
        "a removed node stays one until its pods are gone": [
            f"{CACHE}::test_a_removed_node_stays_a_ghost_until_its_pods_are_gone"
        ],
        "pods are known by uid": [f"{HANDLERS}::test_a_namesake_with_another_uid_is_another_pod"],
        "a pod does not change its node": [
            f"{CACHE}::test_what_contradicts_the_cache_is_refused_and_changes_nothing"
            "[update-on-another-node]"
        ],
    },
    "6 Reserve, Permit, binding cycle": {
        "extension points run in order": [
            f"{CYCLE}::test_extension_points_run_in_the_references_order"
        ],
        "Reserve fails: Unreserve of all, in reverse": [
            f"{CYCLE}::test_unreserve_runs_for_all_in_reverse_after_a_failed_reserve"
        ],
        "Reserve rejects: N is 1": [
            f"{CYCLE}::test_a_failed_cycle_says_who_and_why_and_requeues[Reserve rejects]"
        ],
        "running Reserve plugin ...": [
            f"{CYCLE}::test_a_failed_cycle_says_who_and_why_and_requeues[Reserve raises]"
        ],
        "Permit rejects: stop": [
            f"{BINDING}::test_permit_stops_at_a_rejection_also_after_a_wait",
            f"{CYCLE}::test_a_failed_cycle_says_who_and_why_and_requeues[Permit rejects]",
        ],
        "Permit waits: go on with the rest": [f"{BINDING}::test_permit_goes_on_after_a_wait"],
        "15 minutes at most": [f"{CYCLE}::test_permit_waits_at_most_fifteen_minutes"],
        "running Permit plugin ...": [
            f"{CYCLE}::test_a_failed_cycle_says_who_and_why_and_requeues[Permit raises]"
        ],
        "a timer for each plugin, the first rejects": [
            f"{CYCLE}::test_all_waiting_plugins_must_allow_and_the_shortest_timer_wins"
        ],
        "rejected due to timeout after waiting ...": [
            f"{CYCLE}::test_a_wait_ends_at_its_deadline_with_the_references_words"
        ],
        "all of them must allow": [f"{CYCLE}::test_a_waiting_pod_holds_its_node_until_allowed"],
        "Preempt is an error": [f"{CYCLE}::test_a_preempted_wait_is_an_error_and_tried_again"],
        "deletion ends the wait": [f"{CYCLE}::test_a_pod_deleted_while_it_waits_is_let_go"],
        "PreBindPreFlight Skip: left out of PreBind": [
            f"{BINDING}::test_pre_bind_leaves_out_who_has_nothing_to_do"
        ],
        "anything else is an error": [
            f"{BINDING}::test_a_pre_flight_that_rejects_is_an_error_too",
            f"{CYCLE}::test_a_failed_binding_gives_the_node_back_and_requeues"
            "[PreBindPreFlight raises]",
        ],
        "nominated where PreBind has work": [
            f"{BINDING}::test_what_nominates_a_pod_on_its_way[PreBind has work]"
        ],
        "or the pod waits": [
            f"{BINDING}::test_what_nominates_a_pod_on_its_way[the pod waits on Permit]"
        ],
        "a failure to write that is only logged": [
            f"{BINDING}::test_a_nomination_that_cannot_be_written_stops_nothing"
        ],
        "a wait that was rejected: N is 1, the plugin recorded": [
            f"{BINDING}::test_a_waiting_pod_that_a_plugin_turns_down_is_unschedulable_by_that_plugin"
        ],
        "done before PreBind": [f"{BINDING}::test_events_after_permit_are_not_kept_for_the_pod"],
        "running PreBind plugin ...": [
            f"{CYCLE}::test_a_failed_binding_gives_the_node_back_and_requeues[PreBind fails]"
        ],
        "preempted meanwhile": [
            f"{PREEMPTION}::test_a_pod_in_pre_bind_is_cancelled_instead_of_deleted"
        ],
        "an extender binds": [
            "core/extender/test_bind_rules.py::test_bind_replaces_the_bind_plugins"
        ],
        "Bind plugins until one does not Skip": [
            f"{BINDING}::test_bind_plugins_are_asked_until_one_does_not_skip"
        ],
        "the event Scheduled": [f"{CYCLE}::test_a_pod_is_bound_and_told"],
        "a failure gives the node back": [
            f"{CYCLE}::test_a_failed_binding_gives_the_node_back_and_requeues[Bind fails]"
        ],
        "others hear of it, the rejected pod does not": [
            f"{BINDING}::test_others_hear_of_the_room_and_the_pod_that_failed_does_not"
        ],
        "the nomination is cleared": [
            f"{BINDING}::test_what_nominates_a_pod_on_its_way[a failed binding clears it]"
        ],
        "a bind error is an error: SchedulerError, error backoff": [
            f"{BINDING}::test_a_failed_binding_goes_to_error_backoff"
        ],
    },
}


@pytest.mark.parametrize("cases", all_cases(RULES))
def test_the_rule_has_a_named_case(cases: list[str]) -> None:
    assert [problem for case in cases if (problem := missing(case))] == []


@pytest.mark.parametrize("number", range(1, 26))
def test_the_trap_has_a_named_case(number: int) -> None:
    files = (TESTS / SCHEDULER).glob("test_traps_*.py")
    parts = [node for file in files for node in ast.parse(file.read_text(encoding="utf-8")).body]
    names = [n.name for n in parts if isinstance(n, ast.FunctionDef | ast.ClassDef)]
    wanted = (f"test_trap_{number:02}_", f"TestTrap{number:02}")
    assert any(name.startswith(wanted) for name in names)
