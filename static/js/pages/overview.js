/** The overview: totals, throughput, queue depths, node usage, and the latest decisions. */
import { everySecond, LineChart } from "../chart.js";
import { outcomeKind, outcomeWord, whyOf } from "../cycle_row.js";
import { setCut } from "../cut_text.js";
import { clockTime, count, milliseconds, plural } from "../format.js";
import { keepChildren, one, parts, setHidden, setText, stamp } from "../lib/dom.js";
import { startRunPage } from "../shell.js";
import { showUsage } from "../usage.js";

const LATEST = 12;
/** Counter, label, what it counts: first cycles by their outcome, then bindings. */
const TOTALS = [
  ["scheduled", "scheduled", "cycles that found a node and went on to bind"],
  ["waiting", "held at Permit", "cycles that found a node and then had to wait"],
  ["unschedulable", "unschedulable", "cycles in which no node fitted"],
  ["error", "errors", "cycles that a fault ended"],
  ["bound", "bound", "pods with a node for good, those that had waited too"],
  ["bind_failed", "bindings failed", "given up; the pod is tried again"],
];
const LINKED = new Set(["scheduled", "waiting", "unschedulable", "error"]);

const throughput = new LineChart(one("#throughput-chart"), [
  { label: "scheduled", field: 1, colour: "--good", fill: "--good-wash", width: 2 },
  { label: "unschedulable", field: 2, colour: "--warn" },
  { label: "error", field: 3, colour: "--bad", dash: [4, 3] },
]);
const depths = new LineChart(one("#depths-chart"), [
  { label: "active", field: 1, colour: "--accent", fill: "--accent-wash", width: 2 },
  { label: "backoff", field: 2, colour: "--warn", dash: [6, 3] },
  { label: "unschedulable", field: 3, colour: "--bad" },
  { label: "gated", field: 4, colour: "--text-faint", dash: [2, 3] },
  { label: "held at Permit", field: 6, colour: "--wait", width: 2 },
]);

const { page, notices } = startRunPage({
  topics: ["overview", "cycles"],
  change(data, topics) {
    if (topics.has("overview")) showOverview(data.overview);
    if (topics.has("cycles")) showLatest(data.cycles);
  },
  themeChanged() {
    throughput.recolour();
    depths.recolour();
  },
});

function showOverview(frame) {
  showTotals(frame.totals);
  throughput.show(everySecond(frame.throughput, () => 0));
  depths.show(everySecond(frame.depths, (last) => last));
  setText(one("#throughput-now"), throughputInWords(frame.throughput));
  setText(one("#depths-now"), depthsInWords(frame.depths));
  showUsage(frame.usage);
  showRecorder(frame.recorder);
}

function showTotals(totals) {
  keepChildren(one("#totals"), TOTALS, () => stamp("total-template"), (tile, [key, label, note]) => {
    const text = parts(tile);
    const value = totals[key] ?? 0;
    tile.dataset.outcome = key;
    tile.classList.toggle("total-zero", value === 0);
    if (LINKED.has(key)) tile.href = `${page.base}cycles/?outcome=${key}`;
    setText(text.value, count(value));
    setText(text.label, label);
    setText(text.note, note);
  });
}

function throughputInWords(rows) {
  if (rows.length === 0) return "Nothing has been tried yet.";
  const [second, scheduled, unschedulable, error] = rows.at(-1);
  return `Latest, at ${clockTime(second)}: ${count(scheduled)} scheduled, ${count(unschedulable)} unschedulable, ${plural(error, "error")}.`;
}

function depthsInWords(rows) {
  if (rows.length === 0) return "The queue has not been seen yet.";
  const [, active, backoff, unschedulable, gated, inFlight, waiting] = rows.at(-1);
  return `Now: ${count(active)} active, ${count(backoff)} in backoff, ${count(unschedulable)} unschedulable, ${count(gated)} gated, ${count(inFlight)} in flight, ${count(waiting)} held at Permit.`;
}

function showRecorder(recorder) {
  const { matrices_dropped: dropped = 0, back_pressure_seconds: waited = 0, queued = 0, rows_refused: refused = 0 } = recorder ?? {};
  const words = [];
  if (refused) words.push(`the database refused ${plural(refused, "row")}: the worker's log names them`);
  if (dropped) words.push(`${plural(dropped, "matrix", "matrices")} dropped under load`);
  if (waited >= 0.1) words.push(`the scheduler waited ${waited.toFixed(1)} s for the recorder (back-pressure)`);
  if (words.length === 0) {
    notices.clear("recorder");
    return;
  }
  const queue = queued ? `; ${plural(queued, "row")} still to be written` : "";
  notices.set("recorder", { text: `${sentence(words.join("; "))}${queue}.${refused ? "" : " Decisions themselves are never dropped."}` });
}

function sentence(words) {
  return words.charAt(0).toUpperCase() + words.slice(1);
}

function showLatest({ cycles, skipped }) {
  setHidden(one("#latest-empty"), cycles.length > 0);
  keepChildren(one("#latest"), cycles.slice(0, LATEST), () => stamp("feed-template"), (item, row) => {
    const text = parts(item);
    text.link.href = `${page.base}cycles/${row.sequence}/`;
    setText(text.sequence, row.sequence);
    setText(text.pod, row.pod);
    text.link.title = row.pod;
    text.outcome.dataset.outcome = outcomeKind(row);
    setText(text.outcome, outcomeWord(row));
    setCut(text.why, whyOf(row), row.message || whyOf(row));
    setText(text.took, milliseconds(row.duration_ms));
  });
  setHidden(one("#latest-skipped"), !skipped);
  setText(one("#latest-skipped"), skipped ? `${count(skipped)} more went by too fast to list here; all are kept.` : "");
}
