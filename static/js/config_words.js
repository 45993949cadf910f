/** What the configuration page says about versions and faults. Pure. */
import { plural } from "./format.js";

/** Which version is in use and which is wished for: {text, tone}. */
export function stateInWords({ version, applied, error, state }) {
  const inUse = applied ? `version ${applied} is in use` : "none has been used yet";
  if (error) return { text: `Version ${version} could not be used, ${inUse}: ${error}`, tone: "bad" };
  if (applied === version) return { text: `Version ${version}, in use`, tone: "good" };
  if (state === "stopped" || state === "failed") return { text: `Version ${version} is used from the next start on; ${inUse}`, tone: "wait" };
  return { text: `Version ${version} is on its way to the scheduler; ${inUse}`, tone: "wait" };
}

/** Who changed it last, or "". */
export function lastChangeInWords({ version, changed_by: by, changed_at: at }) {
  if (at === null || at === undefined) return `version ${version}, as the run was made`;
  return `version ${version}${by ? ` by ${by}` : ""}, ${moment(at)} UTC`;
}

export function faultsInWords(faults) {
  return `${plural(faults.length, "fault")}; nothing was changed`;
}

/** "2026-11-21 10:40:07" of seconds since the epoch, in UTC. */
export function moment(seconds) {
  return new Date(seconds * 1000).toISOString().slice(0, 19).replace("T", " ");
}

/** What a line of a unified diff is: "head", "place", "added", "removed" or "same". */
export function diffKind(line) {
  if (line.startsWith("+++") || line.startsWith("---")) return "head";
  if (line.startsWith("@@")) return "place";
  if (line.startsWith("+")) return "added";
  return line.startsWith("-") ? "removed" : "same";
}
