/** Painting: codes -> pixels (pure), and the marks on top (2D context). */
import { hatchBits } from "./lut.js";
import { tileRect } from "./pick.js";

const HATCH = hatchBits();

/**
 * Paint one panel into `pixels` (one Uint32 per pixel, `stride` to a row): slot s shows the code of
 * node order[s]. Gaps are left as they are.
 */
export function paintPanel(pixels, stride, panel, cols, order, codes, lut, dpr = 1) {
  const side = panel.tile - panel.gap;
  const shift = dpr >= 2 ? 1 : 0;
  for (let slot = 0; slot < order.length; slot += 1) {
    const code = codes[order[slot]];
    const left = panel.x + (slot % cols) * panel.tile;
    const top = panel.y + Math.floor(slot / cols) * panel.tile;
    if (lut.hatch[code] === 0 || side < 3) paintPlain(pixels, stride, left, top, side, lut, code);
    else paintHatched(pixels, stride, left, top, side, lut, code, shift);
  }
}

/** Tiles too small for a hatch show the mean of its two colours' stronger one: the ink. */
function paintPlain(pixels, stride, left, top, side, lut, code) {
  const colour = side < 3 ? lut.fill[code] : lut.ink[code];
  for (let y = top; y < top + side; y += 1) {
    const start = y * stride + left;
    pixels.fill(colour, start, start + side);
  }
}

function paintHatched(pixels, stride, left, top, side, lut, code, shift) {
  const fill = lut.fill[code];
  const ink = lut.ink[code];
  const pattern = lut.hatch[code] * 64;
  for (let y = top; y < top + side; y += 1) {
    const bitsRow = pattern + ((y >> shift) & 7) * 8;
    const row = y * stride;
    for (let x = left; x < left + side; x += 1) {
      pixels[row + x] = HATCH[bitsRow + ((x >> shift) & 7)] ? ink : fill;
    }
  }
}

/** A double ring around a slot in every panel: seen on any colour. */
export function ringSlot(context, layout, slot, { inner, outer, weight }) {
  layout.panels.forEach((panel, i) => {
    const { x, y, width, height } = tileRect(layout, i, slot);
    const grow = Math.max(weight, Math.ceil((weight * 4 - width) / 2));
    strokeAround(context, x, y, width, height, grow + weight, weight, outer);
    strokeAround(context, x, y, width, height, grow, weight, inner);
  });
}

function strokeAround(context, x, y, width, height, distance, line, colour) {
  context.strokeStyle = colour;
  context.lineWidth = line;
  const offset = distance - line / 2;
  context.strokeRect(x - offset, y - offset, width + 2 * offset, height + 2 * offset);
}
