/** Numbers and times as people read them. Pure. */

const whole = new Intl.NumberFormat("en-US");
const cores = new Intl.NumberFormat("en-US", { maximumFractionDigits: 1 });
const time = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const BINARY_UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

export function count(value) {
  return Number.isFinite(value) ? whole.format(value) : "–";
}

export function plural(value, one, many = `${one}s`) {
  return `${count(value)} ${value === 1 ? one : many}`;
}

/** Milliseconds: 0.042 ms, 1.31 ms, 48 ms, 2.4 s. */
export function milliseconds(ms) {
  if (!Number.isFinite(ms)) return "–";
  if (ms >= 1000) return `${(ms / 1000).toFixed(1)} s`;
  if (ms >= 10) return `${Math.round(ms)} ms`;
  if (ms >= 1) return `${ms.toFixed(1)} ms`;
  return `${Math.round(ms * 1000)} µs`;
}

/** Time left: "14:05", and "9.3 s" in the last ten seconds; rounded up, so 0 means over. */
export function countdown(seconds) {
  if (!Number.isFinite(seconds)) return "–";
  if (seconds <= 0) return "0 s";
  if (seconds < 10) return `${(Math.ceil(seconds * 10) / 10).toFixed(1)} s`;
  const left = Math.ceil(seconds);
  if (left < 60) return `${left} s`;
  const two = (n) => String(n).padStart(2, "0");
  if (left < 3600) return `${Math.floor(left / 60)}:${two(left % 60)}`;
  return `${Math.floor(left / 3600)}:${two(Math.floor((left % 3600) / 60))}:${two(left % 60)}`;
}

/** How long ago, coarse: "12 s", "4 min", "3 h", "2 d". */
export function age(seconds) {
  if (!Number.isFinite(seconds)) return "–";
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86_400)} d`;
}

export function clockTime(epochSeconds) {
  return Number.isFinite(epochSeconds) ? time.format(new Date(epochSeconds * 1000)) : "–";
}

const dateAndTime = new Intl.DateTimeFormat("sv-SE", { dateStyle: "short", timeStyle: "medium" });

/** "2026-09-21 14:13:20" on this machine's clock, as all times of day are shown. */
export function dateTime(date) {
  return dateAndTime.format(date);
}

/** The zone of all times of day that are shown: "Europe/Berlin, UTC+02:00". */
export function zoneInWords(date = new Date(), zone = new Intl.DateTimeFormat().resolvedOptions().timeZone) {
  if (zone === "UTC" || zone === "Etc/UTC") return "UTC";
  const offset = new Intl.DateTimeFormat("en-US", { timeZone: zone, timeZoneName: "longOffset" }).formatToParts(date).find(({ type }) => type === "timeZoneName").value.replace("GMT", "UTC");
  return `${zone}, ${offset}`;
}

/** An amount of a resource: cpu comes in millicores, memory and storage in bytes. */
export function amount(resource, value) {
  if (resource === "cpu") return value < 1000 && value > 0 ? `${value}m` : cores.format(value / 1000);
  if (resource === "memory" || resource.endsWith("storage") || resource.startsWith("hugepages-")) return bytes(value);
  return count(value);
}

function bytes(value) {
  let unit = 0;
  let rest = value;
  while (rest >= 1024 && unit < BINARY_UNITS.length - 1) {
    rest /= 1024;
    unit += 1;
  }
  const shown = rest >= 100 || Number.isInteger(rest) ? Math.round(rest) : rest.toFixed(1);
  return `${shown} ${BINARY_UNITS[unit]}`;
}

export function percent(part, wholeAmount) {
  if (!wholeAmount) return "–";
  return `${((100 * part) / wholeAmount).toFixed(part / wholeAmount < 0.1 ? 1 : 0)} %`;
}

const OUTCOMES = {
  scheduled: "scheduled",
  waiting: "waiting",
  unschedulable: "unschedulable",
  error: "error",
  skipped: "skipped",
  advised: "advised",
};

export function outcome(word) {
  return OUTCOMES[word] ?? word;
}

const STATES = {
  waiting: "waiting",
  sent: "decision sent",
  allowed: "allowed",
  rejected: "rejected",
  timed_out: "timed out",
  preempted: "preempted",
  removed: "removed",
  broken: "broken",
};

export function waitState(word) {
  return STATES[word] ?? word;
}

/** Lets a long CamelCase name break between its words (zero-width spaces; it is still text). */
export function camelBreaks(name) {
  return name.replaceAll(/(?<=[a-z])(?=[A-Z])/g, "\u200b");
}
