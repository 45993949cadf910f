import { panelCodes, panelsOf, totals } from "/static/js/heatmap/cells.js";
import { NOTHING, paintPanel } from "/static/js/heatmap/draw.js";
import { tileLayout } from "/static/js/heatmap/layout.js";
import { legendItems } from "/static/js/heatmap/legend.js";
import { buildLut, CODES, hatchBits, luminance, NOT_EVALUATED_CODE, PLUGIN_COLOURS, PluginPalette, rampColour, REJECTED_CODE, UNSCORED_CODE } from "/static/js/heatmap/lut.js";
import { buildModel, describeNode, nodeInWords, rankOf } from "/static/js/heatmap/model.js";
import { orderNodes, sortByName } from "/static/js/heatmap/order.js";
import { moveSlot, pickTile, tileRect } from "/static/js/heatmap/pick.js";
import { NAMES, smallMatrix } from "./builders.js";
import { equal, ok, same, test } from "./harness.js";

const VIEW = { sort: "total", name: "", show: "all", scale: "fixed" };
const NODES = { names: NAMES, byName: sortByName(NAMES) };

function model(view = {}, matrix = smallMatrix()) {
  return buildModel(matrix, NODES, { ...VIEW, ...view }, new PluginPalette());
}

function shown(view, matrix) {
  return Array.from(model(view, matrix).order, (i) => NAMES[i]);
}

test("the ramp rises steadily in lightness in the dark theme and falls in the light one", () => {
  for (const [theme, sign] of [["dark", 1], ["light", -1]]) {
    let before = luminance(rampColour(theme, 0));
    for (let score = 1; score <= 100; score += 1) {
      const now = luminance(rampColour(theme, score / 100));
      ok(sign * (now - before) > 0, `${theme} ${score} to change in the right direction`);
      before = now;
    }
  }
});

test("every code has a colour, opaque and in the byte order of ImageData", () => {
  const { fill } = buildLut("dark");
  equal(fill.length, CODES);
  for (const colour of fill) equal(colour >>> 24, 255);
  const [r, g, b] = rampColour("dark", 0.37);
  equal(fill[37] & 255, r);
  equal((fill[37] >> 8) & 255, g);
  equal((fill[37] >> 16) & 255, b);
});

test("each plugin colour has a hatch of its own, scores have none", () => {
  const bits = hatchBits();
  const patterns = Array.from({ length: PLUGIN_COLOURS }, (_, i) => bits.subarray((i + 1) * 64, (i + 2) * 64).join(""));
  equal(new Set(patterns).size, PLUGIN_COLOURS);
  const { hatch } = buildLut("light");
  equal(hatch[100], 0);
  equal(hatch[REJECTED_CODE], 1);
});

test("a plugin keeps its colour, and an unknown one gets a free one", () => {
  const palette = new PluginPalette();
  const fit = palette.index("NodeResourcesFit");
  const own = palette.index("MyPlugin");
  ok(fit !== own, "two different colours");
  equal(palette.index("MyPlugin"), own);
});

test("the total is the weighted sum, and -1 where a node was not scored", () => {
  same(totals(smallMatrix()), [10, -1, 170, 250, -1]);
});

test("panels are the total and each score plugin; a cycle without scores has one for the filter", () => {
  same(panelsOf(smallMatrix()).map(({ name, top }) => [name, top]), [["Total", 300], ["Fit", 100], ["Image", 100]]);
  same(panelsOf(smallMatrix({ scored: false })).map(({ name }) => name), ["Filter"]);
});

test("codes span the scale, and a scale of one value is the top", () => {
  const base = Uint8Array.from([0, 0, 0, REJECTED_CODE, 0]);
  same(panelCodes(Int8Array.from([0, 50, 100, 7, -1]), base, { low: 0, high: 100 }), [0, 50, 100, REJECTED_CODE, UNSCORED_CODE]);
  same(panelCodes(Int8Array.from([60, 70, 80, 0, 80]), base, { low: 60, high: 80 }), [0, 50, 100, REJECTED_CODE, 100]);
  same(panelCodes(Int8Array.from([5, 5, 5, 0, 5]), base, { low: 5, high: 5 }), [100, 100, 100, REJECTED_CODE, 100]);
});

test("the total spans this cycle's totals, a plugin 0 to 100 unless fitted", () => {
  same(Array.from(model().panels[0].codes).slice(2, 4), [67, 100]);
  same(Array.from(model().panels[1].codes).slice(2, 4), [90, 50]);
  same(Array.from(model({ scale: "fit" }).panels[1].codes).slice(2, 4), [100, 50]);
});

test("a node that was not evaluated has a colour of its own", () => {
  const codes = model({}, smallMatrix({ rejection: Int16Array.from([-1, -2, -1, -1, 1]) })).panels[0].codes;
  equal(codes[1], NOT_EVALUATED_CODE);
});

test("best first, then rejected nodes by plugin", () => {
  same(shown({ sort: "total" }), ["n3", "n2", "n10", "n1", "n4"]);
});

