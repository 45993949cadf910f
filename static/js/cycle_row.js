/** Words about one decision, for every place that lists decisions. Pure. */
import { outcome } from "./format.js";

/** The node of a placed pod, else the shortest true reason. */
export function whyOf(row) {
  if (row.outcome === "scheduled" || row.outcome === "waiting") {
    return row.bound === false ? `${row.node} (binding failed)` : row.node;
  }
  return row.message || (row.plugin ? `by ${row.plugin}` : "");
}

export function outcomeWord(row) {
  return row.bound === false ? "binding failed" : outcome(row.outcome);
}

/** The word that colours it. */
export function outcomeKind(row) {
  return row.bound === false ? "error" : row.outcome;
}
