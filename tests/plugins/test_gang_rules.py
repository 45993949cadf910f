"""Each rule of gangs has a named case somewhere: of Permit in the framework (kube-scheduler 1.36),
of scheduler-plugins' coscheduling, and of Kubernetes' native gangs.

The numbers are those of the sections of the reference that this is built to (gang.md), the rules
stand in its order. The table says where, so that a rule cannot lose its test unnoticed and a reader
can see that none is missing. What is left out on purpose is named, with its reason, where it stands
in the reference.
"""

from __future__ import annotations

import pytest

from tests.rule_table import Rules, all_cases, missing

CORE = "core/scheduler"
WAIT = f"{CORE}/test_waiting_pod.py"
CYCLE = f"{CORE}/test_cycle.py"
BINDING = f"{CORE}/test_binding_rules.py"
METRICS = "core/metrics/test_scheduler_metrics.py"

COSCHEDULING = "plugins/test_coscheduling.py"
CRD = f"{COSCHEDULING}::TestTheCustomResource"
SORT = f"{COSCHEDULING}::TestQueueSort"
PRE_FILTER = f"{COSCHEDULING}::TestPreFilter"
PERMIT = f"{COSCHEDULING}::TestPermit"
POST_FILTER = f"{COSCHEDULING}::TestPostFilter"
UNRESERVE = f"{COSCHEDULING}::TestUnreserve"
EVENTS = f"{COSCHEDULING}::TestEvents"
IN_SCHEDULER = "plugins/test_gangs_in_the_scheduler.py"
STATUS = "core/cluster/test_pod_group_status.py"

NATIVE = "plugins/gang_scheduling/test_gang_scheduling.py"
OBJECTS = "core/api/test_native_groups.py"
REFUSED = f"{OBJECTS}::test_what_is_refused"
GROUP = f"{CORE}/test_pod_group_cycle.py"
FAILED = f"{CORE}/test_pod_group_failure.py"
BOUND = f"{CORE}/test_pod_group_binding.py"
GROUP_METRICS = f"{CORE}/test_pod_group_metrics.py"
GROUP_PRIORITY = "core/cluster/test_pod_group_priority.py"
APPROVAL = "plugins/test_manual_approval.py"

