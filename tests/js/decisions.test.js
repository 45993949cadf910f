import { DecisionRows } from "/static/js/decision_list.js";
import { rowsInView } from "/static/js/virtual_table.js";
import { cycleRow } from "./builders.js";
import { equal, same, test } from "./harness.js";

function rowsOf(...parts) {
  const known = new DecisionRows();
  parts.forEach((rows) => known.add(rows));
  return known;
}

const sequences = ({ rows }) => rows.map((row) => row.sequence);

for (const [name, parts, expected] of [
  ["newer rows come first", [[cycleRow(1)], [cycleRow(3), cycleRow(2)]], [3, 2, 1]],
  ["earlier rows come last", [[cycleRow(9), cycleRow(8)], [cycleRow(3), cycleRow(5)]], [9, 8, 5, 3]],
  ["rows between others find their place", [[cycleRow(9), cycleRow(1)], [cycleRow(5), cycleRow(10), cycleRow(9)]], [10, 9, 5, 1]],
  ["nothing changes nothing", [[cycleRow(2)], []], [2]],
]) {
  test(`decisions: ${name}`, () => same(sequences(rowsOf(...parts)), expected));
}

test("of two rows with one number the later commit is kept", () => {
  const known = rowsOf([cycleRow(7), cycleRow(6), cycleRow(5)]);
  known.add([cycleRow(6, { commit_seq: 9, bound: true }), cycleRow(5, { commit_seq: 1, bound: true })]);
  same(known.rows.map((row) => row.bound ?? null), [null, true, null]);
});

test("the newest rows are kept, and it tells that others went", () => {
  const known = rowsOf([cycleRow(1), cycleRow(2), cycleRow(3)]);
  equal(known.trim(3), false);
  equal(known.trim(2), true);
  same(sequences(known), [3, 2]);
  equal(known.has(1), false);
});

test("of a pod that was tried again only the newest attempt stays, where that is asked for", () => {
  const known = rowsOf([cycleRow(1, { uid: "a" }), cycleRow(2, { uid: "b" }), cycleRow(3, { uid: "a" }), cycleRow(4, { uid: "c" })]);
  known.keepNewest(new Map([["a", 3], ["b", 9], ["z", 99]]));
  same(sequences(known), [4, 3]);
  const rows = known.rows;
  known.keepNewest(new Map([["a", 3]]));
  equal(known.rows, rows);
});

for (const [name, [count, above, viewport], expected] of [
  ["the top", [10_000, 0, 340], { start: 0, end: 12 }],
  ["the middle", [10_000, 34_000, 340], { start: 998, end: 1012 }],
  ["the end", [10_000, 339_660, 340], { start: 9988, end: 10_000 }],
  ["above the list", [10_000, 0, 0], { start: 0, end: 2 }],
  ["far behind the end", [10, 340_000, 340], { start: 10, end: 10 }],
]) {
  test(`rows in view at ${name}`, () => same(rowsInView(count, 34, above, viewport, 2), expected));
}
