"""What docs/approvals.md, docs/rest.md and docs/webhooks.md promise of approvals, promise by
promise, and the named cases that show it."""

from __future__ import annotations

import pytest

from tests.rule_table import Rules, all_cases, missing

POLICIES = "plugins/test_approval_policies.py"
WHICH = f"{POLICIES}::test_which_pods_need_approval"
WINDOWS = f"{POLICIES}::test_windows"
FAULT = f"{POLICIES}::test_a_fault_names_its_field"
PLUGIN = "plugins/test_manual_approval.py"
CORE = "core/scheduler/test_approvals.py"
GANGS = "core/scheduler/test_gang_approval.py"
DEADLOCK = "core/scheduler/test_gang_deadlock.py"
RELEASED = f"{DEADLOCK}::test_one_of_two_that_hold_each_other_up_is_released"
KINDS = "core/scheduler/test_two_kinds_of_gangs.py"
PERMITS = "dashboard/test_permits.py"
ROWS = "dashboard/test_approval_rules.py"
NAMESAKES = "dashboard/test_gangs_of_one_name.py"
STUCK = "dashboard/test_stuck_gangs.py"
ACCESS = "dashboard/rest/test_access.py"
DECIDE = "dashboard/rest/test_decide.py"
WAITING = "dashboard/rest/test_waiting.py"
THROTTLE = "dashboard/rest/test_throttle.py"
OUTBOX = "dashboard/webhooks/test_outbox.py"
DELIVERY = "dashboard/webhooks/test_delivery.py"
TOLD = f"{OUTBOX}::test_what_a_gang_is_told_to_come_to"

