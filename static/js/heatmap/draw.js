/** Painting: codes -> pixels (pure), and the marks on top (2D context). */
import { hatchBits } from "./lut.js";
import { tileRect } from "./pick.js";

const HATCH = hatchBits();

/** A code that no cell has: a slot that shows it is painted whatever it shall show. */
export const NOTHING = 255;

/**
 * Paint one panel into `pixels` (one Uint32 per pixel, `stride` to a row): slot s shows the code of
 * node order[s]. Gaps are left as they are. `shown` is what each slot shows already (NOTHING: not
 * painted yet); rows of tiles that stay the same are left alone.
 *
 * Returns the lines of pixels that were touched, {top, bottom} with `bottom` behind the last, or
 * null where none was.
 */
export function paintPanel(pixels, stride, panel, cols, order, codes, lut, dpr = 1, shown = new Uint8Array(order.length).fill(NOTHING)) {
  let top = -1;
  let bottom = -1;
  for (let start = 0, y = panel.y; start < order.length; start += cols, y += panel.tile) {
    const end = Math.min(start + cols, order.length);
    if (!takeOver(shown, start, end, order, codes)) continue;
    paintRow(pixels, stride, panel, y, shown, start, end, lut, dpr >= 2 ? 1 : 0);
    if (top < 0) top = y;
    bottom = y + panel.tile - panel.gap;
  }
  return top < 0 ? null : { top, bottom };
}

/** Write the codes of slots [start, end) into `shown`; true where one of them is another. */
function takeOver(shown, start, end, order, codes) {
  let differs = false;
  for (let slot = start; slot < end; slot += 1) {
    const code = codes[order[slot]];
    if (shown[slot] === code) continue;
    shown[slot] = code;
    differs = true;
  }
  return differs;
}

/** One line of pixels for the whole row, copied as often as a tile is high; hatches go on top. */
function paintRow(pixels, stride, panel, y, shown, start, end, lut, shift) {
  const side = panel.tile - panel.gap;
  // Tiles too small for a hatch show the stronger of its two colours: the fill.
  const colours = side < 3 ? lut.fill : lut.ink;
  const line = y * stride;
  let left = line + panel.x;
  for (let slot = start; slot < end; slot += 1, left += panel.tile) {
    const colour = colours[shown[slot]];
    for (let x = left; x < left + side; x += 1) pixels[x] = colour;
  }
  for (let below = 1; below < side; below += 1) pixels.copyWithin(line + below * stride + panel.x, line + panel.x, left);
  if (side < 3) return;
  for (let slot = start; slot < end; slot += 1) {
    if (lut.hatch[shown[slot]] !== 0) paintHatched(pixels, stride, panel.x + (slot - start) * panel.tile, y, side, lut, shown[slot], shift);
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
