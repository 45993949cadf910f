/** From a point to a tile and back, and where the arrow keys lead. Pure; device pixels. */

/** {panel, slot} under the point, or null between panels, in a gap row or behind the last node. */
export function pickTile(layout, x, y) {
  for (let i = 0; i < layout.panels.length; i += 1) {
    const { x: left, y: top, tile, width, height } = layout.panels[i];
    if (x < left || y < top || x >= left + width || y >= top + height) continue;
    const slot = Math.floor((y - top) / tile) * layout.cols + Math.floor((x - left) / tile);
    return slot < layout.count ? { panel: i, slot } : null;
  }
  return null;
}

/** The rectangle of a slot in a panel. */
export function tileRect(layout, panel, slot) {
  const { x, y, tile, gap } = layout.panels[panel];
  const side = tile - gap;
  return {
    x: x + (slot % layout.cols) * tile,
    y: y + Math.floor(slot / layout.cols) * tile,
    width: side,
    height: side,
  };
}

/** The slot that a key leads to, or null for a key that does not move. */
export function moveSlot(layout, slot, key) {
  const { cols, count } = layout;
  const steps = {
    ArrowLeft: -1,
    ArrowRight: 1,
    ArrowUp: -cols,
    ArrowDown: cols,
    PageUp: -cols * 5,
    PageDown: cols * 5,
  };
  if (count === 0) return null;
  if (key === "Home") return 0;
  if (key === "End") return count - 1;
  if (!(key in steps)) return null;
  const target = slot + steps[key];
  if (Math.abs(steps[key]) === cols && (target < 0 || target >= count)) return slot;
  return Math.min(count - 1, Math.max(0, target));
}
