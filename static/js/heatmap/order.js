/** Which nodes are shown and in what order. Pure. */
import { FEASIBLE } from "../frames.js";

export const SORT_TOTAL = "total";
export const SORT_NAME = "name";
export const SORT_REJECTION = "rejection";
export const PLUGIN_PREFIX = "plugin:";

/**
 * Node indices in display order.
 *
 * view: {sort, name, show}; `sort` is "total", "name", "rejection" or "plugin:NAME"; `show` is
 * "all", "feasible", "rejected" or "plugin:NAME" (rejected by that plugin). `byName` holds the
 * node indices in order of name.
 */
export function orderNodes(matrix, sums, names, byName, view) {
  const keep = filterOf(matrix, names, view);
  const shown = byName.filter(keep);
  const keys = sortKeys(matrix, sums, view.sort);
  return keys ? shown.sort((a, b) => keys[b] - keys[a] || 0) : shown;
}

/** Node indices by name, so that node-2 comes before node-10. */
export function sortByName(names) {
  const { compare } = new Intl.Collator("en", { numeric: true });
  return Int32Array.from(names.keys()).sort((a, b) => compare(names[a], names[b]));
}

function filterOf(matrix, names, { name, show }) {
  const needle = name.trim().toLowerCase();
  const named = (i) => !needle || names[i].toLowerCase().includes(needle);
  const { rejection, reasons } = matrix;
  if (show === "feasible") return (i) => rejection[i] === FEASIBLE && named(i);
  if (show === "rejected") return (i) => rejection[i] >= 0 && named(i);
  if (!show.startsWith(PLUGIN_PREFIX)) return named;
  const plugin = show.slice(PLUGIN_PREFIX.length);
  const wanted = reasons.map(([rejecting]) => rejecting === plugin);
  return (i) => rejection[i] >= 0 && wanted[rejection[i]] && named(i);
}

/**
 * A number per node, highest first, or null for the order of names. The chosen node leads its
 * equals; rejected nodes stand together by plugin and reason, the commonest first.
 */
function sortKeys(matrix, sums, sort) {
  if (sort === SORT_NAME) return null;
  const values = valuesFor(matrix, sums, sort);
  const ranks = rankReasons(matrix);
  const rejectedBase = sort === SORT_REJECTION ? 1e9 : -10;
  const keys = new Float64Array(matrix.nodes);
  for (let i = 0; i < matrix.nodes; i += 1) {
    const reason = matrix.rejection[i];
    if (reason >= 0) keys[i] = rejectedBase - ranks[reason];
    else if (reason !== FEASIBLE) keys[i] = -5;
    else keys[i] = Math.max(-1, values[i]);
  }
  if (matrix.chosen >= 0) keys[matrix.chosen] += 0.5;
  return keys;
}

function valuesFor(matrix, sums, sort) {
  if (!sort.startsWith(PLUGIN_PREFIX)) return sums;
  const plugin = matrix.plugins.indexOf(sort.slice(PLUGIN_PREFIX.length));
  if (plugin < 0) return sums;
  return matrix.scores.subarray(plugin * matrix.nodes, (plugin + 1) * matrix.nodes);
}

/** Place of each reason: by plugin, the one with most nodes first, and by reason within it. */
function rankReasons(matrix) {
  const counts = reasonCounts(matrix);
  const byPlugin = new Map();
  matrix.reasons.forEach(([plugin], i) => byPlugin.set(plugin, (byPlugin.get(plugin) ?? 0) + counts[i]));
  const places = [...byPlugin.keys()];
  const plugin = (reason) => matrix.reasons[reason][0];
  const order = [...counts.keys()].sort(
    (a, b) =>
      byPlugin.get(plugin(b)) - byPlugin.get(plugin(a)) ||
      places.indexOf(plugin(a)) - places.indexOf(plugin(b)) ||
      counts[b] - counts[a],
  );
  const rank = new Int32Array(counts.length);
  order.forEach((reason, place) => {
    rank[reason] = place;
  });
  return rank;
}

/** How many nodes each reason rejected. */
export function reasonCounts(matrix) {
  const counts = new Array(matrix.reasons.length).fill(0);
  for (const reason of matrix.rejection) if (reason >= 0) counts[reason] += 1;
  return counts;
}
