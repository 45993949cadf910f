/** The score table of one cycle: raw, normalised and weighted of the best nodes. */
import { scoreColumns } from "./decision_detail.js";
import { camelBreaks, count } from "./format.js";
import { keepChildren, parts, setHidden, setText, stamp } from "./lib/dom.js";

/** Rank, node and total stand before the plugins. */
const FIXED_COLUMNS = 3;

export function drawScores(view, cycle) {
  const best = cycle.best ?? [];
  const columns = scoreColumns(best, cycle.weights);
  const scored = columns.length > 0;
  setHidden(view.scores, !scored);
  setHidden(view.noScores, scored);
  setText(view.noScores, cycle.nodes_feasible === 1 ? "The only feasible node needs no score." : "Nothing was scored.");
  setText(view.scoresNote, scored ? `the ${count(best.length)} best; weighted, below it raw → normalised` : "");
  keepChildren(view.scoresHead, ["#", "Node", "Total", ...columns], () => stamp("score-head-template"), (cell, column, i) => {
    const text = parts(cell);
    cell.classList.toggle("num", i !== 1);
    setText(text.name, camelBreaks(column.name ?? column));
    setText(text.weight, column.weight ? `× ${column.weight}` : "");
  });
  keepChildren(view.scoresBody, best, () => stamp("score-row-template"), (row, node, i) => drawRow(row, node, i, columns, cycle));
}

function drawRow(row, node, index, columns, cycle) {
  const text = parts(row);
  row.classList.toggle("score-chosen", node.node === cycle.node);
  setText(text.rank, index + 1);
  setText(text.node, node.node);
  setText(text.total, count(node.total));
  while (row.children.length > FIXED_COLUMNS + columns.length) row.lastElementChild.remove();
  while (row.children.length < FIXED_COLUMNS + columns.length) row.append(stamp("score-cell-template"));
  columns.forEach(({ name }, i) => {
    const [raw, normalised, weighted] = node.plugins[name];
    const cell = parts(row.children[FIXED_COLUMNS + i]);
    setText(cell.weighted, count(weighted));
    setText(cell.raw, `${count(raw)} → ${count(normalised)}`);
  });
}