test("sorted by a plugin's own score, by name as people count, and rejected first", () => {
  same(shown({ sort: "plugin:Fit" }), ["n2", "n3", "n10", "n1", "n4"]);
  same(shown({ sort: "name" }), ["n1", "n2", "n3", "n4", "n10"]);
  same(shown({ sort: "rejection" }), ["n1", "n4", "n3", "n2", "n10"]);
});

test("the chosen node leads its equals", () => {
  const matrix = smallMatrix({ scores: Int8Array.from([5, -1, 5, 5, -1, 0, -1, 0, 0, -1]), chosen: 3 });
  equal(shown({ sort: "total" }, matrix)[0], "n3");
});

test("reasons of one plugin stand together, the commonest plugin first", () => {
  const matrix = smallMatrix({
    reasons: [["Taint", "a", ""], ["Fit", "cpu", ""], ["Fit", "memory", ""]],
    rejection: Int16Array.from([1, 0, 2, 1, -1]),
    scores: Int8Array.from([-1, -1, -1, -1, 9, -1, -1, -1, -1, 9]),
    chosen: 4,
  });
  same(shown({ sort: "total" }, matrix), ["n4", "n3", "n10", "n2", "n1"]);
});

test("nodes are filtered by name, by verdict and by rejecting plugin", () => {
  same(shown({ name: "N1", sort: "name" }), ["n1", "n10"]);
  same(shown({ show: "feasible", sort: "name" }), ["n2", "n3", "n10"]);
  same(shown({ show: "rejected", sort: "name" }), ["n1", "n4"]);
  same(shown({ show: "plugin:TaintToleration" }), ["n4"]);
  same(shown({ show: "plugin:Nobody" }), []);
});

test("an unknown sort falls back to the total", () => {
  same(Array.from(orderNodes(smallMatrix(), totals(smallMatrix()), NAMES, NODES.byName, { ...VIEW, sort: "plugin:Gone" })), [3, 2, 0, 1, 4]);
});

test("a node is described with raw, normalised, weight, weighted and its rank", () => {
  const said = describeNode(model(), 3, { at: (plugin, node) => plugin * 1000 + node });
  equal(said.name, "n3");
  equal(said.kind, "feasible");
  equal(said.total, 250);
  equal(said.reason, "rank 1 of 3 feasible");
  same(said.rows[1], { plugin: "Image", raw: 1003, normalised: 100, weight: 2, weighted: 200 });
  equal(rankOf(model(), 2), 2);
});

test("a rejected node is described with plugin, reason and code, the chosen one as chosen", () => {
  const said = describeNode(model(), 4);
  equal(said.verdict, "Rejected by TaintToleration");
  equal(said.reason, "untolerated taint");
  equal(said.code, "UnschedulableAndUnresolvable");
  equal(said.total, null);
  equal(describeNode(model(), 2).verdict, "Chosen");
  ok(nodeInWords(model(), 2, 0).includes("Fit 90"), "the score of the panel that is pointed at");
});

test("the legend counts nodes by plugin, most first", () => {
  const items = legendItems(model({}, smallMatrix({ rejection: Int16Array.from([-2, 0, 0, -1, 1]) })), new PluginPalette());
  same(items.map(({ name, nodes }) => [name, nodes]), [["NodeResourcesFit", 2], ["TaintToleration", 1], ["not evaluated", 1]]);
});

for (const [count, panels, width] of [[1, 1, 800], [5, 6, 340], [1523, 6, 880], [5000, 13, 880], [5000, 13, 350], [0, 1, 600]]) {
  test(`${count} nodes in ${panels} panels fit ${width} pixels without overlap`, () => {
    const layout = tileLayout({ count, panels, width, dpr: 1 });
    equal(layout.panels.length, panels);
    ok(layout.cols * layout.rows >= count, "room for every node");
    layout.panels.forEach((panel, i) => {
      ok(panel.x >= 0 && panel.x + panel.width <= width, `panel ${i} inside the width`);
      ok(panel.tile >= 1 && panel.gap < panel.tile, "tiles that can be seen");
      for (const other of layout.panels.slice(i + 1)) {
        const apart = other.x >= panel.x + panel.width || other.y >= panel.y + panel.height;
        ok(apart, "panels apart");
      }
    });
  });
}

test("every panel has the same grid, and the first has the largest tiles", () => {
  const { panels } = tileLayout({ count: 1523, panels: 6, width: 1800, dpr: 2 });
  ok(panels.slice(1).every((panel) => panel.tile === panels[1].tile && panel.tile <= panels[0].tile));
});

test("the middle of each tile picks that tile, in every panel", () => {
  const layout = tileLayout({ count: 37, panels: 3, width: 700, dpr: 1 });
  for (let panel = 0; panel < 3; panel += 1) {
    for (let slot = 0; slot < 37; slot += 1) {
      const { x, y, width, height } = tileRect(layout, panel, slot);
      same(pickTile(layout, x + width / 2, y + height / 2), { panel, slot });
    }
  }
});

