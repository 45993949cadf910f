import { matches, ObservedRows, ratePercent, tallies, verdictKind, verdictWord } from "/static/js/observe_words.js";
import { applyFrame, applySnapshot, initialState } from "/static/js/store.js";
import { equal, same, test } from "./harness.js";

const row = (id, sequence, more = {}) => ({ id, sequence, commit_seq: sequence, verdict: "agree", namespace: "default", ...more });

for (const [name, rate, expected] of [
  ["nothing yet", { agree: 0, placed: 0 }, "–"],
  ["all", { agree: 7, placed: 7 }, "100 %"],
  ["one of ten thousand missing is not all", { agree: 9999, placed: 10_000 }, "99.9 %"],
  ["a third", { agree: 1, placed: 3 }, "33.3 %"],
  ["none", { agree: 0, placed: 4 }, "0.0 %"],
]) {
  test(`agreement: ${name}`, () => equal(ratePercent(rate), expected));
}

test("verdicts that always have a tally, and those that happened", () => {
  same(tallies({ agree: 2, missed: 1 }).map(({ verdict, count }) => [verdict, count]), [["agree", 2], ["tie", 0], ["differs", 0], ["infeasible", 0], ["unschedulable", 0], ["pending", 0], ["missed", 1]]);
});

test("a verdict that this page does not know is shown as it is", () => {
  equal(verdictWord("new-one"), "new-one");
  equal(verdictKind("new-one"), "skipped");
});

test("a pod's later word replaces its earlier one and comes first", () => {
  const known = new ObservedRows();
  known.add([row(1, 1, { verdict: "pending" }), row(2, 2)]);
  known.add([row(1, 3, { verdict: "differs" })]);
  known.add([row(1, 1, { verdict: "pending" })]);
  same(known.rows.map(({ id, verdict }) => [id, verdict]), [[1, "differs"], [2, "agree"]]);
});

test("a pod whose verdict no longer matches leaves the list", () => {
  const known = new ObservedRows();
  const keep = (one) => matches(one, { verdict: "pending", namespace: "" });
  known.add([row(1, 1, { verdict: "pending" }), row(2, 2, { verdict: "pending" })], keep);
  known.add([row(1, 3)], keep);
  same(known.rows.map(({ id }) => id), [2]);
});

test("frames of the observe topic: rows come together, counts are the latest", () => {
  const frame = (from, seq, pods, counts) => ({ type: "observe", run: 1, from, seq, pods, counts, whole: {}, recent: {}, skipped: 0 });
  let state = applySnapshot(initialState(), "observe", frame(0, 1, [row(1, 1, { verdict: "pending" })], { pending: 1 }), true);
  ({ state } = applyFrame(state, "observe", frame(1, 2, [row(1, 2), row(2, 3)], { agree: 2 })));
  same(state.data.observe.pods.map(({ id }) => id), [2, 1]);
  same(state.data.observe.counts, { agree: 2 });
  equal(applyFrame(state, "observe", frame(5, 6, [], {})).effect, "gap");
});
