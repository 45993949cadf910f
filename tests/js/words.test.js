import { ServerClock } from "/static/js/clock.js";
import { columnsOf, everySecond, niceTop } from "/static/js/chart.js";
import { outcomeKind, whyOf } from "/static/js/cycle_row.js";
import { choiceInWords, rejectionGroups, scoreColumns, timelineOf } from "/static/js/decision_detail.js";
import { matches } from "/static/js/decision_list.js";
import { age, amount, camelBreaks, count, countdown, dateTime, milliseconds, percent, zoneInWords } from "/static/js/format.js";
import { actionsFor, noteFor, stateWord } from "/static/js/run_controls.js";
import { reconnectDelay, LONGEST_DELAY_MS } from "/static/js/socket.js";
import { endInWords, resultInWords, sentInWords } from "/static/js/waiting_words.js";
import { cycleRow, waitingRow } from "./builders.js";
import { equal, ok, same, test } from "./harness.js";

test("time left is rounded up, so that nothing is shown as over before it is", () => {
  equal(countdown(900), "15:00");
  equal(countdown(61.2), "1:02");
  equal(countdown(59.2), "1:00");
  equal(countdown(42), "42 s");
  equal(countdown(9.31), "9.4 s");
  equal(countdown(0.01), "0.1 s");
  equal(countdown(0), "0 s");
  equal(countdown(3_725), "1:02:05");
});

test("numbers, durations, ages and shares read well", () => {
  equal(count(18_204), "18,204");
  equal(milliseconds(0.042), "42 µs");
  equal(milliseconds(1.31), "1.3 ms");
  equal(milliseconds(48.4), "48 ms");
  equal(milliseconds(2_400), "2.4 s");
  equal(age(200), "3 min");
  equal(percent(1, 3), "33 %");
  equal(percent(1, 0), "–");
});

test("amounts have the unit of their resource", () => {
  equal(amount("cpu", 8000), "8");
  equal(amount("cpu", 250), "250m");
  equal(amount("cpu", 29_100), "29.1");
  equal(amount("memory", 32 * 2 ** 30), "32 GiB");
  equal(amount("nvidia.com/gpu", 4), "4");
});

test("long plugin names may break between words only", () => {
  equal(camelBreaks("NodeResourcesFit").replaceAll("\u200b", "|"), "Node|Resources|Fit");
  equal(camelBreaks("HTTP"), "HTTP");
});

function clockAt(start, rate = 1) {
  let now = start;
  const clock = new ServerClock({ rate, monotonic: () => now });
  return { clock, pass: (ms) => { now += ms; } };
}

test("the server's clock goes on between samples, at the sandbox's speed", () => {
  const { clock, pass } = clockAt(1000, 10);
  clock.sample(500);
  pass(2000);
  equal(clock.now(), 520);
  equal(clock.until(570), 5);
  equal(clock.until(10), 0);
});

test("a sample that was late does not set the clock back, a step does", () => {
  const { clock, pass } = clockAt(0);
  clock.sample(500);
  pass(1000);
  clock.sample(500.8);
  equal(clock.now(), 501);
  clock.sample(501.4);
  equal(clock.now(), 501.4);
  clock.sample(300);
  equal(clock.now(), 300);
  clock.sample(Number.NaN);
  equal(clock.now(), 300);
});

test("reconnecting waits longer each time, never beyond the limit, and not all at once", () => {
  equal(reconnectDelay(0, () => 1), 500);
  equal(reconnectDelay(3, () => 0), 2000);
  equal(reconnectDelay(30, () => 1), LONGEST_DELAY_MS);
});

test("the actions offered fit the state", () => {
  same(actionsFor({ state: "running", desired_state: "running" }), ["pause", "stop"]);
  same(actionsFor({ state: "paused", desired_state: "paused" }), ["resume", "stop"]);
  same(actionsFor({ state: "stopped", desired_state: "stopped" }), ["start"]);
  same(actionsFor({ state: "failed", desired_state: "running" }), ["start"]);
});

