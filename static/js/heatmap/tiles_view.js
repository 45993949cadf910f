/** The canvas: tiles, marks, labels, pointer and keyboard. */
import { keepChildren, parts, setText, stamp } from "../lib/dom.js";
import { NOTHING, paintPanel, ringSlot } from "./draw.js";
import { tileLayout } from "./layout.js";
import { nodeInWords } from "./model.js";
import { moveSlot, pickTile, tileRect } from "./pick.js";
import { Tip } from "./tip.js";

export class TilesView {
  #root;
  #cells;
  #marks;
  #labels;
  #tip;
  #handlers;
  #model = null;
  #layout = null;
  #lut = null;
  #image = null;
  #pixels = null;
  /** By panel, the code that each slot shows. */
  #shown = [];
  #layoutKey = "";
  #cursor = -1;
  #pinned = -1;

  /** handlers: {point(node or -1), pin(node or -1), touched()}. */
  constructor(root, handlers) {
    this.#root = root;
    this.#cells = root.querySelector("#heat-cells");
    this.#marks = root.querySelector("#heat-marks");
    this.#labels = root.querySelector("#heat-labels");
    this.#tip = new Tip(root.querySelector("#heat-tip"), root);
    this.#handlers = handlers;
    this.#marks.addEventListener("pointermove", (event) => this.#pointed(event));
    this.#marks.addEventListener("pointerleave", () => this.#left());
    this.#marks.addEventListener("click", (event) => this.#clicked(event));
    this.#marks.addEventListener("keydown", (event) => this.#pressed(event));
    this.#marks.addEventListener("focus", () => this.#focused());
    this.#marks.addEventListener("blur", () => this.#left());
    new ResizeObserver(() => this.draw()).observe(root);
  }

