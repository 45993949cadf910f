import { approvedInWords, factsOf, factsOfRows, nodesHeld } from "/static/js/approval_words.js";
import { meanwhile, requestForGang, requestForPod } from "/static/js/decide_request.js";
import { atDeadline, isApplied } from "/static/js/waiting_words.js";
import { waitingRow } from "./builders.js";
import { equal, same, test } from "./harness.js";

const GIB = 2 ** 30;
const found = {
  pod: "ns/p", node: "n1", priority: 0, requested_by: "ada", requests: { cpu: 1000 }, needs_approval: true,
  terms: { reason: "policy big: 24 GPUs, more than 16" },
  approvals: [{ user: "olga", at: 0, gang: false, comment: "" }], approvers_needed: 2, may: { why: "" }, gang: null,
  nodes: [{ node: "n1", pods: 1, use: { cpu: [4000, 1000, 2000], "x.io/none": [0, 0, 0] } }],
  rivals: { waiting_total: 1, waiting: [{ pod: "default/other", pod_group: "", node: "n1", priority: 5, requests: { cpu: 500 } }], queued_total: 0, queued: [] },
};
const gang = { pod_group: "ns/train", members: 2, min_member: 3, priority: 0, requested_by: ["ada", "grace"], requests: { cpu: 2000 }, standing: [] };
const lines = (facts, term) => facts.terms.find((fact) => fact.term === term)?.lines;

test("before the click: who asks, why, what is asked and held, who else wants it, who approved", () => {
  const facts = factsOf(found, false);
  same(lines(facts, "Asked for by"), ["ada"]);
  same(lines(facts, "Needs approval"), ["policy big: 24 GPUs, more than 16"]);
  same(lines(facts, "Asks for"), ["cpu 1"]);
  equal(lines(facts, "Approved so far")[1], "one more person has to");
  equal(lines(facts, "Gang"), undefined);
  same(facts.nodes, [{ node: "n1", pods: "1 pod", uses: [{ name: "cpu", before: 0.25, after: 0.5, words: "1 → 2 of 4" }] }]);
  same(facts.rivals, ["default/other waits on n1 too (cpu 500m, priority 5)"]);
});

test("of a whole gang: its sums and all its nodes; of one member its own, and the gang's beside it", () => {
  const both = { ...found, gang, nodes: [...found.nodes, { node: "n2", pods: 1, use: {} }] };
  const whole = factsOf(both, true);
  same(lines(whole, "Gang"), ["2 pods have a node, 1 more must find one"]);
  same(lines(whole, "Asked for by"), ["ada, grace"]);
  same(lines(whole, "Asks for"), ["cpu 2"]);
  same(whole.nodes.map(({ node }) => node), ["n1", "n2"]);
  const member = factsOf(both, false);
  same(lines(member, "Asks for"), ["cpu 1", "with its gang cpu 2"]);
  same(member.nodes.map(({ node }) => node), ["n1"]);
});

test("a standing approval says that it covers later members", () => {
  const standing = { ...gang, standing: [{ user: "olga" }] };
  const [first] = lines(factsOf({ ...found, gang: standing }, true), "Approved so far");
  equal(first.endsWith("for the whole gang, later members too"), true);
});

test("nobody has asked, nobody has approved", () => {
  const facts = factsOf({ ...found, requested_by: "", approvals: [] }, false);
  same([lines(facts, "Asked for by"), lines(facts, "Approved so far")], [["nobody is named"], ["nobody; 2 people have to"]]);
  same(lines(factsOf({ ...found, needs_approval: false }, false), "Approved so far"), undefined);
});

test("many rivals are counted, few are named", () => {
  const waiting = Array.from({ length: 20 }, (_, i) => ({ ...found.rivals.waiting[0], pod: `default/o${i}`, pod_group: i ? "" : "default/o" }));
  const queued = [{ pod: "default/big", priority: 0, reason: "Insufficient cpu" }];
  const { rivals } = factsOf({ ...found, rivals: { waiting_total: 200, waiting, queued_total: 1, queued } }, false);
  equal(rivals[0], "default/o0 waits on n1 too, with its gang default/o (cpu 500m, priority 5)");
  same(rivals.slice(5), ["195 more pods that wait on these nodes", "default/big is queued and fits nowhere: Insufficient cpu"]);
});

