/** Line charts over seconds: a thin wrapper around the vendored uPlot (a classic script). */
import { count } from "./format.js";

const HEIGHT = 190;
const MOST_SECONDS = 900;
/** A run that has just begun has a chart of this width, not of one second. */
const LEAST_SECONDS = 30;

/** Rows [[t, a, b, ...], ...] -> uPlot's columns, of the given fields. Pure. */
export function columnsOf(rows, fields) {
  return [rows.map((row) => row[0]), ...fields.map((field) => rows.map((row) => row[field] ?? null))];
}

/**
 * A row for every second: seconds in which nothing was told are not sent, so each value of theirs is
 * `fill(the last value)`. Pure.
 */
export function everySecond(rows, fill) {
  const filled = [];
  for (const row of rows) {
    const last = filled.at(-1);
    for (let second = last ? last[0] + 1 : row[0]; second < row[0]; second += 1) {
      filled.push([second, ...last.slice(1).map(fill)]);
    }
    filled.push(row);
  }
  return filled.slice(-MOST_SECONDS);
}

export class LineChart {
  #root;
  #series;
  #plot = null;
  #rows = [];

  /** series: [{label, field, colour: name of a CSS property, fill?, width?, dash?}]. */
  constructor(root, series) {
    this.#root = root;
    this.#series = series;
    new ResizeObserver(() => this.#resize()).observe(root);
  }

  show(rows) {
    if (rows === this.#rows && this.#plot) return;
    this.#rows = rows;
    if (rows.length === 0) return;
    const data = columnsOf(rows, this.#series.map((one) => one.field));
    if (this.#plot) this.#plot.setData(data);
    else this.#make(data);
  }

  /** The theme has changed: uPlot takes its colours once, so it is made again. */
  recolour() {
    this.#plot?.destroy();
    this.#plot = null;
    const rows = this.#rows;
    this.#rows = [];
    this.show(rows);
  }

  #make(data) {
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    const grid = { stroke: colour("--line"), width: 1 };
    const axis = { stroke: colour("--text-faint"), grid, ticks: { show: false }, font: `11px ${style.getPropertyValue("--font")}` };
    const options = {
      width: Math.max(200, this.#root.clientWidth),
      height: HEIGHT,
      padding: [8, 8, 0, 0],
      cursor: { y: false, points: { size: 6 } },
      legend: { live: true },
      scales: { x: { time: true, range: secondsShown }, y: { range: (_, low, high) => [0, niceTop(high)] } },
      axes: [
        { ...axis, size: 26, space: 70, values: (_, ticks) => ticks.map(clockLabel) },
        { ...axis, size: 48, values: (_, ticks) => ticks.map((tick) => (Number.isInteger(tick) ? count(tick) : "")) },
      ],
      series: [
        { label: "time", value: (_, t) => (t === null ? "" : clockLabel(t)) },
        ...this.#series.map((one) => ({
          label: one.label,
          stroke: colour(one.colour),
          width: one.width ?? 1.5,
          dash: one.dash,
          fill: one.fill ? colour(one.fill) : undefined,
          points: { show: false },
          value: (_, value) => (value === null ? "–" : count(value)),
        })),
      ],
    };
    this.#plot = new globalThis.uPlot(options, data, this.#root);
  }

  #resize() {
    const width = this.#root.clientWidth;
    if (this.#plot && width && width !== this.#plot.width) this.#plot.setSize({ width, height: HEIGHT });
  }
}

/** uPlot makes a day of a single second, so that one is its own end. */
function secondsShown({ data: [seconds] }, low, high) {
  const end = seconds.length === 1 ? seconds[0] : high;
  return [Math.min(low, end - LEAST_SECONDS), end];
}

/** The scale's top: at least 4, else a little above the highest value. Pure. */
export function niceTop(high) {
  if (!Number.isFinite(high) || high <= 4) return 4;
  const step = 10 ** Math.floor(Math.log10(high));
  return Math.ceil((high * 1.02) / (step / 2)) * (step / 2);
}

function clockLabel(t) {
  const date = new Date(t * 1000);
  const two = (n) => String(n).padStart(2, "0");
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}
