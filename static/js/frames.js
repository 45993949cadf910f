/**
 * Heatmap frames: bytes -> a matrix. Little-endian; the layout is in
 * docs/design/002-rows-and-frames.md. The matrix that comes out:
 *
 *   {seq, sequence, pod, outcome, node, chosen, plugins, weights, reasons, feasible, namesHash,
 *    nodes, scored, scores: Int8Array(plugins * nodes), rejection: Int16Array(nodes)}
 *
 * `scores` is by plugin (row p holds all nodes); -1 is "not scored". `rejection` is an index into
 * `reasons`, -1 for a feasible node and -2 for one that was not evaluated.
 */

export const MAGIC = 0x4b534831;
export const FEASIBLE = -1;
export const NOT_EVALUATED = -2;
const FULL = 1;
const DELTA = 2;
const HEADER_BYTES = 16;
const SCORED_FLAG = 1;

/** A delta that was made against a matrix which this page does not hold. */
export class BaseMismatch extends Error {}

/** Decode a frame; `base` is the matrix that the page holds (or null). */
export function decodeHeatmap(buffer, base = null) {
  const view = new DataView(buffer);
  if (buffer.byteLength < HEADER_BYTES + 4 || view.getUint32(0, true) !== MAGIC) {
    throw new Error("not a heatmap frame");
  }
  const kind = view.getUint8(4);
  const plugins = view.getUint8(5);
  const scored = (view.getUint8(6) & SCORED_FLAG) !== 0;
  const seq = view.getUint32(8, true);
  const nodes = view.getUint32(12, true);
  const length = view.getUint32(HEADER_BYTES, true);
  const start = HEADER_BYTES + 4 + length;
  const info = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, HEADER_BYTES + 4, length)));
  const meta = describe(info, { seq, nodes, scored });
  if (kind === FULL) return { ...meta, ...fullArrays(buffer, start, plugins, nodes) };
  if (kind === DELTA) return { ...meta, ...patchedArrays(buffer, start, plugins, nodes, info, base) };
  throw new Error(`unknown kind of heatmap frame: ${kind}`);
}

function describe(info, header) {
  return {
    ...header,
    sequence: info.sequence,
    pod: info.pod,
    outcome: info.outcome,
    node: info.node,
    chosen: info.chosen,
    plugins: info.plugins,
    weights: info.weights,
    reasons: info.reasons,
    feasible: info.feasible,
    namesHash: info.names_hash,
  };
}

function fullArrays(buffer, start, plugins, nodes) {
  const cells = plugins * nodes;
  return {
    scores: new Int8Array(buffer.slice(start, start + cells)),
    rejection: new Int16Array(buffer.slice(start + cells, start + cells + 2 * nodes)),
  };
}

/** The base's arrays with the rows that changed; the base itself stays as it is. */
function patchedArrays(buffer, start, plugins, nodes, info, base) {
  if (!base || base.seq !== info.base || base.nodes !== nodes || base.plugins.length !== plugins) {
    throw new BaseMismatch(`the frame builds on ${info.base}, the page holds ${base?.seq ?? "nothing"}`);
  }
  const count = new DataView(buffer).getUint32(start, true);
  const rowsAt = start + 4;
  const scoresAt = rowsAt + 4 * count;
  const rejectionAt = scoresAt + plugins * count;
  const rows = new Uint32Array(buffer.slice(rowsAt, scoresAt));
  const changed = new Int8Array(buffer.slice(scoresAt, rejectionAt));
  const rejected = new Int16Array(buffer.slice(rejectionAt, rejectionAt + 2 * count));
  const scores = base.scores.slice();
  const rejection = base.rejection.slice();
  for (let i = 0; i < count; i += 1) {
    rejection[rows[i]] = rejected[i];
    for (let p = 0; p < plugins; p += 1) scores[p * nodes + rows[i]] = changed[p * count + i];
  }
  return { scores, rejection };
}

/** Raw scores of one cycle: {plugins, nodes, at(plugin, node)}. */
export function decodeRaw(buffer) {
  const view = new DataView(buffer);
  const plugins = view.getUint32(0, true);
  const nodes = view.getUint32(4, true);
  const values = new Int32Array(buffer.slice(8, 8 + 4 * plugins * nodes));
  if (values.length !== plugins * nodes) throw new Error("raw scores are cut short");
  return { plugins, nodes, at: (plugin, node) => values[plugin * nodes + node] };
}
