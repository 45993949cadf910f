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

/** Rows by sequence, newest first; of two with the same number the later commit is kept. */
export function mergeRows(before, more) {
  const bySequence = new Map(before.map((row) => [row.sequence, row]));
  for (const row of more) {
    const known = bySequence.get(row.sequence);
    if (!known || known.commit_seq <= row.commit_seq) bySequence.set(row.sequence, row);
  }
  return [...bySequence.values()].sort((a, b) => b.sequence - a.sequence);
}
