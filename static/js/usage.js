/** Node usage at a glance: per resource the sum, and how many nodes are how full. */
import { amount, count, percent } from "./format.js";
import { keepChildren, one, parts, setHidden, setText, stamp } from "./lib/dom.js";

const NEARLY_FULL = 0.9;

export function showUsage(usage) {
  const known = Boolean(usage?.nodes);
  setHidden(one("#usage-empty"), known);
  setText(one("#usage-note"), known ? `${count(usage.nodes)} nodes, requested of allocatable` : "");
  setHidden(one("#worst-block"), !known || usage.worst.length === 0);
  const resources = known ? resourcesOf(usage) : [];
  keepChildren(one("#usage"), resources, () => stamp("usage-template"), renderResource);
  if (known) renderWorst(usage);
}

/** [{name, requested, allocatable, share, bins}] of the resources that any node has. Pure. */
export function resourcesOf({ resources, allocatable, requested, histogram }) {
  return resources
    .map((name, i) => ({
      name,
      requested: requested[i],
      allocatable: allocatable[i],
      share: allocatable[i] ? requested[i] / allocatable[i] : 0,
      bins: histogram[name] ?? [],
    }))
    .filter((resource) => resource.allocatable > 0);
}

function renderResource(row, resource) {
  const text = parts(row);
  const share = percent(resource.requested, resource.allocatable);
  setText(text.name, resource.name);
  setText(text.amount, `${amount(resource.name, resource.requested)} of ${amount(resource.name, resource.allocatable)} · ${share}`);
  text.meter.setAttribute("aria-label", `${resource.name}: ${share} requested`);
  text.fill.style.width = `${Math.min(100, resource.share * 100)}%`;
  renderHistogram(text.histogram, resource);
}

function renderHistogram(root, { name, bins }) {
  const most = Math.max(1, ...bins);
  root.setAttribute("aria-label", `Nodes by ${name} usage, in steps of ten percent: ${bins.join(", ")}`);
  keepChildren(root, bins, () => stamp("bin-template"), (bin, nodes, i) => {
    bin.title = `${count(nodes)} nodes are ${i * 10} to ${i * 10 + 10} % full`;
    bin.firstElementChild.style.height = nodes ? `${Math.max(4, (100 * nodes) / most)}%` : "0";
  });
}

/** The columns are the resources that any node has, as in the bars. */
function renderWorst({ resources: all, allocatable, worst }) {
  const columns = [...all.keys()].filter((i) => allocatable[i] > 0);
  const resources = columns.map((i) => all[i]);
  const head = one("#worst-head");
  keepChildren(head, ["Node", ...resources, "Pods"], () => document.createElement("th"), (cell, name, i) => {
    cell.scope = "col";
    cell.classList.toggle("num", i > 0);
    setText(cell, name);
  });
  keepChildren(one("#worst"), worst, () => stamp("worst-template"), (row, node) => {
    setText(parts(row).node, node.node);
    const cells = [...columns.map((i) => ({ share: node.fractions[i], text: percent(node.fractions[i], 1) })), { share: node.allowed_pods ? node.pods / node.allowed_pods : 0, text: `${node.pods}/${node.allowed_pods}` }];
    while (row.children.length > cells.length + 1) row.lastElementChild.remove();
    while (row.children.length < cells.length + 1) row.append(stamp("worst-cell-template"));
    cells.forEach(({ share, text }, i) => {
      const cell = parts(row.children[i + 1]);
      setText(cell.text, text);
      cell.fill.style.width = `${Math.min(100, share * 100)}%`;
      row.children[i + 1].classList.toggle("share-high", share >= NEARLY_FULL);
    });
  });
}