test("the pill says where a run is going", () => {
  equal(stateWord({ state: "running", desired_state: "running" }), "running");
  equal(stateWord({ state: "pending", desired_state: "running" }), "starting");
  equal(stateWord({ state: "running", desired_state: "stopped" }), "stopping");
  equal(stateWord({ state: "paused", desired_state: "running" }), "resuming");
  equal(stateWord({ state: "failed", desired_state: "running" }), "failed");
});

test("a run that does not run says so, and why", () => {
  equal(noteFor({ state: "running", desired: "running", lease: { fresh: true } }), "");
  ok(noteFor({ state: "stopped", desired: "stopped" }).startsWith("The scheduler is stopped"));
  ok(noteFor({ state: "failed", desired: "running", message: "no such plugin" }).includes("no such plugin"));
  ok(noteFor({ state: "running", desired: "running", lease: { fresh: false } }).includes("does not answer"));
  ok(noteFor({ state: "paused", desired: "paused", mode: "observe" }).startsWith("The observer is paused: pods that are placed meanwhile are not judged"));
});

test("an end names who, and the comment", () => {
  const decision = { verdict: "deny", user: "grace", comment: "not today" };
  equal(endInWords(waitingRow(1, { decision, resolved_by: "user:grace" })), "denied by grace: not today");
  equal(endInWords(waitingRow(1, { resolved_by: "Coscheduling", message: "gang broke up" })), "Coscheduling; gang broke up");
  equal(endInWords(waitingRow(1, { resolved_by: "Coscheduling" })), "by Coscheduling");
  equal(sentInWords(waitingRow(1, { decision: { verdict: "approve", user: "ada" } })), "approval by ada sent");
  equal(sentInWords(waitingRow(1, { decision: { verdict: "approve", user: "ada" }, pending: [{ plugin: "Coscheduling" }] })), "approved by ada");
});

test("where several had to approve, all of them are named", () => {
  const decision = { verdict: "approve", user: "otto", comment: "" };
  const approvals = [{ user: "olga", comment: "looks right" }, { user: "otto", comment: "" }];
  equal(endInWords(waitingRow(1, { decision, approvals, state: "allowed", resolved_by: "user:otto" })), "approved by olga (looks right) and otto");
  equal(sentInWords(waitingRow(1, { decision, approvals })), "approval by olga and otto sent");
  const three = [...approvals, { user: "ada", comment: "" }];
  equal(sentInWords(waitingRow(1, { decision, approvals: three, pending: [{ plugin: "Coscheduling" }] })), "approved by olga, otto and ada");
  const denied = { verdict: "deny", user: "grace", comment: "no" };
  equal(endInWords(waitingRow(1, { decision: denied, approvals, resolved_by: "user:grace" })), "denied by grace: no");
});

test("a lost race is told in the server's words", () => {
  const lost = { id: 1, ok: false, message: "Too late: the pod has timed out." };
  same(resultInWords([lost], "deny"), { done: 0, text: "Too late: the pod has timed out." });
  const some = resultInWords([{ id: 2, ok: true }, lost], "approve");
  equal(some.done, 1);
  ok(some.text.startsWith("1 of 2 were approved"));
  equal(resultInWords([{ id: 2, ok: true }], "approve").text, "");
});

test("a decision's reason is its node, or its message", () => {
  equal(whyOf({ outcome: "scheduled", node: "n1", bound: true }), "n1");
  equal(whyOf({ outcome: "scheduled", node: "n1", bound: false }), "n1 (binding failed)");
  equal(outcomeKind({ outcome: "scheduled", bound: false }), "error");
  equal(whyOf({ outcome: "unschedulable", message: "0/3 nodes are available" }), "0/3 nodes are available");
});

test("pushed rows match the search as the server's do", () => {
  const row = cycleRow(7, { pod: "team-a/web-1", name: "web-1", pod_group: "team-a/front", node: "n1", outcome: "scheduled" });
  ok(matches(row, { q: "", outcome: "" }));
  ok(matches(row, { q: "WEB", outcome: "scheduled" }));
  ok(matches(row, { q: "team-a/w", outcome: "" }));
  ok(matches(row, { q: "n1", outcome: "" }));
  equal(matches(row, { q: "n11", outcome: "" }), false);
  equal(matches(row, { q: "", outcome: "error" }), false);
});