PERMIT_IN_THE_FRAMEWORK: Rules = {
    "1 Permit": {
        "runs at the end of the scheduling cycle, after Reserve": [
            f"{CYCLE}::test_extension_points_run_in_the_references_order"
        ],
        "Success: the next plugin": [
            f"{WAIT}::test_what_permit_comes_to[Success: the next plugin]"
        ],
        "rejected: stop": [
            f"{WAIT}::test_what_permit_comes_to[rejected: stop]",
            f"{WAIT}::test_what_permit_comes_to[rejected for good: stop]",
            f"{WAIT}::test_what_permit_comes_to[an error: stop]",
        ],
        "rejected: unreserve": [
            f"{BINDING}::test_permit_stops_at_a_rejection_also_after_a_wait",
        ],
        "Wait is remembered per plugin, the others still run": [
            f"{WAIT}::test_what_permit_comes_to"
            "[Wait is remembered per plugin, the others still run]",
            f"{WAIT}::test_what_permit_comes_to[a rejection after a Wait counts]",
        ],
        "the timeout is at most 15 minutes": [
            f"{WAIT}::test_what_permit_comes_to[a timeout is cut to 15 minutes]",
            f"{WAIT}::test_what_permit_comes_to[15 minutes may be asked for]",
            f"{CYCLE}::test_permit_waits_at_most_fifteen_minutes",
        ],
    },
    "1 WaitingPod": {
        "one timer per waiting plugin": [
            f"{WAIT}::test_what_ends_a_wait[one timer per plugin: that of A has gone with it]",
            f"{WAIT}::test_what_ends_a_wait[then that of B]",
        ],
        "Allow removes that plugin": [
            f"{WAIT}::test_what_ends_a_wait[Allow takes that plugin off the list]",
            f"{WAIT}::test_what_ends_a_wait[Allow twice is once]",
        ],
        "the pod proceeds only when none is left": [
            f"{WAIT}::test_what_ends_a_wait[it proceeds when none is left]",
            f"{CYCLE}::test_a_waiting_pod_holds_its_node_until_allowed",
        ],
        "Reject ends it Unschedulable at once": [
            f"{WAIT}::test_what_ends_a_wait[Reject ends it Unschedulable at once]",
            f"{WAIT}::test_what_ends_a_wait[also by a plugin that has allowed]",
            f"{WAIT}::test_what_its_owner_reads[a rejected pod is unschedulable]",
        ],
        "a timeout is a Reject by that plugin, in these words": [
            f"{CYCLE}::test_a_wait_ends_at_its_deadline_with_the_references_words"
        ],
        "the shortest remaining timer wins": [
            f"{WAIT}::test_what_ends_a_wait[the shortest timer wins, and says who and how long]",
            f"{CYCLE}::test_all_waiting_plugins_must_allow_and_the_shortest_timer_wins",
        ],
        "Allow with an unknown plugin name is a no-op": [
            f"{WAIT}::test_what_ends_a_wait[Allow by an unknown plugin changes nothing]"
        ],
        "Preempt ends with Error, so the pod is retried": [
            f"{WAIT}::test_what_ends_a_wait[Preempt ends it with an Error]",
            f"{WAIT}::test_what_its_owner_reads[a preempted one is an error, and retried]",
        ],
        "pending plugins are listed": [f"{WAIT}::test_what_ends_a_wait[it waits]"],
        "WaitOnPermit: the binding cycle begins when the wait is over": [
            f"{WAIT}::test_the_binding_cycle_begins_when_the_wait_is_over"
        ],
        "the assumed pod holds node resources meanwhile": [
            f"{WAIT}::test_the_assumed_pod_holds_its_nodes_resources_meanwhile"
        ],
        "metric permit_wait_duration_seconds": [f"{METRICS}::test_waits_at_permit"],
    },
}

