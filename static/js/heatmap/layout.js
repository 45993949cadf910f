/**
 * Where tiles go. Pure; all lengths in device pixels.
 *
 * Every panel shows all nodes in the same grid, so that a node sits at the same place in each: a
 * large panel for the total, and below it one small panel per plugin.
 */

const HERO_ASPECT_WIDE = 2.7;
const HERO_ASPECT_NARROW = 1.15;
const NARROW_CSS = 620;
const LABEL_CSS = 36;
const GUTTER_CSS = 20;
const LARGEST_TILE_CSS = 30;
const SMALLEST_PANEL_CSS = 150;
const GAP_FROM_CSS = 5;
/** Room on every side for the rings of marked nodes. */
export const INSET_CSS = 5;
/** Small panels stand side by side as long as their tiles have this size; the first that fits. */
const GOOD_TILES_CSS = { wide: [4, 3], narrow: [2] };

/**
 * {cols, rows, width, height, panels: [{x, y, tile, gap, width, height, room}]} for `count` nodes in
 * `panels` panels; `width` is the room there is, a panel's `room` how wide its label may be.
 */
export function tileLayout({ count, panels, width, dpr = 1 }) {
  const px = (css) => Math.round(css * dpr);
  const inset = px(INSET_CSS);
  const room = width - 2 * inset;
  const cols = columns(count, room, dpr);
  const rows = Math.max(1, Math.ceil(count / cols));
  const label = px(LABEL_CSS);
  const hero = panel(inset, label, tileSize(room, cols, px(LARGEST_TILE_CSS)), cols, rows, dpr);
  const top = hero.y + hero.height + px(GUTTER_CSS);
  const small = smallPanels({ panels: panels - 1, left: inset, top, width: room, cols, rows, dpr, hero });
  const all = [{ ...hero, room }, ...small];
  const height = Math.max(...all.map((p) => p.y + p.height)) + inset;
  return { cols, rows, count, width, height, label, panels: all };
}

/** Columns that give the large panel a pleasant shape, then as many as fit at that tile size. */
function columns(count, width, dpr) {
  const aspect = width / dpr < NARROW_CSS ? HERO_ASPECT_NARROW : HERO_ASPECT_WIDE;
  const ideal = Math.max(1, Math.ceil(Math.sqrt(count * aspect)));
  const largest = Math.round(LARGEST_TILE_CSS * dpr);
  const tile = tileSize(width, ideal, largest);
  if (tile >= largest) return Math.min(count || 1, Math.floor(width / tile));
  return Math.min(count || 1, Math.max(ideal, Math.floor(width / tile)));
}

function tileSize(width, cols, largest) {
  return Math.max(1, Math.min(largest, Math.floor(width / cols)));
}

function panel(x, y, tile, cols, rows, dpr) {
  const gap = tile >= GAP_FROM_CSS * dpr ? Math.max(1, Math.round(dpr * (tile >= 14 * dpr ? 2 : 1))) : 0;
  return { x, y, tile, gap, width: tile * cols, height: tile * rows };
}

/** As many side by side as keep their tiles legible, all of one size. */
function smallPanels({ panels, left, top, width, cols, rows, dpr, hero }) {
  if (panels <= 0) return [];
  const gutter = Math.round(GUTTER_CSS * dpr);
  const across = panelsAcross({ panels, width, cols, dpr, gutter });
  const room = Math.floor((width - gutter * (across - 1)) / across);
  const tile = Math.min(tileSize(room, cols, hero.tile), hero.tile);
  const label = Math.round(LABEL_CSS * dpr);
  const pitchX = Math.floor((width + gutter) / across);
  const pitchY = tile * rows + label + gutter;
  return Array.from({ length: panels }, (_, i) => ({
    ...panel(left + (i % across) * pitchX, top + label + Math.floor(i / across) * pitchY, tile, cols, rows, dpr),
    room,
  }));
}

function panelsAcross({ panels, width, cols, dpr, gutter }) {
  const sizes = GOOD_TILES_CSS[width / dpr < NARROW_CSS ? "narrow" : "wide"];
  const fits = sizes.map((size) => {
    const least = Math.max(cols * Math.round(size * dpr), SMALLEST_PANEL_CSS * dpr);
    return Math.floor((width + gutter) / (least + gutter));
  });
  return Math.max(1, Math.min(panels, fits.find((across) => across > 1) ?? 1));
}
