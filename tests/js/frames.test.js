import { BaseMismatch, decodeHeatmap, decodeRaw } from "/static/js/frames.js";
import { frameBytes } from "./builders.js";
import { equal, ok, same, test, throws } from "./harness.js";

const INFO = {
  run: 1, sequence: 3, pod: "default/p", outcome: "scheduled", node: "b", chosen: 1, plugins: ["A", "B"], weights: [1, 2],
  reasons: [["Fit", "Insufficient cpu", "Unschedulable"]], feasible: 2, names_hash: "abc",
};
const FULL = frameBytes({ seq: 9, nodes: 3, info: INFO, scores: [1, 2, -1, 4, 5, -1], rejection: [-1, -1, 0] });

test("a full frame gives header, scores by plugin, and rejections", () => {
  const matrix = decodeHeatmap(FULL);
  equal(matrix.seq, 9);
  equal(matrix.nodes, 3);
  ok(matrix.scored);
  equal(matrix.namesHash, "abc");
  equal(matrix.chosen, 1);
  same(matrix.plugins, ["A", "B"]);
  same(matrix.scores, [1, 2, -1, 4, 5, -1]);
  same(matrix.rejection, [-1, -1, 0]);
});

test("a delta changes its rows and leaves the base as it was", () => {
  const base = decodeHeatmap(FULL);
  const delta = frameBytes({ seq: 12, nodes: 3, info: { ...INFO, sequence: 4, base: 9 }, rows: [0, 2], scores: [70, 80, 90, 100], rejection: [-1, -1] });
  const matrix = decodeHeatmap(delta, base);
  equal(matrix.seq, 12);
  equal(matrix.sequence, 4);
  same(matrix.scores, [70, 2, 80, 90, 5, 100]);
  same(matrix.rejection, [-1, -1, -1]);
  same(base.scores, [1, 2, -1, 4, 5, -1]);
});

test("a delta with an odd number of rows is read although its arrays are not aligned", () => {
  const base = decodeHeatmap(FULL);
  const delta = frameBytes({ seq: 12, nodes: 3, info: { ...INFO, plugins: ["A", "B"], base: 9 }, rows: [1], scores: [33, 44], rejection: [0] });
  same(decodeHeatmap(delta, base).scores, [1, 33, -1, 4, 44, -1]);
  same(decodeHeatmap(delta, base).rejection, [-1, 0, 0]);
});

test("an empty delta repeats the base under a new number", () => {
  const base = decodeHeatmap(FULL);
  const delta = frameBytes({ seq: 13, nodes: 3, info: { ...INFO, base: 9 }, rows: [], scores: [], rejection: [] });
  same(decodeHeatmap(delta, base).scores, base.scores);
});

test("a delta on another base is refused", () => {
  const base = decodeHeatmap(FULL);
  const delta = frameBytes({ seq: 12, nodes: 3, info: { ...INFO, base: 8 }, rows: [0], scores: [1, 1], rejection: [-1] });
  throws(() => decodeHeatmap(delta, base), BaseMismatch);
  throws(() => decodeHeatmap(delta, null), BaseMismatch);
});

test("a cycle that was not scored has no plugins' scores", () => {
  const matrix = decodeHeatmap(frameBytes({ seq: 1, nodes: 2, info: { ...INFO, plugins: [], weights: [] }, scores: [], rejection: [0, -2], scored: false }));
  equal(matrix.scored, false);
  same(matrix.rejection, [0, -2]);
});

test("other bytes are refused", () => {
  throws(() => decodeHeatmap(new ArrayBuffer(4)));
  throws(() => decodeHeatmap(new ArrayBuffer(64)));
});

test("five thousand nodes and twelve plugins decode in a few milliseconds", () => {
  const plugins = Array.from({ length: 12 }, (_, i) => `P${i}`);
  const bytes = frameBytes({ seq: 1, nodes: 5000, info: { ...INFO, plugins, weights: plugins.map(() => 1) }, scores: new Array(60_000).fill(50), rejection: new Array(5000).fill(-1) });
  const start = performance.now();
  equal(decodeHeatmap(bytes).scores.length, 60_000);
  ok(performance.now() - start < 50, "less than 50 ms");
});

test("raw scores are found by plugin and node", () => {
  const raw = decodeRaw(Uint32Array.from([2, 3, 1, 2, 3, 4, 5, 600]).buffer);
  equal(raw.at(0, 1), 2);
  equal(raw.at(1, 2), 600);
});

test("raw scores may be negative and must be complete", () => {
  equal(decodeRaw(Int32Array.from([1, 1, -5]).buffer).at(0, 0), -5);
  throws(() => decodeRaw(Uint32Array.from([2, 3, 1]).buffer));
});