test("between panels and behind the last node nothing is picked", () => {
  const layout = tileLayout({ count: 37, panels: 3, width: 700, dpr: 1 });
  equal(pickTile(layout, 0, 0), null);
  equal(pickTile(layout, -5, 50), null);
  const { x, y, tile } = layout.panels[0];
  const behind = layout.cols * layout.rows - 1;
  if (behind >= 37) equal(pickTile(layout, x + (behind % layout.cols) * tile + 1, y + (layout.rows - 1) * tile + 1), null);
});

test("arrow keys move by one and by a row, and stay inside", () => {
  const layout = { cols: 10, count: 35 };
  equal(moveSlot(layout, 0, "ArrowRight"), 1);
  equal(moveSlot(layout, 0, "ArrowLeft"), 0);
  equal(moveSlot(layout, 3, "ArrowDown"), 13);
  equal(moveSlot(layout, 28, "ArrowDown"), 28);
  equal(moveSlot(layout, 3, "ArrowUp"), 3);
  equal(moveSlot(layout, 3, "End"), 34);
  equal(moveSlot(layout, 34, "Home"), 0);
  equal(moveSlot(layout, 3, "x"), null);
  equal(moveSlot({ cols: 1, count: 0 }, 0, "Home"), null);
});

test("tiles are painted with their colour and gaps stay empty", () => {
  const lut = buildLut("dark");
  const pixels = new Uint32Array(20 * 10);
  const panel = { x: 2, y: 1, tile: 6, gap: 1 };
  paintPanel(pixels, 20, panel, 2, Int32Array.from([1, 0]), Uint8Array.from([10, 90]), lut);
  equal(pixels[1 * 20 + 2], lut.fill[90]);
  equal(pixels[5 * 20 + 6], lut.fill[90]);
  equal(pixels[1 * 20 + 7], 0);
  equal(pixels[1 * 20 + 8], lut.fill[10]);
});

test("a rejected tile shows fill and ink of its hatch", () => {
  const lut = buildLut("dark");
  const pixels = new Uint32Array(16 * 16);
  paintPanel(pixels, 16, { x: 0, y: 0, tile: 16, gap: 0 }, 1, Int32Array.from([0]), Uint8Array.from([REJECTED_CODE]), lut);
  same([...new Set(pixels)].sort(), [lut.fill[REJECTED_CODE], lut.ink[REJECTED_CODE]].sort());
});

/** 5,000 nodes and fifteen plugins; `changes` are [plugin, node, score] of another frame. */
function large(changes = []) {
  const nodes = 5000;
  const plugins = Array.from({ length: 15 }, (_, i) => `P${i}`);
  const names = Array.from({ length: nodes }, (_, i) => `node-${i}`);
  const matrix = smallMatrix({
    nodes, plugins, weights: plugins.map(() => 1), chosen: 5,
    scores: Int8Array.from({ length: 15 * nodes }, (_, i) => (i * 7919) % 101),
    rejection: Int16Array.from({ length: nodes }, (_, i) => (i % 5 === 0 ? 0 : -1)),
  });
  for (const [plugin, node, score] of changes) matrix.scores[plugin * nodes + node] = score;
  return buildModel(matrix, { names, byName: sortByName(names) }, { ...VIEW, sort: "name" }, new PluginPalette());
}

/** Paints models one after the other on one canvas: {paint(model) -> lines touched per panel, writes}. */
function canvas() {
  const layout = tileLayout({ count: 5000, panels: 16, width: 1200, dpr: 1 });
  const pixels = new Uint32Array(layout.width * layout.height);
  const shown = layout.panels.map(() => new Uint8Array(5000).fill(NOTHING));
  const lut = buildLut("dark");
  const paint = ({ panels, order }) => panels.map((panel, i) => paintPanel(pixels, layout.width, layout.panels[i], layout.cols, order, panel.codes, lut, 1, shown[i]));
  return { layout, paint, pixels };
}

test("a frame that is the same touches no pixel, one score only its row of tiles in two panels", () => {
  const { layout, paint } = canvas();
  ok(paint(large()).every((touched) => touched !== null), "every panel painted");
  ok(paint(large()).every((touched) => touched === null), "nothing painted");
  const touched = paint(large([[3, 1234, 100]]));
  const panels = touched.flatMap((lines, i) => (lines ? [i] : []));
  ok(panels.every((i) => i === 0 || i === 4) && panels.includes(4), `the total's panel at most, and the plugin's: ${panels}`);
  const { tile, gap } = layout.panels[4];
  equal(touched[4].bottom - touched[4].top, tile - gap);
});

test("what is painted over an older frame is what a fresh canvas shows", () => {
  const [fresh, used] = [canvas(), canvas()];
  const next = large([[0, 7, 1], [14, 4999, 99], [2, 2500, 50]]);
  used.paint(large());
  used.paint(next);
  fresh.paint(next);
  ok(used.pixels.every((pixel, i) => pixel === fresh.pixels[i]), "the same pixels");
});
