/**
 * Colours of cells. A cell is one byte (its code); a code has a fill, and for rejected nodes an ink
 * and a hatch, so that plugins can be told apart without colour as well. Pure.
 *
 * Scores: one ramp of steadily rising lightness, safe for every kind of colour blindness; the
 * light theme runs through it the other way round, so that a high score always stands out.
 */

export const MAX_SCORE = 100;
export const NOT_EVALUATED_CODE = 101;
export const UNSCORED_CODE = 102;
export const REJECTED_CODE = 103;
export const PLUGIN_COLOURS = 12;
export const CODES = REJECTED_CODE + PLUGIN_COLOURS;
export const HATCH_SIZE = 8;

const RAMP = {
  dark: ["#1c2150", "#23407a", "#1f6490", "#20888f", "#3fab7f", "#8cc864", "#d9dd5f", "#fdf3a6"],
  light: ["#f3efc0", "#d0dd8a", "#8fc47c", "#46a482", "#1f8189", "#1f5f86", "#273f74", "#1d1d4d"],
};
const FLAT = {
  dark: { notEvaluated: "#262d34", unscored: "#5c7487" },
  light: { notEvaluated: "#dcdad2", unscored: "#8fa3b3" },
};
// Fill and ink by plugin colour. None of the ramp's hues, and each with a hatch of its own.
const REJECTED = {
  dark: [
    ["#6e2f24", "#c46a4e"], ["#5b2848", "#b9689a"], ["#62471a", "#c39a4a"], ["#3d3f44", "#8b9097"],
    ["#6b2335", "#cf6479"], ["#54341f", "#ad7f5e"], ["#472d5e", "#9a77bd"], ["#4c4c2c", "#9c9c62"],
    ["#703a14", "#d0853e"], ["#4a3a3a", "#a08585"], ["#5f2d5f", "#b573b5"], ["#333a4c", "#7f8aa8"],
  ],
  light: [
    ["#f0c3b3", "#b4472b"], ["#eac6dc", "#9b3d77"], ["#efd9a8", "#94670f"], ["#d5d6d8", "#6b7077"],
    ["#f4c2ca", "#b23149"], ["#e5cfbd", "#84552f"], ["#dccbec", "#6f479b"], ["#dedebb", "#70702d"],
    ["#f5d0ac", "#b05f11"], ["#dfd0d0", "#7b5c5c"], ["#e8c9e8", "#8d428d"], ["#ced4e2", "#53607f"],
  ],
};
// The filter plugins that come with kube-scheduler, so that each keeps its colour from page to page.
const KNOWN = [
  "NodeResourcesFit", "TaintToleration", "NodeAffinity", "NodeUnschedulable", "NodePorts",
  "NodeName", "InterPodAffinity", "PodTopologySpread", "VolumeBinding", "NodeVolumeLimits",
];

/** Which of the twelve colours a rejecting plugin has; new names take the next free one. */
export class PluginPalette {
  #indices = new Map(KNOWN.map((name, i) => [name, i]));

  index(plugin) {
    if (!this.#indices.has(plugin)) this.#indices.set(plugin, this.#indices.size % PLUGIN_COLOURS);
    return this.#indices.get(plugin);
  }
}

/** {fill, ink: Uint32Array(CODES), hatch: Uint8Array(CODES)} in the byte order of ImageData. */
export function buildLut(theme) {
  const fill = new Uint32Array(CODES);
  const ink = new Uint32Array(CODES);
  const hatch = new Uint8Array(CODES);
  for (let score = 0; score <= MAX_SCORE; score += 1) fill[score] = packed(rampColour(theme, score / MAX_SCORE));
  fill[NOT_EVALUATED_CODE] = packed(parseHex(FLAT[theme].notEvaluated));
  fill[UNSCORED_CODE] = packed(parseHex(FLAT[theme].unscored));
  ink.set(fill);
  REJECTED[theme].forEach(([background, line], i) => {
    fill[REJECTED_CODE + i] = packed(parseHex(background));
    ink[REJECTED_CODE + i] = packed(parseHex(line));
    hatch[REJECTED_CODE + i] = i + 1;
  });
  return { fill, ink, hatch };
}

/** [r, g, b] at `at` (0..1) of the score ramp. */
export function rampColour(theme, at) {
  const stops = RAMP[theme];
  const position = Math.min(1, Math.max(0, at)) * (stops.length - 1);
  const left = Math.min(stops.length - 2, Math.floor(position));
  const share = position - left;
  const from = parseHex(stops[left]);
  const to = parseHex(stops[left + 1]);
  return from.map((channel, i) => Math.round(channel + (to[i] - channel) * share));
}

/** Relative luminance as WCAG defines it: what decides between dark and light text on a cell. */
export function luminance([r, g, b]) {
  const linear = [r, g, b].map((channel) => {
    const value = channel / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
}

export function cssColour([r, g, b]) {
  return `rgb(${r} ${g} ${b})`;
}

/** Fill and ink of a plugin colour as CSS colours. */
export function pluginColours(theme, index) {
  return REJECTED[theme][index];
}

/** True where hatch `pattern` (0: none) has ink, at pixel (x, y) of its 8 x 8 tile. */
export function hatched(pattern, x, y) {
  const i = x & 7;
  const j = y & 7;
  switch (pattern) {
    case 1: return ((i + j) & 3) === 0; // diagonal /
    case 2: return ((i - j) & 3) === 0; // diagonal \
    case 3: return (j & 3) === 0; // horizontal
    case 4: return (i & 3) === 0; // vertical
    case 5: return ((i + j) & 7) === 0 || ((i - j) & 7) === 0; // crossed diagonals
    case 6: return (i & 3) === 0 && (j & 3) === 0; // dots
    case 7: return (i & 3) === 0 || (j & 3) === 0; // grid
    case 8: return ((i + j) & 7) < 2; // wide /
    case 9: return ((i - j) & 7) < 2; // wide \
    case 10: return (j & 7) < 2; // wide horizontal
    case 11: return (i & 7) < 2; // wide vertical
    case 12: return ((i >> 1) + (j >> 1)) % 2 === 0; // checks
    default: return false;
  }
}

/** All patterns as bits: bits[pattern * 64 + y * 8 + x]. */
export function hatchBits() {
  const bits = new Uint8Array((PLUGIN_COLOURS + 1) * 64);
  for (let pattern = 1; pattern <= PLUGIN_COLOURS; pattern += 1) {
    for (let i = 0; i < 64; i += 1) bits[pattern * 64 + i] = hatched(pattern, i & 7, i >> 3) ? 1 : 0;
  }
  return bits;
}

function parseHex(text) {
  const value = Number.parseInt(text.slice(1), 16);
  return [(value >> 16) & 255, (value >> 8) & 255, value & 255];
}

/** ImageData is R, G, B, A in memory: on a little-endian machine 0xAABBGGRR. */
function packed([r, g, b]) {
  return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
}
