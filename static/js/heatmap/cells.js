/** A matrix -> the code of every cell, panel by panel. Pure. Panel -1 is the total. */
import { NOT_EVALUATED } from "../frames.js";
import { MAX_SCORE, NOT_EVALUATED_CODE, REJECTED_CODE, UNSCORED_CODE } from "./lut.js";

export const TOTAL = -1;

/** Weighted sum per node: Int32Array(nodes), -1 where a node was not scored. */
export function totals(matrix) {
  const { nodes, plugins, scores, weights } = matrix;
  const sum = new Int32Array(nodes);
  for (let p = 0; p < plugins.length; p += 1) {
    const weight = weights[p];
    const row = p * nodes;
    for (let i = 0; i < nodes; i += 1) {
      const score = scores[row + i];
      if (score < 0) sum[i] = -1;
      else if (sum[i] >= 0) sum[i] += weight * score;
    }
  }
  if (plugins.length === 0) sum.fill(-1);
  return sum;
}

/** Panels of a matrix: the total, then each plugin. `top` is the highest value there can be. */
export function panelsOf(matrix) {
  if (!matrix.scored) return [{ index: TOTAL, name: "Filter", weight: null, top: 0 }];
  const top = MAX_SCORE * matrix.weights.reduce((sum, weight) => sum + weight, 0);
  const plugins = matrix.plugins.map((name, index) => ({ index, name, weight: matrix.weights[index], top: MAX_SCORE }));
  return [{ index: TOTAL, name: "Total", weight: null, top }, ...plugins];
}

/** The value that a panel shows for every node (-1: none): a view for a plugin, the sums for the total. */
export function panelValues(matrix, panel, sums) {
  if (panel.index === TOTAL) return sums;
  return matrix.scores.subarray(panel.index * matrix.nodes, (panel.index + 1) * matrix.nodes);
}

/** Lowest and highest value of the scored nodes, or null where none was scored. */
export function valueRange(values) {
  let low = Infinity;
  let high = -Infinity;
  for (let i = 0; i < values.length; i += 1) {
    if (values[i] < 0) continue;
    if (values[i] < low) low = values[i];
    if (values[i] > high) high = values[i];
  }
  return high < 0 ? null : { low, high };
}

/** Codes of nodes without a score in this cycle; 0 for the scored ones. */
export function baseCodes(matrix, palette) {
  const byReason = matrix.reasons.map(([plugin]) => REJECTED_CODE + palette.index(plugin));
  const codes = new Uint8Array(matrix.nodes);
  for (let i = 0; i < matrix.nodes; i += 1) {
    const reason = matrix.rejection[i];
    if (reason >= 0) codes[i] = byReason[reason];
    else if (reason === NOT_EVALUATED) codes[i] = NOT_EVALUATED_CODE;
  }
  return codes;
}

/**
 * Codes of one panel: what `base` says, else the value on the scale from `low` to `high`.
 * `out` is used again from frame to frame.
 */
export function panelCodes(values, base, { low, high }, out = new Uint8Array(base.length)) {
  const span = high - low;
  for (let i = 0; i < base.length; i += 1) {
    if (base[i] !== 0) out[i] = base[i];
    else if (values[i] < 0) out[i] = UNSCORED_CODE;
    else if (span <= 0) out[i] = MAX_SCORE;
    else out[i] = Math.min(MAX_SCORE, Math.max(0, Math.round(((values[i] - low) * MAX_SCORE) / span)));
  }
  return out;
}
