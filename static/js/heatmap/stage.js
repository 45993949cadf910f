/** The map with its legend, inspector and states: draws one matrix, again when a control moves. */
import { count } from "../format.js";
import { one, parts, setHidden, setText } from "../lib/dom.js";
import { Inspector } from "./inspector.js";
import { Legend } from "./legend.js";
import { buildLut, PluginPalette } from "./lut.js";
import { buildModel } from "./model.js";
import { RawScores } from "./sources.js";
import { TableView } from "./table_view.js";
import { TilesView } from "./tiles_view.js";

const GONE = {
  expired: "It is no longer kept. Matrices stay for the latest cycles, for pods that wait and for each pod's last failed attempt. The decision itself is still there.",
  dropped: "It was dropped under load: when the recorder falls behind, matrices go first. The decision itself is still there.",
  none: "No node was looked at in this cycle, so there is nothing to colour.",
};

export class HeatmapStage {
  #controls;
  #theme;
  #released;
  #palette = new PluginPalette();
  #luts = { dark: buildLut("dark"), light: buildLut("light") };
  #tiles;
  #table;
  #inspector = new Inspector(one("#inspector"));
  #legend = new Legend(one("#heat-legend"));
  #raw;
  #matrix = null;
  #nodes = null;
  #model = null;
  #pointed = -1;
  #pinned = "";

  constructor({ api, controls, theme, touched, released }) {
    this.#controls = controls;
    this.#theme = theme;
    this.#released = released;
    this.#raw = new RawScores(api, () => this.#inspect());
    const handlers = { point: (node) => this.#point(node), pin: (node) => this.#pin(node), touched };
    this.#tiles = new TilesView(one("#heat-tiles"), handlers);
    this.#table = new TableView(one("#heat-table"), handlers);
    one("#heat-clear").addEventListener("click", () => controls.clearFilter());
  }

  show(matrix, nodes) {
    this.#matrix = matrix;
    this.#nodes = nodes;
    setHidden(one("#heat-state"), true);
    setHidden(one("#heat"), false);
    setHidden(one("#heat-controls"), false);
    this.#controls.offer(matrix);
    this.redraw();
  }

  redraw() {
    if (!this.#matrix) return;
    const theme = this.#theme();
    const { filter } = this.#controls;
    const lut = this.#luts[theme];
    this.#model = buildModel(this.#matrix, this.#nodes, filter, this.#palette);
    const view = this.#controls.viewFor(this.#matrix.nodes);
    const nothing = this.#model.order.length === 0;
    setHidden(one("#heat-tiles"), nothing || view !== "tiles");
    setHidden(one("#heat-table"), nothing || view !== "table");
    setHidden(one("#heat-nothing"), !nothing);
    if (view === "tiles") this.#tiles.show(this.#model, lut);
    else this.#table.show(this.#model, theme);
    this.#legend.show(this.#model, lut, this.#palette, theme, filter.scale);
    const { order } = this.#model;
    setText(one("#heat-count"), order.length === this.#matrix.nodes ? `${count(order.length)} nodes` : `${count(order.length)} of ${count(this.#matrix.nodes)} nodes`);
    this.#tiles.pin(this.#pinnedNode());
    this.#inspect();
  }

  /** The cycle has no matrix (any more), or it could not be had. */
  missing(sequence, error, { base, retry }) {
    const state = one("#heat-state");
    const text = parts(state);
    const gone = error.status === 404;
    const latest = sequence === "latest";
    const known = Boolean(GONE[error.body?.matrix]);
    setHidden(one("#heat"), true);
    setHidden(one("#heat-controls"), true);
    setHidden(state, false);
    this.#matrix = null;
    setText(text.title, missingTitle(sequence, gone, known));
    setText(text.text, latest && gone ? "The map appears with the first pod that is tried." : gone ? GONE[error.body?.matrix] ?? error.message : error.message);
    setHidden(text.action, gone && (latest || !known));
    setText(text.action, gone ? "Open the decision" : "Try again");
    text.action.onclick = gone ? () => location.assign(`${base}cycles/${sequence}/`) : retry;
  }

  #point(node) {
    this.#pointed = node;
    if (node < 0) this.#released();
    this.#inspect();
  }

  /** Pinned by name, so that it stays the same node when nodes come and go. */
  #pin(node) {
    this.#pinned = node < 0 ? "" : this.#nodes.names[node];
    this.#tiles.pin(node);
    this.#inspect();
  }

  #pinnedNode() {
    return this.#pinned ? this.#nodes.names.indexOf(this.#pinned) : -1;
  }

  #inspect() {
    if (!this.#model) return;
    const pinned = this.#pinnedNode();
    const node = this.#pointed >= 0 && this.#pointed < this.#matrix?.nodes ? this.#pointed : pinned;
    if (node < 0 || !this.#matrix) {
      this.#inspector.clear();
      return;
    }
    const raw = this.#matrix.scored && this.#model.sums[node] >= 0 ? this.#raw.of(this.#matrix.sequence) : null;
    this.#inspector.show(this.#model, node, raw, node === pinned);
  }
}

function missingTitle(sequence, gone, known) {
  if (!gone) return "The map could not be loaded";
  if (sequence === "latest") return "No cycle has been recorded yet";
  return known ? `The matrix of cycle ${sequence} is not there` : `There is no cycle ${sequence}`;
}
