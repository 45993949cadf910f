/** One cycle taken apart for its page. Pure. */

const POINTS = ["PreFilter", "Filter", "ExtenderFilter", "PostFilter", "PreScore", "Score", "ExtenderPrioritize", "Reserve", "Permit", "Unreserve", "PreBind", "Bind", "PostBind"];

/**
 * [{name, seconds, share, binding, plugins: [{name, seconds, share}]}] in the order of a pod's way.
 * A share is of the longest point of its own cycle: a binding waits for the API server, and next to
 * it no point of the scheduling cycle could be seen.
 */
export function timelineOf(cycle) {
  const bindingPoints = cycle.binding?.point_seconds ?? {};
  return [...pointsOf(cycle, cycle.point_seconds ?? {}, false), ...pointsOf(cycle, bindingPoints, true)];
}

function pointsOf(cycle, seconds, binding) {
  const longest = Math.max(...Object.values(seconds), Number.MIN_VALUE);
  return Object.keys(seconds)
    .sort((a, b) => placeOf(a) - placeOf(b))
    .map((name) => ({
      name,
      seconds: seconds[name],
      share: seconds[name] / longest,
      binding,
      plugins: pluginsOf(cycle, name, longest),
    }));
}

function placeOf(point) {
  const place = POINTS.indexOf(point);
  return place < 0 ? POINTS.length : place;
}

function pluginsOf({ plugin_seconds: rows = [] }, point, longest) {
  return rows
    .filter(([at]) => at === point)
    .map(([, name, seconds]) => ({ name, seconds, share: seconds / longest }))
    .sort((a, b) => b.seconds - a.seconds);
}

/**
 * [{plugin, nodes, exact, reasons: [{reason, nodes, resolvable}]}], most nodes first. A plugin may give
 * one node several reasons (too little cpu and too little memory), so its nodes are not the sum of its
 * reasons' nodes. One such plugin has what the others leave of the `rejected` nodes; of several the
 * commonest reason is known to be a lower bound, and `exact` is false.
 */
export function rejectionGroups(rejections, rejected) {
  const groups = new Map();
  for (const { plugin, ...reason } of rejections) {
    if (!reason.nodes) continue;
    const group = groups.get(plugin) ?? { plugin, reasons: [] };
    group.reasons.push(reason);
    groups.set(plugin, group);
  }
  const most = (a, b) => b.nodes - a.nodes;
  const counted = [...groups.values()].map(({ plugin, reasons }) => {
    const nodes = Math.max(...reasons.map((reason) => reason.nodes));
    return { plugin, nodes, exact: reasons.length === 1, reasons: reasons.sort(most) };
  });
  const open = counted.filter((group) => !group.exact);
  const left = rejected - counted.reduce((sum, group) => sum + group.nodes, 0);
  if (left <= 0 || open.length === 1) {
    for (const group of open) Object.assign(group, { nodes: group.nodes + Math.max(left, 0), exact: true });
  }
  return counted.sort(most);
}

/**
 * Score plugins of the table in order, with the weight that the cycle used, or else the one that the
 * numbers show (null: cannot tell).
 */
export function scoreColumns(best, weights = {}) {
  const names = best.length ? Object.keys(best[0].plugins) : [];
  return names.map((name) => ({ name, weight: weights[name] ?? weightOf(best, name) }));
}

function weightOf(best, name) {
  const telling = best.map((node) => node.plugins[name]).find((scores) => scores?.[1] > 0);
  return telling ? telling[2] / telling[1] : null;
}

/** One or two sentences: why this node. */
export function choiceInWords(cycle) {
  const { outcome, node, ties, nodes_feasible: feasible, nodes_total: total, score } = cycle;
  if (outcome === "advised") return advice(cycle);
  if (outcome === "skipped") return "The pod was being deleted, so it was not tried.";
  if (!node) return feasible ? "A later step failed, so no node was kept." : `None of ${number(total)} nodes can run this pod.`;
  const among = `${number(feasible)} of ${number(total)} nodes ${feasible === 1 ? "was" : "were"} feasible`;
  if (score === null) return `${among}, so nothing had to be scored.`;
  const tie = ties > 1 ? `${number(ties)} nodes reached it; one of them was picked.` : "no other node reached it.";
  return `${among}. The highest total is ${number(score)}; ${tie}`;
}

/** Another scheduler asked, as of its extender. */
function advice({ message, nodes_feasible: feasible, nodes_evaluated: asked, score }) {
  if (!asked) return `Another scheduler ${message}.`;
  const passed = `${number(feasible)} of the ${number(asked)} nodes it asked about passed`;
  return score === null ? `Another scheduler asked; ${passed}.` : `Another scheduler asked how good ${number(asked)} nodes are. The highest total is ${number(score)}.`;
}

function number(value) {
  return value.toLocaleString("en-US");
}
