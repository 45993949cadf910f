/** Everything that the views of one cycle need, computed once per frame. Pure. */
import { baseCodes, panelCodes, panelsOf, panelValues, TOTAL, totals, valueRange } from "./cells.js";
import { orderNodes } from "./order.js";

/**
 * {matrix, names, sums, order, panels: [{index, name, weight, top, range, low, high, codes}]}
 *
 * nodes: {names, byName}; view: {sort, name, show, scale}. The total's colours always span the
 * totals of this cycle; a plugin's span 0 to 100, or with `scale` "fit" its values in this cycle.
 */
export function buildModel(matrix, nodes, view, palette) {
  const sums = totals(matrix);
  const base = baseCodes(matrix, palette);
  const panels = panelsOf(matrix).map((panel) => {
    const values = panelValues(matrix, panel, sums);
    const range = valueRange(values);
    const fit = range && (panel.index === TOTAL || view.scale === "fit");
    const scale = fit ? range : { low: 0, high: panel.top };
    return { ...panel, range, ...scale, codes: panelCodes(values, base, scale) };
  });
  const order = orderNodes(matrix, sums, nodes.names, nodes.byName, view);
  return { matrix, names: nodes.names, sums, order, panels };
}

/** 1 for the highest total; equals share a rank. 0 where the node was not scored. */
export function rankOf(model, node) {
  const own = model.sums[node];
  if (own < 0) return 0;
  let better = 0;
  for (const sum of model.sums) if (sum > own) better += 1;
  return better + 1;
}

/**
 * What there is to say of one node: {name, kind, verdict, reason, rows, total}.
 *
 * `raw` are the cycle's raw scores (frames.decodeRaw) or null while they are not here; a row is
 * {plugin, raw, normalised, weight, weighted} with null where there is no number.
 */
export function describeNode(model, node, raw = null) {
  const { matrix, names, sums } = model;
  const scored = sums[node] >= 0;
  const rows = matrix.plugins.map((plugin, p) => describeScore(matrix, plugin, p, node, raw));
  return {
    name: names[node],
    ...verdictOf(model, node),
    rows: matrix.scored ? rows : [],
    total: scored ? sums[node] : null,
  };
}

function describeScore(matrix, plugin, p, node, raw) {
  const normalised = matrix.scores[p * matrix.nodes + node];
  const weight = matrix.weights[p];
  if (normalised < 0) return { plugin, raw: null, normalised: null, weight, weighted: null };
  return { plugin, raw: raw ? raw.at(p, node) : null, normalised, weight, weighted: weight * normalised };
}

function verdictOf(model, node) {
  const { matrix } = model;
  const rejection = matrix.rejection[node];
  if (rejection >= 0) {
    const [plugin, reason, code] = matrix.reasons[rejection];
    return { kind: "rejected", verdict: `Rejected by ${plugin}`, reason, code };
  }
  if (rejection !== -1) {
    return { kind: "skipped", verdict: "Not evaluated", reason: "Enough feasible nodes were found before this one." };
  }
  if (node === matrix.chosen) return { kind: "chosen", verdict: "Chosen", reason: placeOf(model, node) };
  return { kind: "feasible", verdict: "Feasible", reason: placeOf(model, node) };
}

function placeOf(model, node) {
  const rank = rankOf(model, node);
  if (rank) return `rank ${rank} of ${model.matrix.feasible} feasible`;
  return model.matrix.feasible === 1 ? "the only feasible node, so nothing was scored" : "not scored";
}

/** One line for the pointer's tip and for screen readers. */
export function nodeInWords(model, node, panelIndex = TOTAL) {
  const { verdict, reason, kind, total, rows } = describeNode(model, node);
  if (kind === "rejected" || kind === "skipped") return `${verdict}: ${reason}`;
  const row = rows[panelIndex];
  const score = row ? `${row.plugin} ${row.normalised ?? "–"}` : `total ${total ?? "–"}`;
  return `${verdict}, ${score}, ${reason}`;
}
