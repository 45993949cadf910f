/** Lists of decisions: what matches a search, and how rows come together. Pure. */

/**
 * The server's search, for rows that are pushed: "namespace/name", or part of a pod's or gang's
 * name, or a node's name; and the outcome.
 */
export function matches(row, { q, outcome }) {
  if (outcome && row.outcome !== outcome) return false;
  const needle = q.toLowerCase();
  if (!needle) return true;
  if (/^[^/]+\//.test(needle)) return row.pod.startsWith(needle) || row.pod_group.startsWith(needle);
  return row.name.includes(needle) || row.pod_group.includes(needle) || row.node === needle;
}

/** Rows that a page keeps of those that were pushed; earlier ones are asked for again. */
export const MOST_ROWS = 10_000;

/**
 * Decisions, newest first. With thousands of them a push costs what it brings.
 */
export class DecisionRows {
  rows = [];

  /** Take in rows in any order; of two with the same number the later commit is kept. */
  add(more) {
    const fresh = [];
    for (const row of more) {
      const index = this.#find(row.sequence);
      if (index < 0) fresh.push(row);
      else if (this.rows[index].commit_seq <= row.commit_seq) this.rows[index] = row;
    }
    if (fresh.length === 0) return;
    fresh.sort(newestFirst);
    if (this.rows.length === 0 || fresh.at(-1).sequence > this.rows[0].sequence) this.rows = [...fresh, ...this.rows];
    else if (fresh[0].sequence < this.rows.at(-1).sequence) this.rows = [...this.rows, ...fresh];
    else this.rows = [...this.rows, ...fresh].sort(newestFirst);
  }

  /** Keep the newest `most`; true where some went. */
  trim(most) {
    if (this.rows.length <= most) return false;
    this.rows.length = most;
    return true;
  }

  /** Of each pod in `newestOf` (uid -> number) no attempt before that number stays. */
  keepNewest(newestOf) {
    if (newestOf.size === 0) return;
    const stay = this.rows.filter(({ uid, sequence }) => !(sequence < newestOf.get(uid)));
    if (stay.length < this.rows.length) this.rows = stay;
  }

  has(sequence) {
    return this.#find(sequence) >= 0;
  }

  #find(sequence) {
    let low = 0;
    let high = this.rows.length - 1;
    while (low <= high) {
      const middle = (low + high) >> 1;
      const found = this.rows[middle].sequence;
      if (found === sequence) return middle;
      if (found > sequence) low = middle + 1;
      else high = middle - 1;
    }
    return -1;
  }
}

function newestFirst(a, b) {
  return b.sequence - a.sequence;
}
