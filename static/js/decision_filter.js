/** The filter results of one cycle: a bar of all nodes, and the reasons by plugin. */
import { rejectionGroups } from "./decision_detail.js";
import { count, percent, plural } from "./format.js";
import { keepChildren, parts, setHidden, setText, stamp } from "./lib/dom.js";

/** view: the page's parts; palette: the same plugin colours as the heatmap's. */
export function drawFilter(view, cycle, palette) {
  const rejected = rejectedNodes(cycle);
  const groups = rejectionGroups(cycle.rejections ?? [], rejected);
  const least = groups.reduce((sum, group) => sum + group.nodes, 0);
  setText(view.filterNote, `${count(cycle.nodes_feasible)} of ${plural(cycle.nodes_total, "node")} feasible, ${count(Math.max(rejected, least))} rejected`);
  setHidden(view.noRejections, groups.length > 0);
  drawSplit(view.split, [{ plugin: "", nodes: cycle.nodes_feasible }, ...groups], palette);
  keepChildren(view.rejections, groups, () => stamp("rejection-template"), (item, group) => drawGroup(item, group, cycle.nodes_total, palette));
}

/** PreFilter turns a pod down on all nodes at once, without looking at one. */
function rejectedNodes({ rejections = [], nodes_total: total, nodes_evaluated: evaluated, nodes_feasible: feasible }) {
  if (rejections.length === 0) return 0;
  return (evaluated || total) - feasible;
}

function drawSplit(bar, split, palette) {
  setHidden(bar, split.every(({ nodes }) => nodes === 0));
  bar.setAttribute("aria-label", split.map(({ plugin, nodes }) => `${plugin || "feasible"} ${nodes}`).join(", "));
  keepChildren(bar, split, () => stamp("split-template"), (part, { plugin, nodes }) => {
    part.style.flexGrow = nodes;
    part.dataset.colour = plugin ? palette.index(plugin) : "feasible";
    part.title = `${plugin || "feasible"}: ${count(nodes)}`;
    setHidden(part, nodes === 0);
  });
}

function drawGroup(item, group, total, palette) {
  const text = parts(item);
  text.mark.dataset.colour = palette.index(group.plugin);
  setText(text.plugin, group.plugin);
  setText(text.nodes, `${group.exact ? "" : "at least "}${plural(group.nodes, "node")}, ${percent(group.nodes, total)}`);
  keepChildren(text.reasons, group.reasons, () => stamp("reason-template"), (line, reason) => {
    const words = parts(line);
    setText(words.reason, reason.reason);
    setText(words.code, reason.resolvable ? "" : "preemption would not help");
    setText(words.nodes, count(reason.nodes));
  });
}