COSCHEDULING_RULES: Rules = {
    "2 PodGroup": {
        "scheduling.x-k8s.io/v1alpha1, short names pg and pgs": [f"{CRD}::test_names"],
        "namespaced, status subresource": [
            f"{CRD}::test_it_is_namespaced_and_its_status_is_a_subresource"
        ],
        "spec.minMember: int32 >= 1": [
            f"{CRD}::test_spec[minMember is at least 1]",
            f"{CRD}::test_spec[minMember is an int32]",
        ],
        "spec.minResources: ResourceList": [
            f"{CRD}::test_spec[minResources is a ResourceList]",
            f"{CRD}::test_spec[of quantities]",
        ],
        "spec.scheduleTimeoutSeconds: int32": [
            f"{CRD}::test_spec[scheduleTimeoutSeconds is an int32]",
        ],
        "status: phases, occupiedBy, counts, scheduleStartTime": [f"{CRD}::test_status"],
        "members carry the label": [f"{CRD}::test_membership_is_a_label"],
        "of the same namespace": [
            f"{PERMIT}::test_two_gangs_of_one_name_in_two_namespaces_are_two"
        ],
    },
    "2 arguments": {
        "names and defaults: 60, 0 (off), 10": [
            f"{COSCHEDULING}::test_default_arguments",
            f"{POST_FILTER}::test_backoff_is_off_by_default",
        ],
        "negative values are refused": [
            f"{COSCHEDULING}::test_bad_arguments[negative-wait]",
            f"{COSCHEDULING}::test_bad_arguments[negative-backoff]",
            f"{COSCHEDULING}::test_bad_arguments[negative-percentage]",
        ],
        "a percentage above 100 is refused": [f"{COSCHEDULING}::test_bad_arguments[percentage]"],
    },
    "2 extension points": {
        point: [f"{COSCHEDULING}::test_extension_points[{point}]"]
        for point in (
            "QueueSort",
            "PreFilter",
            "PostFilter",
            "Permit",
            "Reserve",
            "EventsToRegister",
        )
    }
    | {
        "events: Pod Add, PodGroup Add and Update": [
            f"{EVENTS}::test_siblings_and_the_group_wake_a_member"
        ],
    },
    "2 QueueSort": {
        "higher pod priority first": [f"{SORT}::test_order[priority]"],
        "then the group's last failure time, until a later Permit success clears it": [
            f"{SORT}::test_a_failed_group_goes_behind_younger_ones_until_it_succeeds"
        ],
        "else the group's creationTimestamp": [f"{SORT}::test_order[older-group]"],
        "no group: the pod's initial attempt time": [f"{SORT}::test_order[single-by-attempt]"],
        "group missing: the pod's initial attempt time": [
            f"{SORT}::test_order[group-missing-is-single]"
        ],
        "tie: namespace/podname": [
            f"{SORT}::test_order[name-in-group]",
            f"{SORT}::test_order[namespace-first]",
        ],
        "a failed group does not block younger ones": [
            f"{POST_FILTER}::test_it_stamps_the_failure_time"
        ],
    },
    "2 PreFilter": {
        "fails as UnschedulableAndUnresolvable": [f"{PRE_FILTER}::test_too_few_siblings"],
        "no label: pass": [f"{PRE_FILTER}::test_pods_without_a_gang_pass[no-label]"],
        "PodGroup not found: pass": [f"{PRE_FILTER}::test_pods_without_a_gang_pass[no-such-group]"],
        "group in backoff: failed recently": [f"{PRE_FILTER}::test_a_gang_in_backoff"],
        "fewer pods than minMember": [
            f"{PRE_FILTER}::test_too_few_siblings",
            f"{PRE_FILTER}::test_members_of_another_namespace_do_not_count",
            f"{PRE_FILTER}::test_members_that_have_ended_do_not_count",
            f"{IN_SCHEDULER}::test_a_gang_that_waits_for_its_last_member",
        ],
        "gated members count as missing": [f"{PRE_FILTER}::test_gated_members_count_as_missing"],
        "minResources against the sum of free resources: resource gap": [
            f"{PRE_FILTER}::test_min_resources[just-enough]",
            f"{PRE_FILTER}::test_min_resources[gap]",
            f"{PRE_FILTER}::test_min_resources[nobody-offers-it]",
            f"{PRE_FILTER}::test_an_overcommitted_node_takes_nothing_from_others",
        ],
        "pods of the same group are taken out first": [
            f"{PRE_FILTER}::test_min_resources_does_not_hold_the_gangs_own_pods_against_it"
        ],
        "pods = minMember is added to the request": [
            f"{PRE_FILTER}::test_min_resources_counts_room_for_the_pods_themselves"
        ],
        "success is kept for permitWaitingTimeSeconds": [
            f"{PRE_FILTER}::test_min_resources_that_were_there_are_believed_for_the_permit_time"
        ],
    },
    "2 Permit": {
        "no label: Success": [f"{PERMIT}::test_a_pod_without_a_gang_is_bound_at_once"],
        "label without PodGroup: Unschedulable, PodGroup not found": [
            f"{PERMIT}::test_a_label_without_its_group_is_rejected"
        ],
        "the pod joins the assigned set": [f"{PERMIT}::test_the_same_member_counts_once"],
        "which bound pods are in too": [f"{PERMIT}::test_bound_members_count"],
        "assigned >= minMember: the failure mark is cleared": [
            f"{SORT}::test_a_failed_group_goes_behind_younger_ones_until_it_succeeds"
        ],
        "assigned >= minMember: every waiting pod is allowed, Success": [
            f"{PERMIT}::test_all_or_nothing",
            f"{PERMIT}::test_more_than_min_member_need_not_wait",
            f"{IN_SCHEDULER}::test_a_gang_that_fits_is_bound_at_once",
        ],
        "else Wait": [f"{PERMIT}::test_all_or_nothing"],
        "wait time: the PodGroup's": [f"{PERMIT}::test_how_long_it_waits[of-the-group]"],
        "wait time: else the arguments'": [
            f"{PERMIT}::test_how_long_it_waits[of-the-arguments]",
            f"{PERMIT}::test_how_long_it_waits[zero-is-none]",
        ],
        "wait time: else 60 s": [
            f"{PERMIT}::test_how_long_it_waits[default]",
            f"{PERMIT}::test_how_long_it_waits[zero-in-arguments]",
        ],
        "only the first assigned pod activates the siblings": [
            f"{PERMIT}::test_only_the_first_member_activates_its_siblings"
        ],
    },
    "2 PostFilter": {
        "no group: Unschedulable": [f"{POST_FILTER}::test_a_pod_without_a_gang"],
        "assigned >= minMember: the group is kept": [
            f"{POST_FILTER}::test_a_complete_gang_is_kept"
        ],
        "a small enough share is missing: the group is kept, siblings may still try": [
            f"{POST_FILTER}::test_the_threshold[a-tenth-is-missing]",
            f"{POST_FILTER}::test_the_threshold[as-much-as-allowed]",
            f"{POST_FILTER}::test_the_threshold[never-given-up]",
        ],
        "else all waiting pods are rejected: optimistic rejection in PostFilter": [
            f"{POST_FILTER}::test_the_threshold[two-tenths-are-missing]",
            f"{POST_FILTER}::test_the_threshold[nothing-may-be-missing]",
            f"{POST_FILTER}::test_other_gangs_are_left_alone",
        ],
        "backoff, if it is on": [
            f"{PRE_FILTER}::test_a_gang_in_backoff",
            f"{POST_FILTER}::test_backoff_is_off_by_default",
        ],
        "and enough pods exist": [f"{POST_FILTER}::test_backoff_needs_enough_pods"],
        "the permitted mark is dropped": [f"{POST_FILTER}::test_it_drops_the_permitted_mark"],
        "the failure time is stamped": [f"{POST_FILTER}::test_it_stamps_the_failure_time"],
        "the pod reads that its gang was rejected": [
            f"{POST_FILTER}::test_the_threshold[two-tenths-are-missing]"
        ],
    },
    "2 Reserve and Unreserve": {
        "Reserve does nothing": [f"{UNRESERVE}::test_it_is_idempotent_and_needs_no_reserve"],
        "a timeout cancels the whole group": [
            f"{UNRESERVE}::test_one_expiry_cancels_the_whole_gang"
        ],
        "so does a rejection": [
            f"{UNRESERVE}::test_a_rejection_by_another_plugin_cancels_the_whole_gang"
        ],
        "so does a failed binding": [f"{UNRESERVE}::test_a_failed_binding_cancels_who_still_waits"],
        "the pod leaves the assigned set": [
            f"{UNRESERVE}::test_a_cancelled_gang_starts_from_zero",
            f"{UNRESERVE}::test_members_that_are_being_turned_down_make_no_quorum",
        ],
        "the permitted mark is dropped": [f"{UNRESERVE}::test_the_permitted_mark_is_dropped"],
        "the failure time is stamped": [f"{UNRESERVE}::test_it_stamps_the_failure_time"],
        "a bound pod that is deleted leaves the assigned set": [
            f"{PERMIT}::test_a_deleted_member_counts_no_more"
        ],
    },
    "2 controller": {
        "new: Pending": [f"{STATUS}::test_phase[no members]"],
        "Pending -> Scheduling when pods >= minMember": [
            f"{STATUS}::test_phase[too few]",
            f"{STATUS}::test_phase[enough to schedule]",
        ],
        "which fills occupiedBy": [
            f"{STATUS}::test_occupied_by_is_filled_when_enough_pods_are_there",
            f"{STATUS}::test_occupied_by_stays",
        ],
        "and scheduleStartTime": [f"{STATUS}::test_counts_and_the_start_of_scheduling"],
        "back to Pending if there are fewer": [
            f"{STATUS}::test_a_gang_that_loses_its_members_is_pending_again"
        ],
        "Running when succeeded + running >= minMember": [
            f"{STATUS}::test_phase[one runs]",
            f"{STATUS}::test_phase[enough run]",
            f"{STATUS}::test_phase[one has ended]",
        ],
        "Failed when one failed and failed + running + succeeded >= minMember": [
            f"{STATUS}::test_phase[one has failed]"
        ],
        "Finished when succeeded >= minMember": [
            f"{STATUS}::test_phase[enough have ended]",
            f"{STATUS}::test_a_finished_gang_stays_finished",
        ],
        "stops after 48 h unscheduled": [
            f"{STATUS}::test_a_group_that_is_unscheduled_for_48_hours_is_left_alone",
            # Here it goes on once a member runs all the same.
            f"{STATUS}::test_it_is_taken_up_again_once_a_member_runs",
        ],
        # The reference's forgets the namespace; that is a fault, and not repeated here.
        "members are listed by label, in the group's namespace": [
            f"{STATUS}::test_counts_and_the_start_of_scheduling"
        ],
    },
}

