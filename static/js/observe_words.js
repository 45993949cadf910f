/** Verdicts on observed pods, in words and kinds; and how their rows come together. Pure. */

/** In the order in which the page counts them: [verdict, its word, the outcome whose colour it has]. */
const VERDICTS = [
  ["agree", "same node", "scheduled"],
  ["tie", "tie", "scheduled"],
  ["differs", "differs", "unschedulable"],
  ["infeasible", "turned down by us", "error"],
  ["unschedulable", "no node for us", "error"],
  ["error", "error", "error"],
  ["pending", "not placed yet", "waiting"],
  ["gone", "gone unplaced", "skipped"],
  ["missed", "missed", "skipped"],
];
const WORDS = new Map(VERDICTS.map(([verdict, word]) => [verdict, word]));
const KINDS = new Map(VERDICTS.map(([verdict, , kind]) => [verdict, kind]));

export const verdictWord = (verdict) => WORDS.get(verdict) ?? verdict;
export const verdictKind = (verdict) => KINDS.get(verdict) ?? "skipped";

/** [{verdict, word, kind, count}] of all verdicts that a rate is made of, and of others that there are. */
export function tallies(counts) {
  const always = new Set(["agree", "tie", "differs", "infeasible", "unschedulable", "pending"]);
  return VERDICTS.map(([verdict, word, kind]) => ({ verdict, word, kind, count: counts[verdict] ?? 0 })).filter(({ verdict, count }) => always.has(verdict) || count > 0);
}

/** "97.3 %", rounded down so that 100 % means all; "–" before there is a pod. */
export function ratePercent({ agree, placed }) {
  if (!placed) return "–";
  if (agree === placed) return "100 %";
  return `${(Math.floor((1000 * agree) / placed) / 10).toFixed(1)} %`;
}

/** The server's filter, for rows that are pushed. */
export function matches(row, { verdict, namespace }) {
  return (!verdict || row.verdict === verdict) && (!namespace || row.namespace === namespace);
}

/** Observed pods, the latest word first. A pod's later word replaces its earlier one. */
export class ObservedRows {
  rows = [];

  /** Take in rows in any order; those that no longer match are dropped. */
  add(more, keep = () => true) {
    const byId = new Map(this.rows.map((row) => [row.id, row]));
    for (const row of more) {
      const known = byId.get(row.id);
      if (!known || known.commit_seq <= row.commit_seq) byId.set(row.id, row);
    }
    this.rows = [...byId.values()].filter(keep).sort((a, b) => b.sequence - a.sequence);
  }

  /** Keep the newest `most`; true where some went. */
  trim(most) {
    if (this.rows.length <= most) return false;
    this.rows.length = most;
    return true;
  }
}