APPROVALS: Rules = {
    "who has to wait": {
        "label or annotation": [
            f"{PLUGIN}::test_who_waits[by-label]",
            f"{PLUGIN}::test_who_waits[by-annotation]",
            f"{PLUGIN}::test_who_waits[another-value-asks-nothing]",
        ],
        "selector": [f"{PLUGIN}::test_who_waits[by-selector]"],
        "a gang as a whole": [
            f"{PLUGIN}::test_gangs[the-group-asks]",
            f"{PLUGIN}::test_gangs[a-sibling-asks]",
        ],
    },
    "policies": {
        "which namespaces": [
            f"{WHICH}[namespace]",
            f"{WHICH}[glob]",
            f"{WHICH}[another-namespace]",
        ],
        "which priorities": [
            f"{WHICH}[from-that-priority-on]",
            f"{WHICH}[below-the-priority]",
            f"{WHICH}[up-to-that-priority]",
            f"{WHICH}[above-the-priority]",
        ],
        "sizes: more than N pods": [
            f"{POLICIES}::TestGangSizes::test_pods_are_those_that_there_are_or_have_to_be",
            f"{WHICH}[a-lone-pod-is-one]",
        ],
        "sizes: more than N GPUs": [
            f"{WHICH}[more-gpus]",
            f"{WHICH}[not-more-gpus]",
            f"{WHICH}[other-gpus]",
            f"{POLICIES}::TestGangSizes::test_gpus_are_the_whole_gangs",
        ],
        "every condition has to hold, the first policy counts": [
            f"{WHICH}[every-condition-has-to-hold]",
            f"{POLICIES}::test_the_first_policy_that_matches_sets_the_terms_and_inherits_the_rest",
        ],
        "how many different approvers": [
            f"{CORE}::TestTwoPersonRule::test_two_different_people_let_it_go",
            f"{CORE}::TestTwoPersonRule::test_the_same_person_twice_counts_once",
            f"{ROWS}::test_two_people_have_to_approve",
            f"{ROWS}::test_two_at_once_are_two",
        ],
        "who may: Django groups, per namespace": [
            f"{ROWS}::test_who_may_is_a_group_per_namespace[one namespace's group]",
            f"{ROWS}::test_only_members_of_the_groups_may_decide",
            f"{ROWS}::test_a_group_alone_is_not_the_permission",
            f"{ROWS}::test_the_permission_may_come_from_the_group",
        ],
        "at the deadline: deny": [f"{CORE}::TestDeadline::test_nobody_decides_and_it_is_denied"],
        "at the deadline: approve": [
            f"{CORE}::TestDeadline::test_nobody_decides_and_it_is_approved_where_the_terms_say_so"
        ],
        "auto-approve windows": [
            f"{CORE}::TestDeadline::test_while_a_window_is_open_nobody_is_asked",
            f"{CORE}::TestDeadline::test_a_window_that_opens_lets_it_go",
            f"{WINDOWS}[past-midnight]",
            f"{WINDOWS}[by-the-clocks-of-its-zone]",
            f"{WINDOWS}[on-the-day-on-which-clocks-change]",
        ],
        "not one's own request": [
            f"{CORE}::TestTwoPersonRule"
            "::test_the_requesters_own_word_does_not_count_where_the_terms_say_so",
            f"{ROWS}::test_nobody_approves_their_own_request_where_the_terms_say_so",
        ],
        "a faulty policy names its field": [f"{FAULT}[nobody]", f"{FAULT}[no-such-zone]"],
    },
    "gangs": {
        "quorum first, then a person": [
            f"{PLUGIN}::TestWithCoscheduling::test_approval_before_the_quorum_still_waits_for_it",
            f"{GANGS}::test_an_approval_before_the_gang_is_complete_counts_with_the_others",
        ],
        "approved one by one, bound together": [
            f"{GANGS}::test_members_approved_one_by_one_are_bound_together"
        ],
        "one denial ends the wait of all": [
            f"{GANGS}::test_one_denial_after_an_approval_leaves_nobody_bound",
            f"{PLUGIN}::TestWithCoscheduling::test_one_denial_ends_the_gang",
        ],
        "an approval of the gang covers later members until it is complete": [
            f"{ROWS}::test_a_gangs_approval_covers_members_that_come_later",
            f"{ROWS}::test_until_it_is_complete",
            f"{ROWS}::test_a_gang_that_was_given_up_asks_anew",
        ],
        "and can be taken back": [f"{ROWS}::test_a_gangs_approval_is_taken_back"],
        "two gangs of one name are two": [
            f"{KINDS}::test_approving_one_leaves_its_namesake_waiting",
            f"{KINDS}::test_denying_one_leaves_its_namesake_waiting",
            f"{NAMESAKES}::TestDecisions::test_a_word_is_for_the_gang_with_the_uid",
            f"{NAMESAKES}::TestPages::test_what_is_held_is_told_apart",
            f"{DECIDE}::test_of_two_gangs_of_one_name_the_uid_says_which",
        ],
    },
    "gangs that cannot complete": {
        "what they hold is visible": [
            f"{STUCK}::test_what_it_holds_is_visible",
            f"{STUCK}::test_each_member_says_what_it_waits_for",
        ],
        "and free at the deadline": [
            f"{DEADLOCK}::test_what_an_incomplete_gang_holds_is_free_at_its_deadline",
            f"{STUCK}::test_why_it_ended_is_on_its_rows[released at its deadline]",
        ],
        "of two that hold each other up: the lower priority goes": [
            f"{RELEASED}[the-lower-priority-goes]",
        ],
        "equal: the younger goes": [
            f"{RELEASED}[equal-the-younger-goes]",
            f"{RELEASED}[whatever-its-name]",
        ],
        "equal: the later name goes": [f"{RELEASED}[equal-the-later-name]"],
        "without a circle nobody goes": [
            f"{DEADLOCK}::test_without_a_circle_nobody_is_released"
            "[one-is-held-up-but-holds-nobody-up]",
            f"{DEADLOCK}::test_a_gang_that_could_be_completed_is_never_released",
        ],
        "who is released reads why": [
            f"{STUCK}::test_why_it_ended_is_on_its_rows[released for another gang]",
            f"{DEADLOCK}::test_the_pods_of_the_gang_that_goes_read_why",
        ],
    },
    "two at once": {
        "the same word twice does no harm": [f"{PERMITS}::test_the_same_word_twice_does_no_harm"],
        "one wins, the other is told who and when": [
            f"{PERMITS}::test_two_at_once_one_wins",
            f"{PERMITS}::test_the_other_word_is_refused_with_who_and_when",
        ],
        "deadline and click: one outcome": [
            f"{PERMITS}::test_the_timeout_may_win_the_race",
            f"{CORE}::TestDeadline::test_a_word_after_the_deadline_never_counts",
            f"{CORE}::TestDeadline::test_what_was_decided_in_time_counts_however_late_it_is_heard",
        ],
        "no word goes to another pod of the same name": [
            f"{ROWS}::test_no_word_goes_to_another_pod_of_the_same_name",
            f"{DECIDE}::test_an_approval_is_never_for_another_pod_of_the_same_name",
        ],
    },
}

