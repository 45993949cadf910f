import { approvedInWords, factsInWords } from "/static/js/approval_words.js";
import { equal, same, test } from "./harness.js";

const found = {
  requested_by: "ada", requests: { cpu: 1000 }, terms: { reason: "policy big: 24 GPUs, more than 16" },
  approvals: [{ user: "olga", gang: false }], approvers_needed: 2, seconds_left: 42, may: { why: "" }, gang: null,
  nodes: [{ node: "n1", use: { cpu: [4000, 1000, 2000] } }],
  rivals: { waiting_total: 1, waiting: [{ pod: "default/other" }], queued_total: 0, queued: [] },
};

test("before the click: who asks, why, what is held, who else wants it, who approved, how long", () => {
  same(factsInWords(found), [
    "Asked for by ada",
    "Needs approval: policy big: 24 GPUs, more than 16",
    "Asks for cpu 1",
    "Holds n1: cpu 1 of 4 in use, 2 with it",
    "Also want room: 1 other pod that waits there (default/other)",
    "1 of 2 have approved: olga",
    "42 s left",
  ]);
});

test("a standing approval says that it covers later members", () => {
  const gang = { requested_by: [], requests: {}, members: 2, standing: [{ user: "olga" }] };
  const lines = factsInWords({ ...found, gang });
  equal(lines[0], "Nobody is named as asking for it");
  equal(lines.includes("olga has approved the whole gang, later members too"), true);
});

test("one approval needs no count", () => {
  equal(approvedInWords({ approvals: [], approvers_needed: 1 }), "");
  equal(approvedInWords({ approvals: [{ user: "olga", gang: true }], approvers_needed: 1 }), "approved by olga (the whole gang)");
});
