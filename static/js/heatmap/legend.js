/** The legend: the ramp, and each rejecting plugin with its colour, hatch and number of nodes. */
import { keepChildren, parts, setText, stamp } from "../lib/dom.js";
import { count } from "../format.js";
import { hatched, MAX_SCORE, NOT_EVALUATED_CODE, REJECTED_CODE, UNSCORED_CODE } from "./lut.js";
import { reasonCounts } from "./order.js";

export class Legend {
  #parts;
  #key = "";

  constructor(root) {
    this.#parts = parts(root);
  }

  show(model, lut, palette, theme, scale) {
    const fit = scale === "fit";
    setText(this.#parts.caption, fit ? "score, from the lowest to the highest of this cycle" : "normalised score; the total from its lowest to its highest");
    setText(this.#parts.low, fit ? "low" : "0");
    setText(this.#parts.high, fit ? "high" : "100");
    if (theme !== this.#key) this.#drawRamp(lut);
    this.#key = theme;
    keepChildren(this.#parts.list, legendItems(model, palette), () => stamp("legend-template"), (item, entry) => {
      const text = parts(item);
      setText(text.name, entry.name);
      setText(text.count, entry.nodes === null ? "" : count(entry.nodes));
      item.title = entry.title;
      const key = `${theme}${entry.code}`;
      if (item.dataset.key === key) return;
      item.dataset.key = key;
      drawSwatch(text.swatch, lut, entry.code);
    });
  }

  #drawRamp(lut) {
    const { ramp } = this.#parts;
    const image = new ImageData(ramp.width, ramp.height);
    const pixels = new Uint32Array(image.data.buffer);
    pixels.forEach((_, i) => {
      pixels[i] = lut.fill[Math.min(MAX_SCORE, Math.floor((i % ramp.width) / 2))];
    });
    ramp.getContext("2d").putImageData(image, 0, 0);
  }
}

/** [{name, nodes, code, title}]: rejecting plugins, most nodes first, then what else occurs. */
export function legendItems(model, palette) {
  const { matrix } = model;
  const counts = reasonCounts(matrix);
  const byPlugin = new Map();
  matrix.reasons.forEach(([plugin, reason], i) => {
    const entry = byPlugin.get(plugin) ?? { name: plugin, nodes: 0, code: REJECTED_CODE + palette.index(plugin), title: "" };
    entry.nodes += counts[i];
    if (counts[i] > 0) entry.title += `${entry.title ? "\n" : ""}${counts[i]} × ${reason}`;
    byPlugin.set(plugin, entry);
  });
  const items = [...byPlugin.values()].filter((entry) => entry.nodes > 0).sort((a, b) => b.nodes - a.nodes);
  const skipped = matrix.rejection.filter((reason) => reason < -1).length;
  if (skipped) items.push({ name: "not evaluated", nodes: skipped, code: NOT_EVALUATED_CODE, title: "" });
  const unscored = matrix.rejection.filter((reason, i) => reason === -1 && model.sums[i] < 0).length;
  if (unscored) items.push({ name: "feasible, not scored", nodes: unscored, code: UNSCORED_CODE, title: "" });
  return items;
}

function drawSwatch(canvas, lut, code) {
  const image = new ImageData(canvas.width, canvas.height);
  const pixels = new Uint32Array(image.data.buffer);
  pixels.forEach((_, i) => {
    const on = hatched(lut.hatch[code], i % canvas.width, Math.floor(i / canvas.width));
    pixels[i] = on ? lut.ink[code] : lut.fill[code];
  });
  canvas.getContext("2d").putImageData(image, 0, 0);
}