REST: Rules = {
    "REST": {
        "GET /api/v1/waiting": [f"{WAITING}::test_filters[open by default]"],
        "GET /api/v1/waiting/{uid}": [
            f"{WAITING}::test_one_wait_says_who_said_what_and_how_full_the_node_is"
        ],
        "POST /api/v1/waiting/{uid}/approve and deny": [
            f"{DECIDE}::test_an_approval_is_sent_and_audited_with_its_token",
            f"{DECIDE}::test_the_other_verdict_was_first",
        ],
        "POST /api/v1/gangs/{uid}/approve and deny": [
            f"{DECIDE}::test_a_whole_gang",
            f"{DECIDE}::test_a_gang_again_also_after_its_end",
            f"{DECIDE}::test_a_gangs_approval_covers_a_member_that_comes_later",
        ],
        "OpenAPI at /api/schema/": [
            f"{ACCESS}::test_the_schema_needs_no_login_and_names_every_call",
            "dashboard/rest/test_contract.py::test_every_answer_is_one_that_the_schema_describes",
        ],
        "tokens: hashed, scoped, they expire and are revoked": [
            f"{ACCESS}::test_only_the_hash_is_kept_and_the_prefix_shown",
            f"{ACCESS}::test_scopes",
            f"{ACCESS}::test_expired",
            f"{ACCESS}::test_revoked",
        ],
        "no more permissions than their user": [
            f"{DECIDE}::test_a_token_has_no_more_permissions_than_its_user"
        ],
        "failures are limited, over all web processes": [
            f"{ACCESS}::test_failures_are_limited_and_a_good_token_at_the_same_address_is_not",
            f"{THROTTLE}::test_it_is_not_kept_in_the_process",
            f"{THROTTLE}::test_several_at_once_are_all_counted",
        ],
        "idempotent": [
            f"{DECIDE}::test_the_same_again_is_no_error_and_says_who_and_when",
            f"{DECIDE}::test_the_same_again_after_the_end",
            f"{DECIDE}::test_a_key_gives_the_first_answer_again",
        ],
        "two at once: one wins and the other is told who and when": [
            f"{DECIDE}::test_two_bots_at_once_one_wins_and_the_other_is_told_who_and_when"
        ],
        "too late is 410 and says what happened": [
            f"{DECIDE}::test_its_time_has_run_out",
            f"{DECIDE}::test_a_wait_that_ended_without_a_person_is_gone",
        ],
    },
}

WEBHOOKS: Rules = {
    "webhooks": {
        "when a gang starts waiting: once, when its quorum does": [
            f"{OUTBOX}::test_a_gang_starts_to_wait_once_its_quorum_does",
            f"{OUTBOX}::test_a_member_that_joins_a_gang_that_runs_waits_on_its_own",
        ],
        "a single pod at once": [f"{OUTBOX}::test_a_single_pod_starts_to_wait_at_once"],
        "is decided": [
            f"{TOLD}[approved pod by pod]",
            f"{TOLD}[one denied, the other follows]",
            f"{OUTBOX}::test_a_person_may_decide_before_the_quorum_waits",
        ],
        "or expires": [
            f"{TOLD}[nobody clicked]",
            f"{OUTBOX}::test_a_gang_that_ends_before_its_quorum_waits[its time is over]",
        ],
        "two gangs of one name are told of apart": [
            f"{OUTBOX}::test_two_gangs_of_one_name_are_told_of_apart"
        ],
        "links lead to the site": [
            f"{OUTBOX}::test_links_begin_with_the_sites_address_where_it_is_known",
            "e2e/test_access.py::test_links_for_bots_lead_to_the_demo",
        ],
        "signed": [f"{DELIVERY}::test_a_message_is_signed_and_says_what_it_is"],
        "with retries": [
            f"{DELIVERY}::test_a_failure_is_tried_again_later_and_says_why[a server error]",
            f"{DELIVERY}::test_waits_grow_and_vary",
            f"{DELIVERY}::test_what_is_too_old_is_given_up_and_can_be_sent_again",
        ],
        "in order per gang": [
            f"{DELIVERY}::test_a_gangs_messages_keep_their_order_and_other_gangs_go_on"
        ],
        "none is lost, none is told of what is rolled back": [
            f"{DELIVERY}::test_a_worker_that_dies_after_sending_sends_again",
            f"{OUTBOX}::test_a_decision_that_is_rolled_back_leaves_no_message",
        ],
    },
}


@pytest.mark.parametrize("cases", all_cases({**APPROVALS, **REST, **WEBHOOKS}))
def test_the_promise_has_a_named_case(cases: list[str]) -> None:
    assert [problem for case in cases if (problem := missing(case))] == []
    assert cases