  show(model, lut) {
    if (lut !== this.#lut) this.#shown.forEach((codes) => codes.fill(NOTHING));
    this.#model = model;
    this.#lut = lut;
    this.draw();
  }

  pin(node) {
    this.#pinned = node;
    this.#drawMarks();
  }

  draw() {
    const width = this.#root.clientWidth;
    if (!this.#model || !width) return;
    this.#arrange(width);
    const { order, panels } = this.#model;
    const context = this.#cells.getContext("2d");
    panels.forEach((panel, i) => {
      const { width: stride, cols, panels: boxes } = this.#layout;
      const touched = paintPanel(this.#pixels, stride, boxes[i], cols, order, panel.codes, this.#lut, devicePixelRatio, this.#shown[i]);
      if (touched) context.putImageData(this.#image, 0, 0, boxes[i].x, touched.top, boxes[i].width, touched.bottom - touched.top);
    });
    this.#drawMarks();
    this.#drawLabels();
  }

  #arrange(width) {
    const count = this.#model.order.length;
    const panels = this.#model.panels.length;
    const key = [count, panels, width, devicePixelRatio].join();
    if (key === this.#layoutKey) return;
    this.#layoutKey = key;
    this.#layout = tileLayout({ count, panels, width: Math.round(width * devicePixelRatio), dpr: devicePixelRatio });
    for (const canvas of [this.#cells, this.#marks]) {
      canvas.width = this.#layout.width;
      canvas.height = this.#layout.height;
      canvas.style.width = `${this.#layout.width / devicePixelRatio}px`;
      canvas.style.height = `${this.#layout.height / devicePixelRatio}px`;
    }
    this.#image = new ImageData(this.#layout.width, this.#layout.height);
    this.#pixels = new Uint32Array(this.#image.data.buffer);
    this.#shown = Array.from({ length: panels }, () => new Uint8Array(count).fill(NOTHING));
  }

  #drawMarks() {
    if (!this.#layout) return;
    const context = this.#marks.getContext("2d");
    context.clearRect(0, 0, this.#layout.width, this.#layout.height);
    const style = getComputedStyle(this.#root);
    const weight = Math.max(1, Math.round(devicePixelRatio * (this.#layout.panels[0].tile >= 10 * devicePixelRatio ? 2 : 1.5)));
    const outer = style.getPropertyValue("--mark-outer");
    const rings = [
      [this.#model.matrix.chosen, style.getPropertyValue("--mark-chosen")],
      [this.#pinned, style.getPropertyValue("--mark-pinned")],
      [this.#cursor, style.getPropertyValue("--mark-cursor")],
    ];
    for (const [node, inner] of rings) {
      const slot = node < 0 ? -1 : this.#model.order.indexOf(node);
      if (slot >= 0) ringSlot(context, this.#layout, slot, { inner, outer, weight });
    }
  }

  #drawLabels() {
    const dpr = devicePixelRatio;
    keepChildren(this.#labels, this.#model.panels, () => stamp("panel-label-template"), (label, panel, i) => {
      const box = this.#layout.panels[i];
      const text = parts(label);
      setText(text.name, panel.name);
      label.title = panel.name;
      setText(text.note, noteOf(panel));
      label.style.transform = `translate(${box.x / dpr}px, ${(box.y - this.#layout.label) / dpr}px)`;
      label.style.width = `${box.room / dpr}px`;
    });
  }

  #pointed(event) {
    this.#handlers.touched();
    const hit = this.#hit(event);
    this.#moveCursor(hit ? this.#model.order[hit.slot] : -1);
    if (!hit) this.#tip.hide();
    else this.#tip.show(event, this.#model.names[this.#cursor], nodeInWords(this.#model, this.#cursor, this.#model.panels[hit.panel].index));
  }

  #left() {
    this.#tip.hide();
    this.#moveCursor(-1);
  }

  #clicked(event) {
    const hit = this.#hit(event);
    const node = hit ? this.#model.order[hit.slot] : -1;
    this.#handlers.pin(node === this.#pinned ? -1 : node);
  }

  #pressed(event) {
    if (!this.#model || event.ctrlKey || event.metaKey || event.altKey) return;
    this.#handlers.touched();
    const { order, matrix } = this.#model;
    if (event.key === "Escape") this.#handlers.pin(-1);
    else if (event.key === "Enter" || event.key === " ") this.#handlers.pin(this.#cursor === this.#pinned ? -1 : this.#cursor);
    else if (event.key === "c" || event.key === "C") this.#goTo(order.indexOf(matrix.chosen));
    else if (!this.#goTo(moveSlot(this.#layout, Math.max(0, order.indexOf(this.#cursor)), event.key))) return;
    event.preventDefault();
  }

  #goTo(slot) {
    if (slot === null || slot < 0) return false;
    this.#moveCursor(this.#model.order[slot]);
    const { y } = tileRect(this.#layout, 0, slot);
    const top = this.#marks.getBoundingClientRect().top + y / devicePixelRatio;
    if (top < 80 || top > innerHeight - 80) scrollBy({ top: top - innerHeight / 2 });
    return true;
  }

  /** The keyboard begins at the pinned node, or the chosen one, or the first. */
  #focused() {
    if (!this.#model || !this.#marks.matches(":focus-visible")) return;
    const { order, matrix } = this.#model;
    const start = [this.#pinned, matrix.chosen, order[0] ?? -1].find((node) => node >= 0 && order.includes(node));
    if (start !== undefined) this.#moveCursor(start);
  }

  #moveCursor(node) {
    if (node === this.#cursor) return;
    this.#cursor = node;
    this.#drawMarks();
    this.#handlers.point(node);
  }

  #hit(event) {
    if (!this.#layout) return null;
    return pickTile(this.#layout, event.offsetX * devicePixelRatio, event.offsetY * devicePixelRatio);
  }
}

function noteOf(panel) {
  const weight = panel.weight === null ? "" : `weight ${panel.weight}`;
  const range = panel.range ? `${panel.range.low} to ${panel.range.high}` : "";
  return [weight, range].filter(Boolean).join(" · ");
}
