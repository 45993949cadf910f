/**
 * What the frames of a run add up to. A pure reducer: no DOM, no network, no clock.
 *
 * `state.last[topic]` is the commit number up to which a topic is drawn. A frame covers the
 * commits (from, seq]; a frame that begins later than `last` leaves a gap, which only the
 * database can fill (docs/design/002-rows-and-frames.md).
 */

export const MAX_CYCLES = 200;
export const MAX_SECONDS = 600;
export const MAX_ENDED = 200;
const OPEN_STATES = new Set(["waiting", "sent"]);

export function initialState() {
  return { last: {}, data: {} };
}

export function isOpen(row) {
  return OPEN_STATES.has(row.state);
}

/** Apply one frame that was pushed. Effects: "applied", "old" (nothing new) or "gap". */
export function applyFrame(state, topic, frame) {
  const last = state.last[topic];
  if (last === undefined) return { state, effect: "gap" };
  if (isState(frame)) {
    if (frame.seq < last) return { state, effect: "old" };
    return { state: withTopic(state, topic, frame.seq, frame), effect: "applied" };
  }
  if (frame.seq <= last) return { state, effect: "old" };
  if (frame.from > last) return { state, effect: "gap" };
  return { state: withTopic(state, topic, frame.seq, merge(topic, state.data[topic], frame)), effect: "applied" };
}

/** Apply an HTTP answer: `complete` replaces what is known, else it is what changed since `last`. */
export function applySnapshot(state, topic, frame, complete) {
  const before = complete ? undefined : state.data[topic];
  const seq = complete ? frame.seq : Math.max(frame.seq, state.last[topic] ?? 0);
  return withTopic(state, topic, seq, merge(topic, before, frame));
}

/** Further rows of an answer that came in pieces: they change nothing of what is drawn up to where. */
export function applyRest(state, topic, frame) {
  return { ...state, data: { ...state.data, [topic]: merge(topic, state.data[topic], frame) } };
}

/** A frame without `from` is the whole state of its topic. */
function isState(frame) {
  return frame.from === undefined;
}

function withTopic(state, topic, seq, data) {
  return {
    last: { ...state.last, [topic]: seq },
    data: { ...state.data, [topic]: data },
  };
}

function merge(topic, before, frame) {
  if (topic === "cycles") return mergeCycles(before, frame);
  if (topic === "observe") return mergeObserve(before, frame);
  if (topic === "waiting") return mergeWaiting(before, frame);
  if (topic === "overview") return mergeOverview(before, frame);
  return frame;
}

/** Newest first; a row that comes again (its binding ended) replaces the one that is shown. */
export function mergeCycles(before, frame) {
  const bySequence = new Map((before?.cycles ?? []).map((row) => [row.sequence, row]));
  for (const row of frame.cycles) {
    const known = bySequence.get(row.sequence);
    if (!known || known.commit_seq <= row.commit_seq) bySequence.set(row.sequence, row);
  }
  const cycles = [...bySequence.values()].sort((a, b) => b.sequence - a.sequence);
  return {
    cycles: cycles.slice(0, MAX_CYCLES),
    skipped: (before?.skipped ?? 0) + (frame.skipped ?? 0),
  };
}

/**
 * The latest word on each pod, newest first; counts and rates are those of the frame. `skipped` grows
 * with the pods that went by unseen.
 */
export function mergeObserve(before, frame) {
  const rows = new Map((before?.pods ?? []).map((row) => [row.id, row]));
  for (const row of frame.pods) {
    const known = rows.get(row.id);
    if (!known || known.commit_seq <= row.commit_seq) rows.set(row.id, row);
  }
  const pods = [...rows.values()].sort((a, b) => b.sequence - a.sequence).slice(0, MAX_CYCLES);
  return { ...frame, pods, skipped: (before?.skipped ?? 0) + (frame.skipped ?? 0) };
}

/**
 * Rows by id; of those that have ended only the latest are kept. While pieces of the first answer
 * are on their way, `loading` is how many wait in all, else null.
 */
export function mergeWaiting(before, frame) {
  const rows = new Map(before?.rows ?? []);
  let ended = before?.ended ?? 0;
  for (const row of frame.pods) {
    const known = rows.get(row.id);
    if (known && known.commit_seq > row.commit_seq) continue;
    ended += Number(!isOpen(row)) - Number(known !== undefined && !isOpen(known));
    rows.set(row.id, row);
  }
  if (ended > MAX_ENDED) ended -= dropOldEnds(rows);
  const loading = frame.more === undefined ? before?.loading ?? null : frame.more && frame.open;
  return { rows, ended, loading, now: frame.now };
}

/** Only where there are too many: with 10,000 rows looking at each is most of a frame's cost. */
function dropOldEnds(rows) {
  const ended = [...rows.values()].filter((row) => !isOpen(row)).sort(latestEndFirst);
  const dropped = ended.slice(MAX_ENDED);
  for (const row of dropped) rows.delete(row.id);
  return dropped.length;
}

export function latestEndFirst(a, b) {
  return (b.resolved_at ?? 0) - (a.resolved_at ?? 0) || b.commit_seq - a.commit_seq;
}

/** The series grow by their new seconds; everything else is the latest word (usage comes rarely). */
export function mergeOverview(before, frame) {
  return {
    ...frame,
    usage: frame.usage ?? before?.usage ?? null,
    throughput: mergeSeries(before?.throughput, frame.throughput),
    depths: mergeSeries(before?.depths, frame.depths),
  };
}

function mergeSeries(before = [], more = []) {
  if (more.length === 0) return before;
  const bySecond = new Map(before.map((point) => [point[0], point]));
  for (const point of more) bySecond.set(point[0], point);
  return [...bySecond.values()].sort((a, b) => a[0] - b[0]).slice(-MAX_SECONDS);
}