test("a selection adds up what its rows ask for and hold", () => {
  const rows = [1, 2, 3].map((id) => waitingRow(id, {
    node: id < 3 ? "n1" : "n2", since: id, requests: { cpu: 1000, memory: GIB }, pod_group: id === 3 ? "ns/g" : "", requested_by: "ada",
    node_use: { cpu: [8000, 1000 * id, 1000 * (id + 1)] }, approvers_needed: id, terms: { reason: "the pod asks for it" },
  }));
  const facts = factsOfRows(rows);
  same(lines(facts, "Asks for"), ["cpu 3, memory 3 GiB"]);
  same(lines(facts, "Gangs"), ["1: ns/g"]);
  same(lines(facts, "Needs approval"), ["the pod asks for it"]);
  same(lines(facts, "Approved so far"), ["2 pods of these need more than one person"]);
  same(nodesHeld(rows).map(({ node, pods, use }) => [node, pods, use.cpu]), [["n1", 2, [8000, 1000, 3000]], ["n2", 1, [8000, 3000, 4000]]]);
  equal(facts.rivals, null);
});

test("one approval needs no count", () => {
  equal(approvedInWords({ approvals: [], approvers_needed: 1 }), "");
  equal(approvedInWords({ approvals: [{ user: "olga", gang: true }], approvers_needed: 1 }), "approved by olga");
  equal(approvedInWords({ approvals: [], approvers_needed: 2 }), "0 of 2 approved");
});

// --- while the dialog is open ----------------------------------------------------------------------

const approved = { state: "sent", decision: { verdict: "approve", user: "olga", at: 0, comment: "fine" } };

test("a pod that others decide or that time ends while the dialog is open", () => {
  const words = (changes, verdict = "approve") => meanwhile([waitingRow(1, changes)], verdict);
  same(words({}), { left: 1, text: "" });
  equal(/^ns\/p1 was approved by olga at [0-9:]{8}: fine\.$/.test(words(approved).text), true);
  equal(/^ns\/p1 timed out at [0-9:]{8}: nobody decided\.$/.test(words({ state: "timed_out", resolved_at: 0, message: "nobody decided" }).text), true);
  same(meanwhile([undefined], "deny"), { left: 0, text: "they wait no more" });
});

test("of several, those that are left can still be decided", () => {
  const { left, text } = meanwhile([waitingRow(1), waitingRow(2, approved), waitingRow(3, approved)], "deny");
  equal(left, 1);
  equal(text.startsWith("2 of 3 cannot be decided any more: ns/p2 was approved by olga"), true);
  equal(text.endsWith("The same or the like goes for 1 other pod."), true);
});

test("what is approved and waits for its gang can be denied and taken back, not approved again", () => {
  const row = waitingRow(1, { ...approved, pending: [{ plugin: "Coscheduling", deadline: 9 }] });
  equal(isApplied(row), true);
  same(["approve", "deny", "revoke", "look"].map((verdict) => meanwhile([row], verdict).left), [0, 1, 1, 1]);
});

test("a request for a gang names the members that can still be decided", () => {
  const rows = [waitingRow(1), waitingRow(2, approved)];
  const of = { name: "ns/g", rows, waiting: 2, minMember: 3 };
  same(requestForGang(of, "approve").ids, [1]);
  equal(requestForGang(of, "approve").text, "The one pod that waits is approved, and members that come later too. 1 more must still find a node before any is bound.");
  same(requestForGang(of, "look").ids, [1, 2]);
  equal(requestForPod(waitingRow(1), "revoke").title, "Take back your approval of ns/p1?");
});

test("what happens when time is over", () => {
  const row = waitingRow(1, { pending: [{ plugin: "ManualApproval", deadline: 9 }], terms: { at_deadline: "deny" } });
  equal(atDeadline(row), "then it is denied");
  equal(atDeadline({ ...row, terms: { at_deadline: "approve" } }), "then it is approved");
  equal(atDeadline({ ...row, pending: [...row.pending, { plugin: "Coscheduling", deadline: 3 }] }), "then Coscheduling turns it down");
});