test("the timeline follows a pod's way and compares with the longest point of its cycle", () => {
  const points = timelineOf({
    point_seconds: { Score: 2e-3, Filter: 4e-3, PreFilter: 1e-3 },
    plugin_seconds: [["Filter", "A", 1e-3], ["Filter", "B", 3e-3]],
    binding: { point_seconds: { Bind: 1e-3 } },
  });
  same(points.map(({ name, share, binding }) => [name, share, binding]), [["PreFilter", 0.25, false], ["Filter", 1, false], ["Score", 0.5, false], ["Bind", 1, true]]);
  same(points[1].plugins.map(({ name }) => name), ["B", "A"]);
});

test("rejections are grouped by plugin, most nodes first", () => {
  const groups = rejectionGroups([
    { plugin: "Fit", reason: "cpu", nodes: 3, resolvable: true },
    { plugin: "Taint", reason: "taint", nodes: 9, resolvable: false },
    { plugin: "Fit", reason: "memory", nodes: 4, resolvable: true },
    { plugin: "Ports", reason: "none", nodes: 0, resolvable: true },
  ], 14);
  same(groups.map(({ plugin, nodes, exact }) => [plugin, nodes, exact]), [["Taint", 9, true], ["Fit", 5, true]]);
  equal(groups[1].reasons[0].reason, "memory");
});

test("a node with two reasons of one plugin is one node", () => {
  const fit = [{ plugin: "Fit", reason: "cpu", nodes: 17 }, { plugin: "Fit", reason: "memory", nodes: 14 }];
  const taint = [{ plugin: "Taint", reason: "a", nodes: 4 }, { plugin: "Taint", reason: "b", nodes: 3 }];
  same(rejectionGroups(fit, 17).map(({ nodes, exact }) => [nodes, exact]), [[17, true]]);
  same(rejectionGroups([...fit, ...taint], 24).map(({ nodes, exact }) => [nodes, exact]), [[17, false], [4, false]]);
});

test("a score column's weight is read off the numbers, also where the best node has none", () => {
  const best = [{ plugins: { A: [0, 0, 0], B: [5, 50, 100] } }, { plugins: { A: [1, 10, 30], B: [5, 50, 100] } }];
  same(scoreColumns(best), [{ name: "A", weight: 3 }, { name: "B", weight: 2 }]);
  same(scoreColumns(best.slice(0, 1), { A: 3 }), [{ name: "A", weight: 3 }, { name: "B", weight: 2 }]);
  same(scoreColumns([]), []);
});

test("the choice is explained in a sentence", () => {
  const base = { outcome: "scheduled", node: "n1", ties: 1, nodes_feasible: 3, nodes_total: 5, score: 170 };
  ok(choiceInWords(base).includes("The highest total is 170; no other node reached it."));
  ok(choiceInWords({ ...base, ties: 2 }).includes("2 nodes reached it"));
  ok(choiceInWords({ ...base, score: null, nodes_feasible: 1 }).includes("1 of 5 nodes was feasible"));
  equal(choiceInWords({ ...base, outcome: "unschedulable", node: "", nodes_feasible: 0 }), "None of 5 nodes can run this pod.");
});

test("seconds that were not told are filled in", () => {
  same(everySecond([[1, 5], [4, 7]], () => 0), [[1, 5], [2, 0], [3, 0], [4, 7]]);
  same(everySecond([[1, 5], [3, 7]], (last) => last), [[1, 5], [2, 5], [3, 7]]);
  same(everySecond([], () => 0), []);
});

test("a chart's columns and its top", () => {
  same(columnsOf([[1, 5, 6], [2, 7, 8]], [2]), [[1, 2], [6, 8]]);
  equal(niceTop(0), 4);
  equal(niceTop(97), 100);
  equal(niceTop(103), 150);
  equal(niceTop(Number.NaN), 4);
});

test("times of day say their zone", () => {
  const summer = new Date("2026-07-01T12:00:00Z");
  equal(zoneInWords(summer, "Europe/Berlin"), "Europe/Berlin, UTC+02:00");
  equal(zoneInWords(summer, "UTC"), "UTC");
  ok(/^2026-0\d-\d\d \d\d:\d\d:00$/.test(dateTime(summer)), "date and time of day");
});
