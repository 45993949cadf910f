/** The same cycle as rows of numbers: what a small cluster and a screen reader want. */
import { one, parts, setText, stamp } from "../lib/dom.js";
import { camelBreaks } from "../format.js";
import { VirtualList } from "../virtual_list.js";
import { TOTAL } from "./cells.js";
import { cssColour, luminance, MAX_SCORE, pluginColours, rampColour, REJECTED_CODE, UNSCORED_CODE } from "./lut.js";
import { describeNode, rankOf } from "./model.js";

const ROW_HEIGHT = 34;
/** Direction of the lines by plugin colour, as in the hatches of the tiles. */
const HATCH_ANGLES = [135, 45, 0, 90, 45, 90, 0, 135, 45, 0, 90, 135];

export class TableView {
  #list;
  #head;
  #root;
  #model = null;
  #theme = "dark";
  #handlers;

  /** handlers: {point(node), pin(node), touched()}. */
  constructor(root, handlers) {
    this.#root = root;
    this.#handlers = handlers;
    this.#head = one("#heat-table-head", root);
    this.#list = new VirtualList(one("#heat-table-list", root), {
      create: () => this.#create(),
      render: (row, index) => this.#render(row, this.#model.order[index]),
      kind: () => "node",
      key: (index) => this.#model.names[this.#model.order[index]],
      height: () => ROW_HEIGHT,
    });
  }

  show(model, theme) {
    this.#model = model;
    this.#theme = theme;
    this.#root.style.setProperty("--panels", model.panels.length);
    this.#drawHead();
    this.#list.setCount(model.order.length);
  }

  #drawHead() {
    const names = ["rank", "node", "verdict", ...this.#model.panels.map((panel) => panel.name)];
    const notes = ["", "", "", ...this.#model.panels.map((panel) => (panel.weight === null ? "" : `×\u00a0${panel.weight}`))];
    while (this.#head.children.length > names.length) this.#head.lastElementChild.remove();
    while (this.#head.children.length < names.length) this.#head.append(document.createElement("span"));
    names.forEach((name, i) => setText(this.#head.children[i], `${camelBreaks(name)} ${notes[i]}`.trim()));
  }

  #create() {
    const row = stamp("heat-row-template");
    const node = () => Number(row.dataset.node);
    row.addEventListener("pointerenter", () => this.#point(node()));
    row.addEventListener("focusin", () => this.#point(node()));
    row.addEventListener("click", () => this.#handlers.pin(node()));
    return row;
  }

  #point(node) {
    this.#handlers.touched();
    this.#handlers.point(node);
  }

  #render(row, node) {
    const said = describeNode(this.#model, node);
    const text = parts(row);
    row.dataset.node = node;
    row.dataset.kind = said.kind;
    setText(text.rank, rankOf(this.#model, node) || "");
    setText(text.name, said.name);
    setText(text.verdict, said.kind === "feasible" ? "" : [said.verdict, said.kind === "rejected" ? said.reason : ""].filter(Boolean).join(": "));
    text.verdict.title = text.verdict.textContent;
    this.#renderCells(row, node);
  }

  #renderCells(row, node) {
    const { panels, sums, matrix } = this.#model;
    const fixed = 3;
    while (row.children.length > fixed + panels.length) row.lastElementChild.remove();
    while (row.children.length < fixed + panels.length) row.append(stamp("heat-cell-template"));
    panels.forEach((panel, i) => {
      const cell = row.children[fixed + i];
      const value = panel.index < 0 ? sums[node] : matrix.scores[panel.index * matrix.nodes + node];
      setText(cell, value < 0 ? "" : value);
      this.#colour(cell, panel.codes[node], panel.index === TOTAL);
    });
  }

  /** The total's column shows who rejected a node; the score columns stay empty there. */
  #colour(cell, code, total) {
    if (code > MAX_SCORE && !total) {
      cell.style.background = "var(--cell-empty)";
    } else if (code >= REJECTED_CODE) {
      const [fill, ink] = pluginColours(this.#theme, code - REJECTED_CODE);
      cell.style.background = `repeating-linear-gradient(${HATCH_ANGLES[code - REJECTED_CODE]}deg, ${fill} 0 5px, ${ink} 5px 6px)`;
    } else if (code > MAX_SCORE) {
      cell.style.background = code === UNSCORED_CODE ? "var(--cell-unscored)" : "var(--cell-not-evaluated)";
    } else {
      const colour = rampColour(this.#theme, code / MAX_SCORE);
      cell.style.background = cssColour(colour);
      cell.style.color = luminance(colour) > 0.2 ? "#0b1014" : "#ffffff";
    }
  }
}
