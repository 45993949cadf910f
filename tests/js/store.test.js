import { applyFrame, applySnapshot, initialState, isOpen, MAX_CYCLES, MAX_ENDED } from "/static/js/store.js";
import { cycleRow, waitingRow } from "./builders.js";
import { equal, same, test } from "./harness.js";

function opened(topic, frame) {
  return applySnapshot(initialState(), topic, frame, true);
}

function cycles(from, seq, ...rows) {
  return { type: "cycles", from, seq, cycles: rows, skipped: 0 };
}

test("a frame before the first answer is a gap", () => {
  equal(applyFrame(initialState(), "cycles", cycles(0, 1)).effect, "gap");
});

test("a frame that begins at the last number is applied", () => {
  const state = opened("cycles", cycles(0, 10, cycleRow(4)));
  const next = applyFrame(state, "cycles", cycles(10, 12, cycleRow(5)));
  equal(next.effect, "applied");
  equal(next.state.last.cycles, 12);
  same(next.state.data.cycles.cycles.map((row) => row.sequence), [5, 4]);
});

test("a frame that overlaps what is drawn is applied", () => {
  const state = opened("cycles", cycles(0, 10, cycleRow(4)));
  equal(applyFrame(state, "cycles", cycles(8, 12, cycleRow(5))).effect, "applied");
});

test("an old frame changes nothing", () => {
  const state = opened("cycles", cycles(0, 10, cycleRow(4)));
  const next = applyFrame(state, "cycles", cycles(8, 10, cycleRow(9)));
  equal(next.effect, "old");
  equal(next.state, state);
});

test("a frame that leaves something out is a gap and is not applied", () => {
  const state = opened("cycles", cycles(0, 10, cycleRow(4)));
  const next = applyFrame(state, "cycles", cycles(11, 12, cycleRow(6)));
  equal(next.effect, "gap");
  equal(next.state, state);
});

test("what was missed joins what is known", () => {
  const state = opened("cycles", cycles(0, 10, cycleRow(4)));
  const caught = applySnapshot(state, "cycles", cycles(10, 14, cycleRow(5), cycleRow(6)), false);
  same(caught.data.cycles.cycles.map((row) => row.sequence), [6, 5, 4]);
  equal(caught.last.cycles, 14);
});

test("a row that comes again replaces the one that is shown, never by an older one", () => {
  const state = opened("cycles", cycles(0, 10, cycleRow(4, { commit_seq: 9, bound: null })));
  const bound = applyFrame(state, "cycles", cycles(10, 11, cycleRow(4, { commit_seq: 11, bound: true }))).state;
  equal(bound.data.cycles.cycles[0].bound, true);
  const late = applySnapshot(bound, "cycles", cycles(0, 11, cycleRow(4, { commit_seq: 9, bound: null })), false);
  equal(late.data.cycles.cycles[0].bound, true);
});

test("the list of cycles is trimmed to the newest", () => {
  const rows = Array.from({ length: MAX_CYCLES + 50 }, (_, i) => cycleRow(i + 1));
  const list = opened("cycles", cycles(0, 999, ...rows)).data.cycles.cycles;
  equal(list.length, MAX_CYCLES);
  equal(list[0].sequence, MAX_CYCLES + 50);
});

test("skipped cycles are counted up", () => {
  const state = opened("cycles", { ...cycles(0, 10), skipped: 3 });
  equal(applyFrame(state, "cycles", { ...cycles(10, 11), skipped: 4 }).state.data.cycles.skipped, 7);
});

test("a state topic takes the latest and refuses an older one", () => {
  const state = opened("queues", { type: "queues", seq: 10, at: 1 });
  equal(applyFrame(state, "queues", { type: "queues", seq: 40, at: 2 }).state.data.queues.at, 2);
  equal(applyFrame(state, "queues", { type: "queues", seq: 9, at: 0 }).effect, "old");
});

test("waiting rows are replaced by id and only by a later commit", () => {
  const frame = (from, seq, ...pods) => ({ type: "waiting", from, seq, now: 1, pods });
  const state = opened("waiting", frame(0, 10, waitingRow(1), waitingRow(2)));
  const next = applyFrame(state, "waiting", frame(10, 12, waitingRow(1, { state: "allowed", commit_seq: 12 }))).state;
  equal(next.data.waiting.rows.get(1).state, "allowed");
  equal(next.data.waiting.rows.size, 2);
  const late = applySnapshot(next, "waiting", frame(0, 12, waitingRow(1, { commit_seq: 3 })), false);
  equal(late.data.waiting.rows.get(1).state, "allowed");
});

test("ten thousand waits stay, of ended ones only the latest", () => {
  const open = Array.from({ length: 10_000 }, (_, i) => waitingRow(i + 1));
  const ended = Array.from({ length: MAX_ENDED + 30 }, (_, i) => waitingRow(20_000 + i, { state: "rejected", resolved_at: i }));
  const { rows } = opened("waiting", { type: "waiting", from: 0, seq: 1, now: 1, pods: [...open, ...ended] }).data.waiting;
  equal([...rows.values()].filter(isOpen).length, 10_000);
  equal(rows.size, 10_000 + MAX_ENDED);
  equal(rows.has(20_000), false);
});

test("the overview's series grow, a second that comes again is replaced, rare usage stays", () => {
  const frame = (from, seq, throughput, usage) => ({ type: "overview", from, seq, throughput, depths: [], totals: {}, usage });
  const state = opened("overview", frame(0, 10, [[1, 5, 0, 0], [2, 6, 0, 0]], { nodes: 5 }));
  const { data } = applyFrame(state, "overview", frame(10, 11, [[2, 9, 0, 0], [3, 1, 0, 0]], null)).state;
  same(data.overview.throughput, [[1, 5, 0, 0], [2, 9, 0, 0], [3, 1, 0, 0]]);
  equal(data.overview.usage.nodes, 5);
});