NATIVE_RULES: Rules = {
    "3 Kubernetes 1.35": {
        # Pod by pod, by spec.workloadRef: not offered. It is said, not half done.
        "its fields and its version are told as unknown": [
            f"{OBJECTS}::test_a_pod_of_1_35_is_in_no_group",
            "core/api/test_objects.py::test_kinds_that_are_not_known"
            "[the native PodGroup of Kubernetes 1.35]",
        ],
    },
    "3 objects of 1.36": {
        "off by default": [f"{NATIVE}::test_it_is_off_unless_a_profile_names_it"],
        "not even watched then": [
            f"{CORE}/test_two_kinds_of_gangs.py"
            "::test_native_pod_groups_are_watched_where_a_profile_has_gang_scheduling[neither]"
        ],
        "pod.spec.schedulingGroup is immutable": [
            f"{OBJECTS}::test_the_group_of_a_pod_is_immutable"
        ],
        "Workload: controllerRef": [f"{REFUSED}[controllerRef has a kind]"],
        "Workload: at most 8 templates, with names of their own": [
            f"{REFUSED}[max 8 templates]",
            f"{REFUSED}[template names are unique]",
        ],
        "policy basic or gang with minCount >= 1": [
            f"{REFUSED}[a policy is needed]",
            f"{REFUSED}[one policy only]",
            f"{REFUSED}[minCount >= 1]",
        ],
        "at most 1 topology constraint": [f"{REFUSED}[max 1 topology constraint]"],
        "at most 4 resourceClaims": [f"{REFUSED}[max 4 resourceClaims]"],
        "disruptionMode Pod or PodGroup": [
            f"{REFUSED}[v1alpha2 disruptionMode Pod or PodGroup]",
            f"{OBJECTS}::test_disruption_modes[v1alpha2 Pod]",
        ],
        "priorityClassName and priority": [
            f"{GROUP_PRIORITY}::test_priority_is_filled_in[the value of its class]",
            f"{GROUP_PRIORITY}::test_what_is_refused[another value given]",
        ],
        "PodGroup: podGroupTemplateRef.workload": [f"{REFUSED}[v1alpha2 template name]"],
        "PodGroup: the copied fields are immutable": [
            f"{OBJECTS}::test_immutable_fields[copied fields]",
            f"{OBJECTS}::test_immutable_fields[1.36: minCount is immutable]",
        ],
        "condition PodGroupScheduled, reason Scheduled": [
            f"{FAILED}::test_the_condition_of_a_group_that_is_scheduled"
        ],
        "reason Unschedulable": [f"{FAILED}::test_the_condition_of_a_group_that_is_not"],
        "reason SchedulerError": [
            f"{GROUP}::test_different_scheduler_names_are_an_error",
            f"{GROUP}::test_an_error_stops_the_others",
        ],
        "condition DisruptionTarget of others stays": [f"{FAILED}::test_conditions_of_others_stay"],
        "resourceClaimStatuses of others stay": [
            f"{FAILED}::test_what_else_is_in_the_status_stays"
        ],
    },
    "3 PreEnqueue": {
        "PodGroup missing: UnschedulableAndUnresolvable": [
            f"{NATIVE}::test_pre_enqueue[PodGroup missing: UnschedulableAndUnresolvable]",
            f"{GROUP}::test_pre_enqueue_gates_until_the_pod_group_is_there",
        ],
        "known pods < minCount: wait for them to appear": [
            f"{NATIVE}::test_pre_enqueue[known pods < minCount: UnschedulableAndUnresolvable]",
            f"{NATIVE}::test_pre_enqueue[policy basic: no quorum]",
            f"{GROUP}::test_pre_enqueue_gates_until_min_count_pods_are_known",
        ],
    },
    "3 Permit": {
        "scheduled < minCount: activate the unscheduled, Wait 5 minutes": [
            f"{NATIVE}"
            "::test_scheduled_below_min_count_waits_five_minutes_and_activates_the_unscheduled",
            f"{BOUND}::test_a_member_alone_at_permit_waits_five_minutes_at_most",
        ],
        "scheduled counts assumed and assigned": [
            f"{NATIVE}::test_bound_pods_count_for_the_quorum",
            f"{NATIVE}::test_a_pod_that_was_bound_after_reserve_counts_once",
        ],
        "else Allow all assumed members": [
            f"{NATIVE}::test_quorum_allows_all_assumed_members",
            f"{BOUND}::test_the_rest_of_the_gang_releases_members_that_wait",
        ],
        "no own backoff": [f"{NATIVE}::test_extension_points[no PreFilter: no backoff of its own]"],
        "no PostFilter": [f"{NATIVE}::test_extension_points[no PostFilter]"],
        "no QueueSort": [
            f"{NATIVE}::test_extension_points[no QueueSort: PrioritySort's order holds]"
        ],
    },
    "3 pod group cycle": {
        "popping any member pulls all queued siblings": [
            f"{GROUP}::test_popping_a_member_pulls_all_queued_siblings",
            f"{GROUP}::test_unschedulable_and_backing_off_siblings_are_pulled_gated_ones_are_not",
        ],
        "by priority, then initial attempt time": [
            f"{GROUP}::test_members_come_by_priority_then_initial_attempt"
        ],
        "all with the same schedulerName, else an error": [
            f"{GROUP}::test_different_scheduler_names_are_an_error"
        ],
        "on one snapshot, later members see earlier ones": [
            f"{GROUP}::test_later_members_see_earlier_ones"
        ],
        "Permit in pod group cycle mode": [
            f"{NATIVE}::test_permit_in_the_group_cycle_neither_activates_nor_allows"
        ],
        "everything is reverted at the end": [
            f"{GROUP}::test_everything_is_taken_back_when_the_group_fails",
            f"{GROUP}::test_a_failed_cycle_leaves_cache_snapshot_and_queue_as_they_were",
        ],
        "schedulable if any pod's Permit returned Success": [
            f"{GROUP}::test_the_group_is_schedulable_if_any_permit_succeeds"
        ],
        "pods that need preemption: waiting for preemption": [
            f"{FAILED}::test_a_group_that_needs_room_waits_for_preemption"
        ],
        "a rejected pod alone does not stop the others": [
            f"{GROUP}::test_a_rejected_pod_alone_does_not_stop_the_others",
            f"{GROUP}::test_a_rejection_at_reserve_counts_as_a_rejection_of_the_pod",
        ],
        "an error does": [f"{GROUP}::test_an_error_stops_the_others"],
    },
    "3 after the cycle": {
        "assumed, reserved and permitted a second time, in normal mode": [
            f"{BOUND}::test_permit_runs_a_second_time_in_normal_mode"
        ],
        "here a Wait really parks the pod": [
            f"{BOUND}::test_a_wait_in_the_second_run_really_parks_the_pod"
        ],
        "each is bound on its own": [f"{BOUND}::test_each_member_is_bound_on_its_own"],
        "failure: backoff only, no event hints": [
            f"{FAILED}::test_failed_members_back_off_and_no_event_hints_wake_them",
            f"{FAILED}::test_backoff_grows_with_every_failure",
        ],
        "failure: condition False": [f"{FAILED}::test_the_condition_of_a_group_that_is_not"],
        "the condition never returns from True to False": [
            f"{FAILED}::test_the_condition_never_goes_back_to_false"
        ],
        "metrics podgroup_*": [
            f"{GROUP_METRICS}::test_a_cycle_of_a_group_is_counted_by_how_it_ended[{result}]"
            for result in ("scheduled", "unschedulable", "error")
        ],
    },
    # Gates of their own, off in 1.36: placements per topology value and PodGroupPostFilter are not
    # built. What is built is what holds while they are off.
    "3 gates that are off": {
        "TopologyAwareWorkloadScheduling: constraints do nothing": [
            f"{FAILED}::test_topology_constraints_do_nothing_while_their_gate_is_off"
        ],
        "WorkloadAwarePreemption: members preempt one by one": [
            f"{FAILED}::test_a_group_that_needs_room_waits_for_preemption",
            f"{FAILED}::test_a_group_that_fails_all_the_same_gives_up_its_nominations",
        ],
    },
    "3 consequence for approvals": {
        "a plugin that always waits makes every native gang unschedulable": [
            f"{BOUND}::test_a_permit_plugin_that_always_waits_makes_every_group_unschedulable"
        ],
        "so ManualApproval is Success in the group cycle": [
            f"{APPROVAL}::test_a_native_gangs_group_cycle_is_not_held_up"
        ],
        "and waits in the second run": [
            f"{BOUND}::test_manual_approval_does_not_block_the_group_and_asks_afterwards"
        ],
    },
    "3 Kubernetes 1.37": {
        "v1beta1 and v1alpha3 are one form": [
            f"{OBJECTS}::test_every_version_gives_the_same_internal_form"
        ],
        "workloadRef replaces podGroupTemplateRef": [
            f"{OBJECTS}::test_misspelt_fields_are_named[an earlier name in v1beta1]",
            f"{OBJECTS}::test_the_builder_writes_the_names_of_the_version",
        ],
        "condition PodGroupInitiallyScheduled": [
            f"{OBJECTS}::test_the_condition_is_named_by_the_version"
        ],
        "disruptionMode is a union": [
            f"{REFUSED}[v1beta1 disruptionMode single or all]",
        ],
        # No CompositePodGroup: a kind of its own, whose behaviour the reference does not tell.
        "fields of composite groups and preemptionPolicy are known": [
            f"{OBJECTS}::test_fields_of_later_versions_are_known"
            "[1.37: parentCompositePodGroupName and preemptionPolicy]",
            f"{OBJECTS}::test_fields_of_later_versions_are_known[1.37: compositePodGroupTemplates]",
        ],
    },
}


@pytest.mark.parametrize(
    "cases", all_cases({**PERMIT_IN_THE_FRAMEWORK, **COSCHEDULING_RULES, **NATIVE_RULES})
)
def test_the_rule_has_a_named_case(cases: list[str]) -> None:
    assert [problem for case in cases if (problem := missing(case))] == []
    assert cases


@pytest.mark.parametrize(
    "case, problem",
    [
        pytest.param("plugins/none.py::test_x", "there is no tests/plugins/none.py", id="no file"),
        pytest.param(f"{WAIT}::test_x", f"{WAIT} has no test_x", id="no test"),
        pytest.param(
            f"{WAIT}::test_what_ends_a_wait[it flies]",
            f"{WAIT}: test_what_ends_a_wait has no case it flies",
            id="no case",
        ),
        pytest.param(
            f"{WAIT}::test_what_permit_comes_to[it waits]",
            f"{WAIT}: test_what_permit_comes_to has no case it waits",
            id="the case of another test",
        ),
    ],
)
def test_the_check_sees_what_is_missing(case: str, problem: str) -> None:
    assert missing(case) == problem
